"""How fast the engine's counters grow."""

from __future__ import annotations

from tandemq.engine.counters import Counters

WINDOW = 1.0  # s between samples of the counters
COUNTED = ("pushed", "pulled", "completed", "failed")


class Rates:
    """Growth since the last sample, for one reader: a new one is taken when that one is old."""

    def __init__(self, now: float) -> None:
        """``now`` is a moment in s on a clock that only runs, here and below."""
        self._sampled = now
        self._totals = dict.fromkeys(COUNTED, 0)
        self._rates = dict.fromkeys(COUNTED, 0.0)

    def at(self, now: float, counters: Counters) -> dict[str, float]:
        """Return how many of each a second."""
        span = now - self._sampled
        if span >= WINDOW:
            before, self._totals = self._totals, {n: getattr(counters, n) for n in COUNTED}
            self._rates = {n: round((self._totals[n] - before[n]) / span, 1) for n in COUNTED}
            self._sampled = now
        return self._rates
