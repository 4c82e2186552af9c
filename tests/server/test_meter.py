"""What the server measures of itself, on a clock that the test moves."""

from __future__ import annotations

import pytest

from tandemq.engine.counters import Counters
from tandemq.server import meter
from tandemq.server.meter import Meter, Watch


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 50.0

    def perf_counter(self) -> float:
        return self.now

    def monotonic_ns(self) -> int:
        return int(self.now * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(meter, "time", made)
    return made


def test_uptime_is_counted_from_the_start(clock: Clock) -> None:
    measured = Meter()
    clock.now += 12.3456
    assert measured.stats(Counters(), 7)["uptime"] == 12.346
    assert measured.stats(Counters(), 7)["connections"] == 7


def test_rates_are_those_of_the_time_since_the_last_look(clock: Clock) -> None:
    measured, counters = Meter(), Counters()
    counters.pushed, counters.pulled = 100, 50
    clock.now += 2
    shown = measured.stats(counters, 0)
    assert (shown["pushPerSec"], shown["pullPerSec"]) == (50.0, 25.0)
    clock.now += 4
    shown = measured.stats(counters, 0)
    assert (shown["pushPerSec"], shown["pullPerSec"]) == (0.0, 0.0)


def test_looking_again_at_once_shows_the_same_rates(clock: Clock) -> None:
    measured, counters = Meter(), Counters()
    counters.pushed = 10
    clock.now += 1
    assert measured.stats(counters, 0)["pushPerSec"] == 10.0
    counters.pushed = 99
    clock.now += 0.5
    assert measured.stats(counters, 0)["pushPerSec"] == 10.0


def test_the_longest_turn_is_shown_once(clock: Clock) -> None:
    measured = Meter()
    for length in (0.001, 0.25, 0.002):
        measured.turn_began()
        clock.now += length
        measured.turn_ended(Counters())
    assert measured.stats(Counters(), 0)["loopLagMs"] == pytest.approx(250, abs=0.01)
    assert measured.stats(Counters(), 0)["loopLagMs"] == 0


def test_what_is_counted_is_shown(clock: Clock) -> None:
    counters = Counters()
    counters.retried, counters.expired, counters.stalled, counters.interrupted = 1, 2, 3, 4
    shown = Meter().stats(counters, 0)
    names = ("retried", "expired", "stalled", "interrupted")
    assert [shown[name] for name in names] == [1, 2, 3, 4]


def test_a_clock_that_only_runs_is_not_set(clock: Clock) -> None:
    watch = Watch(1_000_000)
    clock.now += 3600
    assert watch.step(1_000_000 + 3_600_000) is None
    assert watch.step(1_000_000 + 3_600_000 + Watch.TOLERANCE) is None


@pytest.mark.parametrize("step", [5_000, -5_000, 86_400_000])
def test_a_clock_that_is_set_is_noticed_once(clock: Clock, step: int) -> None:
    watch = Watch(1_000_000)
    clock.now += 10
    assert watch.step(1_010_000 + step) == step
    assert watch.step(1_010_000 + step) is None
    clock.now += 1
    assert watch.step(1_011_000) == -step
