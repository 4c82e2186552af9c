"""Every deadline of the engine: messages, waiting pulls, and whatever comes later.

A timer names the generation of its owner for which it was set; it is alive while the owner is
still of that generation. So cancelling costs nothing: whoever moves on leaves its timers behind. A
timer may ring too early, never too late: the owner then looks at its real deadline and sets
another.

Deadlines mostly come in order, since each kind of span repeats: thirty seconds for every lease,
five for every pull. So a few lines take those that fit behind their last one, and only what fits
nowhere goes into a heap. Dead timers are swept out when their number could have doubled.

What ends by the thousand long before its time is *watched* instead: that timer is taken back when
it is not wanted any more, and so keeps nobody in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol

LINES = 4
FAR = 1 << 62  # later than any deadline
SLACK = 2048  # timers that are not worth a sweep


class Owner(Protocol):
    """Somebody with a deadline."""

    gen: int


Timer = tuple[int, int, Owner, int]  # when, a number that makes it unique, who, its generation


class Timers:
    """Deadlines that need no cancelling."""

    def __init__(self) -> None:
        self._lines: list[deque[Timer]] = [deque() for _ in range(LINES)]
        self._heap: list[Timer] = []
        self._watched: dict[int, Timer] = {}  # by key, in the order of their moments
        self._last = 0  # of those moments
        self._n = 0
        self._size = 0
        self._sweep_at = SLACK
        self.soonest = FAR  # none living is earlier

    def __len__(self) -> int:
        """Return how many timers are held, dead ones among them."""
        return self._size + len(self._watched)

    def watch(self, key: int, owner: Owner, when: int) -> None:
        """Do as ``set`` does, unless ``unwatch`` comes first; each key stands for one owner."""
        watched = self._watched
        if when < self._last and watched:
            self.set(owner, when)
            return
        self._last = when
        self._n = n = self._n + 1
        watched[key] = (when, n, owner, owner.gen)
        if when < self.soonest:
            self.soonest = when

    def unwatch(self, key: int) -> None:
        """Forget what is watched under this key, if anything is."""
        self._watched.pop(key, None)

    def set(self, owner: Owner, when: int) -> None:
        """Ring ``owner`` at ``when``, if it is still of its present generation then."""
        self._n = n = self._n + 1
        self._size += 1
        if when < self.soonest:
            self.soonest = when
        timer = (when, n, owner, owner.gen)
        for line in self._lines:
            if not line or line[-1][0] <= when:
                line.append(timer)
                break
        else:
            heappush(self._heap, timer)
        if self._size > self._sweep_at:
            self.sweep()

    def next_wake(self) -> int | None:
        """Return the earliest living deadline."""
        first, watched = self._first(), self._first_watched()
        if first is None and watched is None:
            self.soonest = FAR
            return None
        self.soonest = min(timer[0] for timer in (first and first[0], watched) if timer)
        return self.soonest

    def due(self, now: int) -> Iterator[Owner]:
        """Take and yield those whose deadline has come; each may set itself again."""
        while True:
            first, watched = self._first(), self._first_watched()
            if watched is not None and (first is None or watched < first[0]):
                if watched[0] > now:
                    return
                del self._watched[next(iter(self._watched))]
                yield watched[2]
            elif first is not None and first[0][0] <= now:
                self._size -= 1
                yield (first.popleft() if isinstance(first, deque) else heappop(first))[2]
            else:
                return

    def _first_watched(self) -> Timer | None:
        """Return the earliest living timer of what is watched."""
        watched = self._watched
        while watched:
            key, timer = next(iter(watched.items()))
            if timer[2].gen == timer[3]:
                return timer
            del watched[key]
        return None

    def _first(self) -> deque[Timer] | list[Timer] | None:
        """Return the line, or the heap, that begins with the earliest living timer."""
        best: deque[Timer] | list[Timer] | None = None
        for line in self._lines:
            while line and line[0][2].gen != line[0][3]:
                line.popleft()
                self._size -= 1
            if line and (best is None or line[0] < best[0]):
                best = line
        heap = self._heap
        while heap and heap[0][2].gen != heap[0][3]:
            heappop(heap)
            self._size -= 1
        return heap if heap and (best is None or heap[0] < best[0]) else best

    def set_all(self, owners: Sequence[Owner], when: int) -> None:
        """Do as ``set`` does for each of them."""
        line = next((line for line in self._lines if not line or line[-1][0] <= when), None)
        if line is None:
            for owner in owners:
                self.set(owner, when)
            return
        first, self._n = self._n + 1, self._n + len(owners)
        line.extend([(when, n, owner, owner.gen) for n, owner in enumerate(owners, first)])
        self._size += len(owners)
        if when < self.soonest:
            self.soonest = when
        if self._size > self._sweep_at:
            self.sweep()

    def sweep(self) -> None:
        """Take out every dead timer."""
        self._lines = [deque(t for t in line if t[2].gen == t[3]) for line in self._lines]
        self._heap = [t for t in self._heap if t[2].gen == t[3]]
        heapify(self._heap)
        self._size = len(self._heap) + sum(map(len, self._lines))
        self._sweep_at = 2 * self._size + SLACK
