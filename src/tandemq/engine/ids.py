"""Ids that are ordered by time and cannot be guessed: UUID version 7."""

from __future__ import annotations

from collections.abc import Callable

TAIL = "{:03x}-VRRR-RRRRRRRRRRRR\n"  # a counter of 12 bits, the variant, random digits
TAILS = "".join(TAIL.format(n) for n in range(0xFFF, -1, -1)).encode()  # the last one first
WIDTH = len(TAIL.format(0))
PLACES = [place for place, mark in enumerate(TAIL.format(0)) if mark in "VR"]
VARIANT = bytes.maketrans(b"0123456789abcdef", b"89ab" * 4)


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
        tails, step = bytearray(TAILS), len(PLACES)
        digits = self._random_bytes(len(TAILS) // WIDTH * step // 2).hex().encode()
        for n, place in enumerate(PLACES):
            tails[place::WIDTH] = digits[n::step]
        variant = PLACES[0]
        tails[variant::WIDTH] = tails[variant::WIDTH].translate(VARIANT)
        return tails.decode().split()
