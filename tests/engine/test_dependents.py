"""The index of those that wait: what stands in it, and what is remembered of the completed."""

from __future__ import annotations

from tests.engine.making import NOW, hold, make_engine, put, token_of
from tests.support.restart import keep

from tandemq.engine import facts, publish, settle, trees
from tandemq.engine.core import Engine
from tandemq.engine.dependents import WIDE, Dependents
from tandemq.engine.recovery import roll_back
from tandemq.model.message import Links, Message, Options, State
from tandemq.model.outcome import Outcome
from tandemq.stores.base import Row
from tandemq.stores.rows import decode


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


# -- wide families -------------------------------------------------------------------------------

COUNT = WIDE + 2


class Disk:
    """What a store would hold: rows by seq, and facts."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.facts: dict[str, bytes] = {}

    def keep(self, outcome: Outcome) -> None:
        keep(outcome, self.rows, self.facts)

    def load(self) -> Engine:
        engine = make_engine()
        for _, row in sorted(self.rows.items()):
            engine.admit(decode(row))
        for key, value in self.facts.items():
            facts.restore(engine, key, value)
        return engine

    def undo(self, engine: Engine, outcome: Outcome) -> None:
        back = [self.rows[seq] for seq in outcome.changed if seq in self.rows]
        roll_back(engine, outcome.changed.values(), map(decode, back), NOW)
        for key in outcome.facts:
            facts.restore(engine, key, self.facts.get(key))


def wide_family(engine: Engine, **options: bool) -> Message:
    ids = tuple(f"c{n:03}" for n in range(COUNT))
    parent = publish.draft("p", "job", b"\x80", NOW, id="parent")
    parent.links = Links(None, ids, ids)
    children = [
        publish.draft("q", "job", b"\x80", NOW, options=Options(**options), id=id) for id in ids
    ]
    for m in children:
        m.links = Links("parent")
    trees.publish_flow(engine, [parent, *children], NOW)
    return parent


def complete(engine: Engine, count: int = 1) -> None:
    for _ in range(count):
        m = hold(engine)
        settle.ack(engine, m.id, token_of(m), NOW, b"\x07")


def test_the_row_of_a_wide_parent_is_not_written_for_each_child() -> None:
    engine = make_engine()
    parent = wide_family(engine, remove_on_complete=True)
    engine.take()
    complete(engine)
    outcome = engine.take()
    assert parent.seq not in outcome.changed
    assert list(outcome.facts) == [f"kid/{parent.seq}/c000"]


def test_a_wide_parent_leaves_no_facts_behind() -> None:
    engine, disk = make_engine(), Disk()
    parent = wide_family(engine, remove_on_complete=True)
    for _ in range(COUNT):
        complete(engine)
        disk.keep(engine.take())
    assert parent.state is State.READY
    assert disk.facts == {}
    again = disk.load().messages["parent"]
    assert again.links is not None
    assert len(again.links.values) == COUNT


def test_a_wide_family_survives_a_restart() -> None:
    engine, disk = make_engine(), Disk()
    wide_family(engine, remove_on_complete=True)
    complete(engine, 40)
    disk.keep(engine.take())
    engine = disk.load()
    parent = engine.messages["parent"]
    assert parent.links is not None
    assert len(parent.links.open) == COUNT - 40
    assert len(parent.links.values) == 40
    complete(engine, COUNT - 40)
    assert parent.state is State.READY


def test_an_undone_end_is_waited_for_again() -> None:
    engine, disk = make_engine(), Disk()
    wide_family(engine, remove_on_complete=True)
    complete(engine, 3)
    disk.keep(engine.take())
    complete(engine, 2)
    disk.undo(engine, engine.take())
    parent = engine.messages["parent"]
    assert parent.links is not None
    assert len(parent.links.open) == COUNT - 3
    assert set(parent.links.values) == {"c000", "c001", "c002"}
    complete(engine, COUNT - 3)
    assert parent.state is State.READY


def test_an_undone_release_brings_back_what_was_known() -> None:
    engine, disk = make_engine(), Disk()
    wide_family(engine, remove_on_complete=True)
    complete(engine, COUNT - 1)
    disk.keep(engine.take())
    complete(engine)
    assert engine.messages["parent"].state is State.READY
    disk.undo(engine, engine.take())
    parent = engine.messages["parent"]
    assert parent.links is not None
    assert (parent.state, parent.links.open) == (State.PARKED, (f"c{COUNT - 1:03}",))
    assert len(parent.links.values) == COUNT - 1
    complete(engine)
    assert parent.state is State.READY
    assert len(parent.links.values) == COUNT


def test_an_undone_change_of_the_parent_forgets_no_child() -> None:
    engine, disk = make_engine(), Disk()
    parent = wide_family(engine, remove_on_complete=True)
    complete(engine, 5)
    disk.keep(engine.take())
    engine.touched(parent)
    disk.undo(engine, engine.take())
    parent = engine.messages["parent"]
    assert parent.links is not None
    assert len(parent.links.open) == COUNT - 5
    assert len(parent.links.values) == 5
