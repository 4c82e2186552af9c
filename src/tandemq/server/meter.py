"""What the server measures of itself: its clock, uptime, rates, the longest turn of its loop."""

from __future__ import annotations

import time

from tandemq.engine.counters import Counters
from tandemq.server.monitor import Durations
from tandemq.server.rates import Rates

_ahead = 0  # ms; only tests move the clock


def now_ms() -> int:
    """Return the moment, in ms since the epoch."""
    return time.time_ns() // 1_000_000 + _ahead


def move(ms: int) -> None:
    """Let so much time have gone by, for every server of this process; for tests."""
    global _ahead
    _ahead += ms


class Watch:
    """Notices when somebody sets the wall clock."""

    TOLERANCE = 2_000  # ms

    def __init__(self, now: int) -> None:
        self._ahead = now - _monotonic()

    def step(self, now: int) -> int | None:
        """Return by how many ms the clock was set since the last look, None if it was not."""
        step = now - _monotonic() - self._ahead
        if abs(step) <= self.TOLERANCE:
            return None
        self._ahead += step
        return step


def _monotonic() -> int:
    return time.monotonic_ns() // 1_000_000 + _ahead


class Meter:
    """Cheap measurements: two clock readings a turn."""

    def __init__(self) -> None:
        self.clock = time.perf_counter  # s
        self._started = self._began = self.clock()
        self._longest = 0.0
        self.durations = Durations()
        self._rates = Rates(self._started)

    @property
    def uptime(self) -> float:
        """The time since the start, in s."""
        return self.clock() - self._started

    def turn_began(self) -> float:
        """Return the moment, in s of the clock."""
        self._began = self.clock()
        return self._began

    def turn_ended(self, counters: Counters) -> None:
        took = self.clock() - self._began
        self._longest = max(self._longest, took)
        self.durations.turn_took(took, counters)

    def stats(self, counters: Counters, connections: int) -> dict[str, float]:
        """Return uptime in s, rates a second since the last look, the longest turn in ms."""
        now = self.clock()
        rates = self._rates.at(now, counters)
        longest, self._longest = self._longest, 0.0
        return {
            "uptime": round(now - self._started, 3),
            "pushPerSec": rates["pushed"],
            "pullPerSec": rates["pulled"],
            "loopLagMs": round(longest * 1000, 3),
            "connections": connections,
            "retried": counters.retried,
            "expired": counters.expired,
            "stalled": counters.stalled,
            "interrupted": counters.interrupted,
        }
