"""Memory pressure: what publishers feel while too much is stored.

Every message in memory is accounted: its body, its headers, and a fixed sum for the rest. Above
80 % of what is allowed publishers are answered more and more slowly, from 90 % on they wait, and
from 95 % on each queue does what it does when it is full. A level is left five points lower than
it was entered, so that it does not flap (VibeMQ semantics 7, ruling 19).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from tandemq.model.message import Message

if TYPE_CHECKING:
    from tandemq.engine.core import Engine
    from tandemq.engine.overflow import Blocked

OVERHEAD = 600  # bytes of a message besides its body and its headers
HEADER = 100  # bytes of a header besides its texts
MARGIN = 0.05  # of the limit, below the entry of a level
SLOWEST = 500  # ms that an answer is late just below the level where publishers wait


class Level(IntEnum):
    """How full the memory is; the numbers are per cent."""

    CALM = 0
    SLOW = 80
    HELD = 90
    FULL = 95


LEVELS = (Level.SLOW, Level.HELD, Level.FULL)


@dataclass(slots=True, eq=False)
class Slow:
    """An answer that is given late, so that its publisher takes its time."""

    conn: int
    req: Any
    reply: Any
    gen: int = 0


def weight(m: Message) -> int:
    """Return the bytes that a message is accounted for."""
    letter = m.letter
    if letter is None or not letter.headers:
        return OVERHEAD + len(m.body)
    size_bytes = OVERHEAD + len(m.body)
    for key, value in letter.headers.items():
        size_bytes += HEADER + len(key) + len(value)
    return size_bytes


class Pressure:
    """The bytes in use, and who waits for them to become fewer."""

    __slots__ = ("changes", "enter_at", "gen", "held", "leave_at", "level", "limit", "used")

    def __init__(self, limit: int) -> None:
        """``limit`` in bytes; 0: none."""
        self.limit = limit
        self.used = 0
        self.level = Level.CALM
        self.changes = 0  # of the level
        self.held: deque[Blocked] = deque()  # publishers, from all queues, in order
        self.gen = 0
        self._stay()

    @property
    def share(self) -> float:
        """The part of the memory that is in use, 0 without a limit."""
        return self.used / self.limit if self.limit else 0.0

    @property
    def lateness(self) -> int:
        """How many ms late a publisher is answered while answers are slow."""
        start, end = self._entry(Level.SLOW), self._entry(Level.HELD)
        part = (self.used - start) / max(1.0, end - start)
        return int(SLOWEST * min(1.0, max(0.02, part)))

    def grow(self, engine: Engine, size_bytes: int) -> None:
        """More is in use, or less, by so many bytes."""
        self.used += size_bytes
        if not self.leave_at <= self.used < self.enter_at:
            if self.held or engine.blocked:
                engine.timers.set(self, 0)  # they may come in, or be refused
            if not self.held or self.due >= Level.HELD:
                self.move()  # else it waits for those who come first

    @property
    def due(self) -> Level:
        """The level that what is in use calls for."""
        entered = max((at for at in LEVELS if self.used >= self._entry(at)), default=Level.CALM)
        kept = max((at for at in LEVELS if self.used >= self._exit(at)), default=Level.CALM)
        return max(entered, min(kept, self.level))

    def move(self) -> None:
        """Be at the level that is due."""
        level = self.due
        if level is not self.level:
            self.level = level
            self.changes += 1
            self._stay()

    def _stay(self) -> None:
        """Note between which figures the level stays what it is."""
        higher = [self._entry(level) for level in LEVELS if level > self.level]
        self.enter_at = min(higher, default=math.inf) if self.limit else math.inf
        self.leave_at = self._exit(self.level) if self.level else -math.inf

    def _entry(self, level: Level) -> float:
        return self.limit * level / 100

    def _exit(self, level: Level) -> float:
        return self.limit * (level / 100 - MARGIN)
