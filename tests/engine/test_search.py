"""Searching: newest first, a page at a time, in slices, whatever happens in between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.making import NOW, hold, make_engine, pass_time, put, token_of

from tandemq.engine import clock, consume, inspect, search, settle
from tandemq.engine.core import Engine
from tandemq.engine.search import Search
from tandemq.model.errors import TooManySearches
from tandemq.model.message import Message, State

KEPT = tuple(state for state in State if state not in (State.NEW, State.GONE))


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SLICE", 3)
    monkeypatch.setattr(search, "NEWEST", 4)
    monkeypatch.setattr(inspect, "SORTED", 2)


def page(limit: int = 10, before: int | None = None, **more: Any) -> Search:
    options = {"fits": lambda m: True, "reads": None, "queue": None, "states": KEPT}
    return Search(limit=limit, before=before, answer=shown, conn=1, req="r", **{**options, **more})


def shown(s: Search) -> tuple[list[str], int | None]:
    return [m.id for m in s.found], s.before


def look(engine: Engine, s: Search) -> tuple[list[str], int | None]:
    """Let a search go on to its end."""
    if search.begin(engine, s, NOW):
        return shown(s)
    pass_time(engine, NOW + 1_000)
    [reply] = [effect.reply for effect in engine.take().effects if effect.conn == 1]
    return reply


def filled(n: int = 8) -> Engine:
    engine = make_engine()
    for i in range(1, n + 1):
        put(engine, f"m{i}", queue="odd" if i % 2 else "even")
    return engine


def test_a_page_begins_with_the_newest_and_the_next_goes_on_behind_its_last() -> None:
    engine = filled()
    assert look(engine, page(limit=3)) == (["m8", "m7", "m6"], 6)
    assert look(engine, page(limit=3, before=6)) == (["m5", "m4", "m3"], 3)
    assert look(engine, page(limit=3, before=3)) == (["m2", "m1"], None)


def test_the_end_is_told_with_the_last_page() -> None:
    assert look(filled(2), page(limit=2)) == (["m2", "m1"], None)
    assert look(filled(6), page(limit=2, before=3)) == (["m2", "m1"], None)
    assert look(make_engine(), page()) == ([], None)


def test_a_short_look_is_done_at_once_whatever_there_is() -> None:
    engine = filled(50)
    s = page(limit=2)
    assert search.begin(engine, s, NOW)
    assert (s.looked, len(engine.searches)) == (2, 0)


def test_a_long_one_takes_a_slice_a_tick() -> None:
    engine = filled(8)
    s = page(fits=lambda m: m.id == "m1")
    assert not search.begin(engine, s, NOW)
    assert s.looked == 3
    clock.tick(engine, NOW + 1)
    assert s.looked == 6
    assert engine.take().effects == []
    clock.tick(engine, NOW + 2)
    [reply] = engine.take().effects
    assert reply.reply == (["m1"], None)
    assert clock.next_wake(engine) is None


def test_reading_large_bodies_makes_a_slice_shorter() -> None:
    engine = make_engine()
    for i in range(6):
        put(engine, f"m{i}", body=b"x" * 2_048)
    s = page(reads=lambda m: False)
    search.begin(engine, s, NOW)
    assert s.looked == 1


def test_one_queue_and_some_states_are_looked_through_alone() -> None:
    engine = filled(8)
    m = hold(engine, queue="odd")
    settle.ack(engine, m.id, token_of(m), NOW)
    s = page(queue="odd", states=(State.DONE,), fits=lambda m: m.state is State.DONE)
    assert look(engine, s) == (["m1"], None)
    assert s.looked == 1
    assert look(engine, page(queue="none")) == ([], None)


def test_a_rare_state_is_looked_for_in_every_queue() -> None:
    engine = filled(8)
    for queue in ("odd", "even"):
        m = hold(engine, queue=queue)
        settle.ack(engine, m.id, token_of(m), NOW)
    s = page(states=(State.DONE,), fits=lambda m: m.state is State.DONE)
    assert look(engine, s) == (["m2", "m1"], None)
    assert s.looked == 2


def test_searches_stand_in_line_and_each_tick_does_one_slice() -> None:
    engine = filled(9)
    first, second = (page(fits=lambda m: m.id == "m1") for _ in range(2))
    assert not search.begin(engine, first, NOW)
    assert not search.begin(engine, second, NOW)
    clock.tick(engine, NOW + 1)
    assert (first.looked, second.looked) == (6, 0)
    pass_time(engine, NOW + 100)
    assert [effect.reply for effect in engine.take().effects] == [(["m1"], None)] * 2


def test_the_line_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "LINE", 2)
    engine = filled(9)
    for _ in range(2):
        search.begin(engine, page(fits=lambda m: False), NOW)
    with pytest.raises(TooManySearches):
        search.begin(engine, page(), NOW)
    known = page(notes=[engine.messages["m2"]], all_noted=True)
    assert search.begin(engine, known, NOW), "who knows what is meant need not wait"
    pass_time(engine, NOW + 100)
    assert search.begin(engine, page(limit=1), NOW)


def test_who_leaves_takes_the_searches_along() -> None:
    engine = filled(9)
    search.begin(engine, page(fits=lambda m: False), NOW)
    consume.disconnect(engine, 1, NOW)
    assert len(engine.searches) == 0
    assert clock.next_wake(engine) is None


def test_those_of_others_stay() -> None:
    engine = filled(9)
    mine, other = (page(fits=lambda m: False) for _ in range(2))
    other.conn = 2
    search.begin(engine, mine, NOW)
    search.begin(engine, other, NOW)
    consume.disconnect(engine, 1, NOW)
    pass_time(engine, NOW + 100)
    assert [effect.conn for effect in engine.take().effects] == [2]


def test_a_clock_that_is_set_back_stops_no_search() -> None:
    engine = filled(9)
    search.begin(engine, page(fits=lambda m: False), NOW)
    clock.shift_spans(engine, -3_600_000)
    pass_time(engine, NOW - 3_600_000 + 100)
    assert [effect.reply for effect in engine.take().effects] == [([], None)]


def test_what_goes_in_between_is_passed_over() -> None:
    engine = filled(9)
    s = page()
    s.fits = lambda m: m.id != "m9"
    search.begin(engine, s, NOW)
    engine.shift(engine.messages["m1"], "cancel", State.GONE)
    pass_time(engine, NOW + 100)
    [reply] = engine.take().effects
    assert reply.reply == ([f"m{i}" for i in range(8, 1, -1)], None)


def test_what_a_failed_batch_brought_back_is_in_its_place() -> None:
    engine = filled(9)
    old = engine.messages["m2"]
    engine.evict(old)
    row = Message("m2", "even", "job", b"x", old.seq, NOW, NOW, state=State.READY)
    engine.admit(row)
    assert list(engine.messages)[-1] == "m2"
    ids, cursor = look(engine, page(limit=7))
    assert ids == [f"m{i}" for i in range(9, 2, -1)]
    assert look(engine, page(limit=7, before=cursor)) == (["m2", "m1"], None)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from("ab"), max_size=25),
    st.integers(1, 6),
    st.sampled_from(["a", "b", None]),
)
def test_pages_together_hold_everything_once(queues: list[str], limit: int, only: Any) -> None:
    engine = make_engine()
    for i, queue in enumerate(queues):
        put(engine, f"m{i}", queue=queue)
    expected = [f"m{i}" for i, q in reversed(list(enumerate(queues))) if only in (None, q)]
    got: list[str] = []
    before = None
    while True:
        wanted = page(limit, before, queue=only, fits=lambda m: only in (None, m.queue))
        ids, before = look(engine, wanted)
        got += ids
        assert len(ids) <= limit
        put(engine, queue="a")  # newer ones move nothing
        if before is None:
            break
    assert [id for id in got if id.startswith("m")] == expected
    assert len(got) == len(expected)
