"""What binds drafts: checked before anything is done, for one and for a batch."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import NOW, hold, make_engine, put, token_of

from tandemq.engine import publish, settle, ties
from tandemq.engine.core import Engine
from tandemq.model.errors import BadRequest
from tandemq.model.message import Links, Message, Options, State


def draft(id: str = "", *needs: str, **options: Any) -> Message:
    m = publish.draft("q", "job", b"\x80", NOW, options=Options(**options), id=id)
    m.links = Links(depends_on=needs) if needs else None
    return m


def publish_all(engine: Engine, *drafts: Message) -> list[State]:
    ties.check_all(engine, drafts, NOW)
    return [m.state for m in publish.publish_all(engine, "q", list(drafts), NOW)]


def test_members_of_a_batch_may_depend_on_each_other_in_any_order() -> None:
    engine = make_engine()
    states = publish_all(engine, draft("", "b"), draft("b", "c"), draft("c"))
    assert states == [State.PARKED, State.PARKED, State.READY]


def test_a_member_waits_for_the_new_message_under_an_id_that_was_completed() -> None:
    engine = make_engine()
    put(engine, "b")
    settle.ack(engine, "b", token_of(hold(engine)), NOW)
    assert publish_all(engine, draft("a", "b"), draft("b")) == [State.PARKED, State.READY]


@pytest.mark.parametrize(
    ("drafts", "words"),
    [
        ([draft(), draft("", "ghost")], "jobs[1]: Dependency job not found: ghost"),
        ([draft("a", "a")], "jobs[0]: Job cannot depend on itself: a"),
        (
            [draft("x"), draft("a", "b"), draft("b", "a")],
            "jobs[1]: Job depends on itself through others: a",
        ),
    ],
)
def test_a_batch_that_cannot_be_accepted_leaves_no_trace(drafts: list[Message], words: str) -> None:
    engine = make_engine()
    with pytest.raises(BadRequest) as refused:
        publish_all(engine, *drafts)
    assert str(refused.value) == words
    assert engine.messages == {}


def test_a_key_that_cannot_be_had_refuses_the_whole_batch() -> None:
    engine = make_engine()
    put(engine, unique_key="k")
    hold(engine)
    extend = {"unique_key": "k", "dedup_ttl": 5, "dedup_extend": True}
    with pytest.raises(BadRequest, match=r"jobs\[1\]: Duplicate unique_key"):
        publish_all(engine, draft("fine"), draft("", **extend))
    assert "fine" not in engine.messages


def test_dependencies_are_looked_at_before_the_id_and_the_key() -> None:
    engine = make_engine()
    put(engine, "a", unique_key="k")
    with pytest.raises(BadRequest, match="Dependency job not found"):
        publish.publish(engine, draft("a", "ghost", unique_key="k"), NOW)


def test_a_known_id_is_looked_at_before_the_key() -> None:
    engine = make_engine()
    first, other = put(engine, "a", unique_key="k"), put(engine, "b", unique_key="l")
    assert publish.publish(engine, draft("a", unique_key="l"), NOW) is first
    assert publish.publish(engine, draft("c", unique_key="l"), NOW) is other


def test_a_completed_id_stays_when_the_key_stands_for_the_new_message() -> None:
    engine = make_engine()
    put(engine, "a")
    settle.ack(engine, "a", token_of(hold(engine)), NOW)
    other = put(engine, "b", unique_key="k")
    assert publish.publish(engine, draft("a", unique_key="k"), NOW) is other
    assert engine.messages["a"].state is State.DONE


def test_two_members_with_one_key_are_one_message() -> None:
    engine = make_engine()
    first, second = draft("", unique_key="k"), draft("", unique_key="k")
    accepted = publish.publish_all(engine, "q", [first, second], NOW)
    assert accepted == [first, first]
