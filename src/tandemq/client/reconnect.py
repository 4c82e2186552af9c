"""How long to wait before the next attempt to connect."""

from __future__ import annotations

import random

JITTER = 0.3  # of a delay, added at most


class Backoff:
    """Delays in seconds that double up to a longest one, each a little longer by chance.

    Chance keeps many clients of one server from coming back in the same instant.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest = first, longest
        self.attempts = 0

    def next(self) -> float:
        """Return the delay before the next attempt, in seconds."""
        doubled = self._first * 2.0 ** min(self.attempts, 62)
        self.attempts += 1
        return min(doubled, self._longest) * (1 + JITTER * random.random())

    def reset(self) -> None:
        """Begin again: an attempt succeeded."""
        self.attempts = 0
