"""Ids that are ordered by time and cannot be guessed: UUID version 7."""

from __future__ import annotations

from collections.abc import Callable

COUNTS = [f"{n:03x}" for n in range(0xFFF, -1, -1)]  # what 12 bits hold, last one first
VARIANT = bytes(0x80 | n & 0x3F for n in range(256))  # a random byte as its variant demands


class Uuid7:
    """Makes UUIDs of version 7: the millisecond, a counter of 12 bits, a random tail.

    The counter runs on through the milliseconds; where it begins anew inside one, the next
    millisecond is borrowed, so that ids never go back, even if the clock does.
    ``random_bytes(n)`` gives n unpredictable bytes; 62 random bits of each id come from it.
    """

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._ms = -1
        self._prefix = ""
        self._ends = self._cycle()  # counter and tail of the ids to come, last one first

    def __call__(self, now: int) -> str:
        """Return the next id of millisecond ``now``."""
        if now > self._ms:
            self._turn(now)
        if not self._ends:
            self._turn(self._ms + 1)
            self._ends = self._cycle()
        return self._prefix + self._ends.pop()

    def _turn(self, ms: int) -> None:
        self._ms = ms
        digits = f"{ms:012x}"
        self._prefix = f"{digits[:8]}-{digits[8:]}-7"

    def _cycle(self) -> list[str]:
        short = bytearray(self._random_bytes(2 * len(COUNTS)))
        short[::2] = short[::2].translate(VARIANT)
        long = self._random_bytes(6 * len(COUNTS))
        tails = zip(COUNTS, short.hex("-", 2).split("-"), long.hex("-", 6).split("-"), strict=True)
        return [f"{count}-{a}-{b}" for count, a, b in tails]
