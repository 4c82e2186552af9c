"""The server's own figures for reports: rates, durations, memory, and all of them as Prometheus.

Durations are measured by turns of the loop, not by command: a turn's time is shared by the pushes,
pulls and completions that it did. That costs two clock readings a turn and is exact where a turn
does one kind of work, which is nearly always.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from tandemq.engine.counters import Counters
from tandemq.server.rates import Rates

if TYPE_CHECKING:
    from tandemq.server.runtime import Runtime

# s; upper bounds of the buckets, the reference's
BOUNDS = (
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
)  # fmt: skip
KINDS = ("push", "pull", "ack")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Histogram:
    """Durations of one kind, in buckets."""

    __slots__ = ("buckets", "count", "sum")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.count = 0
        self.sum = 0.0  # s

    def add(self, seconds: float, times: int) -> None:
        """Add a duration that was seen ``times`` times."""
        self.buckets[bisect_left(BOUNDS, seconds)] += times
        self.count += times
        self.sum += seconds * times

    def average(self) -> float:
        """Return the mean in s."""
        return self.sum / self.count if self.count else 0.0

    def percentile(self, share: float) -> float:
        """Return a duration in s that ``share`` of all do not exceed: the bound of its bucket."""
        wanted, seen = share * self.count, 0
        for bound, times in zip((*BOUNDS, BOUNDS[-1]), self.buckets, strict=True):
            seen += times
            if seen >= wanted and seen:
                return bound
        return 0.0


class Durations:
    """How long pushes, pulls and completions take the server."""

    def __init__(self) -> None:
        self.of = {kind: Histogram() for kind in KINDS}
        self._before = (0, 0, 0)

    def turn_took(self, seconds: float, counters: Counters) -> None:
        """A turn is over: share its time among what it did."""
        before = self._before
        self._before = pushed, pulled, completed = (
            counters.pushed,
            counters.pulled,
            counters.completed,
        )
        pushed, pulled, completed = pushed - before[0], pulled - before[1], completed - before[2]
        done = pushed + pulled + completed
        if not done:
            return
        share, of = seconds / done, self.of
        if pushed:
            of["push"].add(share, pushed)
        if pulled:
            of["pull"].add(share, pulled)
        if completed:
            of["ack"].add(share, completed)


class Monitor:
    """What the server tells of itself (commands.call.Monitor)."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._rates = Rates(time.perf_counter())

    def latency(self) -> dict[str, Any]:
        """Return mean durations and percentiles, in ms."""
        durations = self._runtime.meter.durations.of
        return {
            "averages": {
                f"{kind}Ms": round(seen.average() * 1000, 4) for kind, seen in durations.items()
            },
            "percentiles": {
                kind: {
                    f"p{share}": round(seen.percentile(share / 100) * 1000, 4)
                    for share in (50, 95, 99)
                }
                for kind, seen in durations.items()
            },
        }

    def rates(self) -> dict[str, float]:
        """Return rates a second since the last sample, which is at least a second old."""
        rates = self._rates.at(time.perf_counter(), self._runtime.engine.counters)
        return {
            "pushPerSec": rates["pushed"],
            "pullPerSec": rates["pulled"],
            "completePerSec": rates["completed"],
            "failPerSec": rates["failed"],
        }

    def memory(self) -> dict[str, int]:
        """Return bytes of the process: data it may write, the same in memory, all in memory."""
        try:
            with open("/proc/self/statm", encoding="ascii") as file:
                pages = [int(word) for word in file.read().split()]
        except OSError:
            return {"heapUsed": 0, "heapTotal": 0, "rss": 0}
        rss, shared, data = pages[1], pages[2], pages[5]
        return {"heapUsed": (rss - shared) * PAGE, "heapTotal": data * PAGE, "rss": rss * PAGE}

    def store_bytes(self) -> int:
        """Return how much the store occupies."""
        return self._runtime.store.size_bytes()

    def connections(self) -> int:
        """Return how many connections are open."""
        return len(self._runtime.connections)

    def links(self) -> dict[str, int]:
        """Return how many connections are open, by what they speak."""
        from tandemq.server.connections import Connection  # which builds on this module

        open = self._runtime.connections.values()
        return {"tcp": sum(type(c) is Connection for c in open), **self._runtime.feed.open}

    def prometheus(self) -> str:
        """Return every figure as text exposition."""
        from tandemq.server.prometheus import exposition

        return exposition(self._runtime)
