"""The index of those that wait: what stands in it, and what is remembered of the completed."""

from __future__ import annotations

from tests.engine.making import NOW, hold, make_engine, put, token_of

from tandemq.engine import publish, settle
from tandemq.engine.core import Engine
from tandemq.engine.dependents import Dependents
from tandemq.model.message import Links, Message, State


def waits(engine: Engine, *ids: str, **links: object) -> Message:
    m = publish.draft("q", "job", b"x", NOW)
    m.links = Links(depends_on=ids, **links)  # type: ignore[arg-type]
    return publish.publish(engine, m, NOW)


def test_the_index_follows_those_that_wait() -> None:
    engine = make_engine()
    a, b = put(engine, "a"), put(engine, "b")
    m = waits(engine, a.id, b.id)
    assert engine.dependents.of("a") == engine.dependents.of("b") == [m]
    engine.shift(m, "cancel", State.GONE)
    assert engine.dependents.waiting == {}


def test_the_index_is_rebuilt_from_what_is_admitted_and_undone() -> None:
    engine = make_engine()
    put(engine, "a")
    m = waits(engine, "a")
    engine.evict(m)
    assert engine.dependents.waiting == {}
    m.state = State.PARKED
    engine.admit(m)
    assert engine.dependents.of("a") == [m]


def test_what_does_not_wait_is_not_in_the_index() -> None:
    found = Dependents(3)
    ready = Message("m", "q", "job", b"", 1, 0, 0, links=Links(open=("a",)), state=State.READY)
    found.add(ready)
    found.add(Message("n", "q", "job", b"", 2, 0, 0, state=State.PARKED))
    found.pull("a", ready)
    assert found.waiting == {}


def test_the_newest_completed_ids_are_remembered() -> None:
    found = Dependents(2)
    for id in ("a", "b", "a", "c"):
        found.remember(id)
    assert [found.remembers(id) for id in ("a", "b", "c")] == [True, False, True]
    found.unlearn("a")
    assert not found.remembers("a")


def test_a_removed_child_leaves_its_result_with_its_parent() -> None:
    engine = make_engine()
    child = put(engine, "c", remove_on_complete=True)
    put(engine, "other")
    child.links = Links(parent="p")
    parent = publish.draft("p", "job", b"x", NOW, id="p")
    parent.links = Links(children=("c",), depends_on=("c", "other"))
    publish.publish(engine, parent, NOW)
    engine.take()
    assert hold(engine) is child
    settle.ack(engine, "c", token_of(child), NOW, b"\x07")
    assert parent.links.values == {"c": b"\x07"}
    assert parent.seq in engine.take().changed


def test_a_completed_parent_is_not_rewritten_for_a_child_that_goes() -> None:
    engine = make_engine()
    child, parent = put(engine, "c"), put(engine, "p", queue="p")
    child.links, parent.links = Links(parent="p"), Links(children=("c",))
    for queue in ("q", "p"):
        m = hold(engine, queue=queue)
        settle.ack(engine, m.id, token_of(m), NOW, b"\x07")
    engine.take()
    engine.forget(child)
    assert parent.seq not in engine.take().changed
