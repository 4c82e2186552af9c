"""One heap for every deadline of the engine: messages, waiting pulls, and whatever comes later.

Whoever has a deadline carries it in an attribute ``alarm``. An entry of the heap is alive while
that attribute still names its moment, so cancelling costs an assignment. A deadline that moves
away (a renewed lease) keeps its earlier entry: when that rings, the owner looks at its real
deadline and sets itself again. Dead entries are swept out when they outnumber the living.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol

SLACK = 1024  # dead entries that are not worth a sweep


class Alarmed(Protocol):
    """Somebody with a deadline."""

    alarm: int | None


class Timers:
    """Deadlines that need no cancelling."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Alarmed]] = []
        self._n = 0
        self._dead = 0

    def __len__(self) -> int:
        return len(self._heap) - self._dead

    def set(self, owner: Alarmed, when: int) -> None:
        """Ring ``owner`` at ``when``, or earlier if it is to ring earlier already."""
        alarm = owner.alarm
        if alarm is not None:
            if alarm <= when:
                return
            self._dead += 1
        owner.alarm = when
        self._n += 1
        heappush(self._heap, (when, self._n, owner))

    def clear(self, owner: Alarmed) -> None:
        """Let ``owner`` not ring any more."""
        if owner.alarm is None:
            return
        owner.alarm = None
        self._dead += 1
        if self._dead > SLACK and self._dead * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].alarm == entry[0]]
            heapify(self._heap)
            self._dead = 0

    def next_wake(self) -> int | None:
        """Return the earliest living deadline."""
        while self._heap:
            when, _, owner = self._heap[0]
            if owner.alarm == when:
                return when
            heappop(self._heap)
            self._dead = max(0, self._dead - 1)
        return None

    def due(self, now: int) -> Iterator[Alarmed]:
        """Take and yield those whose deadline has come; each may set itself again."""
        while (when := self.next_wake()) is not None and when <= now:
            owner = heappop(self._heap)[2]
            owner.alarm = None
            yield owner
