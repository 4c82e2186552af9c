"""Every deadline of the engine: messages, waiting pulls, and whatever comes later.

Whoever has a deadline carries it in an attribute ``alarm``. An entry is alive while that attribute
still names its moment, so cancelling costs an assignment. A deadline that moves away (a renewed
lease) keeps its earlier entry: when that rings, the owner looks at its real deadline and sets
itself again.

Deadlines mostly come in order, since each kind of span repeats: thirty seconds for every lease,
five for every pull. So a few lines take those that fit behind their last one, and only what fits
nowhere goes into a heap. Dead entries are swept out when they outnumber the living.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol

LINES = 4
SLACK = 1024  # dead entries that are not worth a sweep


class Alarmed(Protocol):
    """Somebody with a deadline."""

    alarm: int | None


Entry = tuple[int, int, Alarmed]  # when, a number that makes it unique, who


class Timers:
    """Deadlines that need no cancelling."""

    def __init__(self) -> None:
        self._lines: list[deque[Entry]] = [deque() for _ in range(LINES)]
        self._heap: list[Entry] = []
        self._n = 0
        self._dead = 0

    def __len__(self) -> int:
        """Return how many entries are held, dead ones among them."""
        return len(self._heap) + sum(map(len, self._lines))

    def set(self, owner: Alarmed, when: int) -> None:
        """Ring ``owner`` at ``when``, or earlier if it is to ring earlier already."""
        alarm = owner.alarm
        if alarm is not None:
            if alarm <= when:
                return
            self._dead += 1
        owner.alarm = when
        self._n += 1
        entry = (when, self._n, owner)
        for line in self._lines:
            if not line or line[-1][0] <= when:
                line.append(entry)
                return
        heappush(self._heap, entry)

    def clear(self, owner: Alarmed) -> None:
        """Let ``owner`` not ring any more."""
        owner.alarm = None
        self._dead += 1
        if self._dead > SLACK and self._dead * 2 > len(self):
            self._sweep()

    def next_wake(self) -> int | None:
        """Return the earliest living deadline."""
        first = self._first()
        return None if first is None else first[0][0]

    def due(self, now: int) -> Iterator[Alarmed]:
        """Take and yield those whose deadline has come; each may set itself again."""
        while (first := self._first()) is not None and first[0][0] <= now:
            owner = (first.popleft() if isinstance(first, deque) else heappop(first))[2]
            owner.alarm = None
            yield owner

    def _first(self) -> deque[Entry] | list[Entry] | None:
        """Return the line, or the heap, that begins with the earliest living entry."""
        best: deque[Entry] | list[Entry] | None = None
        for line in self._lines:
            while line and line[0][2].alarm != line[0][0]:
                line.popleft()
                self._dead -= 1
            if line and (best is None or line[0] < best[0]):
                best = line
        heap = self._heap
        while heap and heap[0][2].alarm != heap[0][0]:
            heappop(heap)
            self._dead -= 1
        return heap if heap and (best is None or heap[0] < best[0]) else best

    def _sweep(self) -> None:
        self._lines = [deque(e for e in line if e[2].alarm == e[0]) for line in self._lines]
        self._heap = [e for e in self._heap if e[2].alarm == e[0]]
        heapify(self._heap)
        self._dead = 0
