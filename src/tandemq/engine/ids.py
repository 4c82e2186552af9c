"""Ids that are ordered by time and cannot be guessed: UUID version 7."""

from __future__ import annotations

from collections.abc import Callable

COUNTS = [f"{n:03x}" for n in range(0x1000)]
BATCH = 512  # random tails made at a time: asking for each alone costs four times as much


class Uuid7:
    """Makes UUIDs of version 7: the millisecond, a counter inside it, a random tail.

    ``random_bytes(n)`` gives n unpredictable bytes; 60 random bits of each id come from it.
    """

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._tails: list[str] = []
        self._ms = -1
        self._count = 0
        self._prefix = ""

    def __call__(self, now: int) -> str:
        """Return the next id of millisecond ``now``; ids never go back, even if the clock does."""
        count = self._count
        if now > self._ms or count > 0xFFF:
            # a full millisecond borrows from the next one
            count = self._turn(max(now, self._ms + 1))
        self._count = count + 1
        if not self._tails:
            digits = self._random_bytes(8 * BATCH).hex()
            self._tails = [
                f"-8{digits[i : i + 3]}-{digits[i + 3 : i + 15]}" for i in range(0, len(digits), 16)
            ]
        return self._prefix + COUNTS[count] + self._tails.pop()

    def _turn(self, ms: int) -> int:
        self._ms = ms
        digits = f"{ms:012x}"
        self._prefix = f"{digits[:8]}-{digits[8:]}-7"
        return 0
