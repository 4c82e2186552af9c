"""Flows as a whole: all or nothing, in the order of their ids, and pruned without a parent left."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import NOW, answers, hold, make_engine, put, token_of, wait

from tandemq.engine import publish, settle, trees
from tandemq.engine.core import Engine
from tandemq.model.errors import GroupFull
from tandemq.model.message import Links, Message, Options, State

PARKED, DELAYED, READY, LEASED, DONE, GONE = (
    State.PARKED,
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.GONE,
)


def job(
    id: str, *children: str, parent: str | None = None, queue: str = "q", **options: Any
) -> Message:
    delay = options.pop("delay", 0)
    m = publish.draft(queue, "job", b"\x80", NOW, delay=delay, options=Options(**options), id=id)
    m.links = Links(parent, children, children) if children or parent else None
    return m


def flow(engine: Engine, *drafts: Message) -> list[State]:
    trees.publish_flow(engine, drafts, NOW)
    return [m.state for m in drafts]


def complete(engine: Engine) -> Message:
    m = hold(engine)
    settle.ack(engine, m.id, token_of(m), NOW)
    return m


def test_parents_wait_and_leaves_begin() -> None:
    engine = make_engine()
    states = flow(
        engine,
        job("top", "middle"),
        job("middle", "leaf", parent="top"),
        job("leaf", parent="middle", delay=5),
    )
    assert states == [PARKED, PARKED, DELAYED]
    assert engine.owes_sync


def test_jobs_of_one_moment_come_in_the_order_of_their_ids() -> None:
    engine = make_engine()
    flow(engine, job("b"), job("a10"), job("a2"))
    assert [complete(engine).id for _ in range(3)] == ["a10", "a2", "b"]


def test_those_who_wait_get_their_jobs_when_the_whole_flow_is_there() -> None:
    engine = make_engine()
    wait(engine, "r")
    flow(engine, job("b", parent=None), job("a"))
    assert answers(engine) == {"r": ["a"]}


def test_an_id_is_taken_by_a_message_and_by_the_memory_of_one() -> None:
    engine = make_engine()
    put(engine, "a"), put(engine, "b", remove_on_complete=True)
    complete(engine), complete(engine)
    assert trees.taken(engine, ["x", "a"]) == "a"
    assert trees.taken(engine, ["b", "a"]) == "b"
    assert trees.taken(engine, ["x"]) is None


def test_a_group_without_room_refuses_the_whole_flow() -> None:
    engine = make_engine()
    with pytest.raises(GroupFull):
        flow(engine, *(job(id, group="g", group_max=2) for id in "abc"))
    assert engine.messages == {}
    assert flow(engine, *(job(id, group="g", group_max=2) for id in "ab")) == [READY, READY]
    with pytest.raises(GroupFull):
        flow(engine, job("c", group="g", group_max=2))


def test_pruning_takes_what_has_not_begun_and_leaves_no_parent_waiting_for_it() -> None:
    engine = make_engine()
    parent = job("p", "a", "b", "c", queue="p")
    flow(engine, parent, *(job(id, parent="p") for id in "abc"))
    complete(engine)
    running = hold(engine)
    trees.remove_unprocessed(engine, parent, NOW)
    assert (parent.state, running.state) == (PARKED, LEASED)
    assert "c" not in engine.messages
    assert parent.links is not None
    assert parent.links.depends_on == ("a", "b", "c")
    settle.ack(engine, running.id, token_of(running), NOW)
    assert parent.state is READY


def test_pruning_all_children_releases_the_parent() -> None:
    engine = make_engine()
    parent = job("p", "a", "b", queue="p")
    flow(engine, parent, job("a", parent="p"), job("b", parent="p", delay=9))
    wait(engine, "r", queue="p")
    trees.remove_unprocessed(engine, parent, NOW)
    assert answers(engine) == {"r": ["p"]}


def test_pruning_goes_down_the_tree() -> None:
    engine = make_engine()
    top = job("top", "middle", queue="p")
    flow(engine, top, job("middle", "leaf", parent="top"), job("leaf", parent="middle"))
    trees.remove_unprocessed(engine, top, NOW)
    assert set(engine.messages) == {"top"}
    assert top.state is READY


def test_pruning_what_has_no_children_changes_nothing() -> None:
    engine = make_engine()
    m = put(engine)
    trees.remove_unprocessed(engine, m, NOW)
    assert m.state is READY
