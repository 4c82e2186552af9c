"""Commands over many messages: in slices, in the order of their notes, undone with their batch."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, make_engine, put

from tandemq.engine import clock, recovery, sweeps
from tandemq.engine.core import Engine
from tandemq.engine.sweeps import Sweep
from tandemq.model.errors import StorageFailed


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "SLICE", 3)


def sweep(engine: Engine, n: int, **more) -> tuple[Sweep, list[str]]:
    seen: list[str] = []

    def act(m, now) -> bool:
        seen.append(m.id)
        return m.id != "m1"

    messages = [put(engine, f"m{i}") for i in range(n)]
    return Sweep(messages, act, conn=1, req="r", answer=lambda s: s.count, **more), seen


def told(engine: Engine) -> list[object]:
    return [effect.reply for effect in engine.take().effects]


def test_a_short_sweep_is_done_at_once() -> None:
    engine = make_engine()
    s, seen = sweep(engine, 2, ids=[])
    assert sweeps.begin(engine, s, NOW)
    assert seen == ["m0", "m1"]
    assert (s.count, s.ids) == (1, ["m0"])
    assert engine.sweeps == {}


def test_a_long_sweep_goes_on_with_the_clock_and_answers_at_its_end() -> None:
    engine = make_engine()
    s, seen = sweep(engine, 7)
    assert not sweeps.begin(engine, s, NOW)
    assert len(seen) == 3
    clock.tick(engine, NOW + 1)
    assert len(seen) == 6
    assert told(engine) == []
    assert clock.next_wake(engine) == NOW + 2
    clock.tick(engine, NOW + 2)
    assert told(engine) == [6]
    assert engine.sweeps == {}
    assert clock.next_wake(engine) is None


def test_one_tick_does_one_slice() -> None:
    engine = make_engine()
    s, seen = sweep(engine, 9)
    sweeps.begin(engine, s, NOW)
    clock.tick(engine, NOW + 100)
    assert len(seen) == 6


@pytest.mark.parametrize(("limit", "count", "looked"), [(0, 0, 0), (1, 1, 1), (2, 2, 3), (9, 3, 4)])
def test_a_limit_counts_what_counted(limit: int, count: int, looked: int) -> None:
    engine = make_engine()
    s, seen = sweep(engine, 4, limit=limit)
    if not sweeps.begin(engine, s, NOW):
        clock.tick(engine, NOW + 1)
    assert (s.count, len(seen)) == (count, looked)


def test_what_remains_is_done_once_at_the_end() -> None:
    engine = make_engine()
    ends: list[tuple[int, int]] = []
    s, _ = sweep(engine, 4, finish=lambda count, now: ends.append((count, now)))
    sweeps.begin(engine, s, NOW)
    assert ends == []
    clock.tick(engine, NOW + 1)
    assert ends == [(3, NOW + 1)]


def test_a_batch_that_was_not_stored_ends_the_sweeps_that_grew_on_it() -> None:
    engine = make_engine()
    s, seen = sweep(engine, 9)
    sweeps.begin(engine, s, NOW)
    recovery.roll_back(engine, [], [], NOW)
    [reply] = told(engine)
    assert isinstance(reply, StorageFailed)
    clock.tick(engine, NOW + 1)
    assert len(seen) == 3
    assert clock.next_wake(engine) is None


def test_a_sweep_for_nobody_says_nothing() -> None:
    engine = make_engine()
    s, _ = sweep(engine, 4)
    s.conn = None
    sweeps.begin(engine, s, NOW)
    sweeps.fail_all(engine, "why")
    assert told(engine) == []
