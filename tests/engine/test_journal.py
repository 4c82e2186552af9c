"""The newest events of each queue."""

from __future__ import annotations

from tests.engine.making import NOW, hold, make_engine, put

from tandemq.engine.journal import Entry, Journal
from tandemq.model.outcome import Event


def event(queue: str = "q", n: int = 0) -> Event:
    return Event("pushed", queue, f"id-{n}", NOW + n, {"data": b"large"})


def test_it_keeps_what_happened_without_what_it_carried() -> None:
    notes = Journal(100, 100)
    notes.note(event())
    assert notes.of("q") == [Entry("pushed", "id-0", NOW)]
    assert notes.of("other") == []


def test_the_oldest_events_of_a_queue_go_first() -> None:
    notes = Journal(3, 100)
    for n in range(5):
        notes.note(event(n=n))
    assert [entry.id for entry in notes.of("q")] == ["id-2", "id-3", "id-4"]
    assert notes.size == 3


def test_beyond_the_bound_of_all_the_longest_silent_queue_goes() -> None:
    notes = Journal(100, 3)
    for queue in ("a", "b", "a", "c"):
        notes.note(event(queue))
    assert [len(notes.of(queue)) for queue in "abc"] == [2, 0, 1]
    assert notes.size == 3


def test_trimming_keeps_the_newest_and_says_how_many_went() -> None:
    notes = Journal(100, 100)
    for n in range(5):
        notes.note(event(n=n))
    assert notes.trim("q", 2) == 3
    assert [entry.id for entry in notes.of("q")] == ["id-3", "id-4"]
    assert notes.trim("q", 2) == 0
    assert notes.trim("q", 0) == 2
    assert (notes.size, notes.of("q"), notes.trim("nobody", 0)) == (0, [], 0)


def test_nothing_is_noted_while_nobody_listens() -> None:
    engine = make_engine()
    put(engine)
    assert engine.journal.of("q") == []
    engine.listening = True
    hold(engine)
    assert [entry.type for entry in engine.journal.of("q")] == ["pulled"]
