"""The order in which ready messages are handed out.

Higher priority first; in one priority those with ``lifo`` before all others, newest first; the
others by the moment they became due, then by arrival (bunqueue semantics 2). Each priority is a
lane: nearly every message arrives in order and is appended to a deque, the few that belong further
ahead (a released lease, a back-dated job) wait in a small heap beside it. Removal is lazy: an
entry made for an older generation of its message is skipped when it surfaces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, merge
from itertools import chain, islice, takewhile
from typing import Any, TypeVar

from tandemq.model.message import DEFAULTS, Message

Entry = tuple[int, int, int, Message]  # due, seq, generation, message

T = TypeVar("T", bound=tuple[Any, ...])

SLACK = 1024  # stale entries that are not worth a sweep


def used_up(*entries: Iterable[Entry]) -> Iterator[Message]:
    """Yield the messages of entries as they are now, and let go of each copy on the way.

    To let go of a million at the end would take a moment in which nothing else happens.
    """
    copies = [deque(some) for some in entries]
    for copy in copies:
        while copy:
            yield copy.popleft()[3]


def before(heap: Sequence[Entry], place: tuple[int, int], most: int) -> tuple[int, bool]:
    """Count the living entries of a heap that stand before a place, looking at ``most`` of them.

    The second tells whether these are all. An entry has none before it that follows it in the
    heap, so only those that count are looked at.
    """
    n, look = 0, [0]
    while look and most > 0:
        i = look.pop()
        if i < len(heap) and heap[i][:2] < place:
            most -= 1
            n += heap[i][2] == heap[i][3].gen
            look += (2 * i + 1, 2 * i + 2)
    return n, not any(i < len(heap) and heap[i][:2] < place for i in look)


def before_in_order(line: Sequence[Entry], place: tuple[int, int], most: int) -> tuple[int, bool]:
    """Count as ``before`` does where the entries stand in order, so that a look may end early."""
    n = sum(e[2] == e[3].gen for e in takewhile(lambda e: e[:2] < place, islice(line, most)))
    return n, len(line) <= most or line[most][:2] >= place


def take_first(source: deque[T] | list[T]) -> T:
    """Take the first entry out of a line, or out of a heap."""
    return source.popleft() if isinstance(source, deque) else heappop(source)


class Lane:
    """The ready messages of one priority."""

    __slots__ = ("early", "line", "stack", "stale")

    def __init__(self) -> None:
        self.stale = 0  # entries of messages that are not here any more
        self.line: deque[Entry] = deque()  # by (due, seq)
        self.early: list[Entry] = []  # a heap of those that came out of order
        self.stack: list[Entry] = []  # lifo: a heap by -seq

    def pop(self) -> Entry | None:
        if self.stack:
            return heappop(self.stack)
        if self.early and (not self.line or self.early[0] < self.line[0]):
            return heappop(self.early)
        return self.line.popleft() if self.line else None

    def first(self) -> Entry | None:
        """Return what ``pop`` would take out."""
        if self.stack:
            return self.stack[0]
        if self.early and (not self.line or self.early[0] < self.line[0]):
            return self.early[0]
        return self.line[0] if self.line else None

    def ahead(self, m: Message, most: int) -> tuple[int, bool]:
        """Count what goes before a message of this lane; see ``Ready.ahead``."""
        if m.options.lifo:
            return before(self.stack, (0, -m.seq), most)
        place = (m.due, m.seq)
        counts = (
            before(self.stack, (1, 0), most),  # all of it
            before(self.early, place, most),
            before_in_order(self.line, place, most),
        )
        return sum(n for n, _ in counts), all(exact for _, exact in counts)

    def entries(self) -> Iterator[Entry]:
        return chain(sorted(self.stack), merge(self.line, sorted(self.early)))

    def entries_reversed(self) -> Iterator[Entry]:
        early = sorted(self.early, reverse=True)
        return chain(merge(reversed(self.line), early, reverse=True), sorted(self.stack)[::-1])

    def sweep(self) -> None:
        self.line = deque(e for e in self.line if e[2] == e[3].gen)
        self.early = [e for e in self.early if e[2] == e[3].gen]
        self.stack = [e for e in self.stack if e[2] == e[3].gen]
        self.stale = 0
        heapify(self.early)
        heapify(self.stack)


class Ready:
    """What may be handed out, best first."""

    __slots__ = ("_lanes", "_order", "_size", "_stale")

    def __init__(self) -> None:
        self._lanes: dict[int, Lane] = {}
        self._order: list[int] = []  # a heap of -priority, one for each lane
        self._size = 0
        self._stale = 0

    def __len__(self) -> int:
        return self._size

    def push(self, m: Message) -> None:
        """Add a message in its place; ``m.gen`` names this stay."""
        priority = m.priority
        lane = self._lanes.get(priority)
        if lane is None:
            lane = self._lanes[priority] = Lane()
            heappush(self._order, -priority)
        self._size += 1
        if m.options.lifo:
            heappush(lane.stack, (0, -m.seq, m.gen, m))
            return
        entry = (m.due, m.seq, m.gen, m)
        line = lane.line
        if not line or line[-1] <= entry:
            line.append(entry)
        else:
            heappush(lane.early, entry)

    def pop(self) -> Message | None:
        """Take out the message whose turn it is."""
        while self._order:
            lane = self._lanes[-self._order[0]]
            entry = lane.pop()
            if entry is None:
                del self._lanes[-heappop(self._order)]
            elif entry[2] == entry[3].gen:
                self._size -= 1
                return entry[3]
            else:
                lane.stale -= 1
                self._stale -= 1
        return None

    def fresh(self, most: int, room: int) -> list[Message]:
        """Take out those whose turn it is, while they have default options and never ran.

        They come from one line, at most so many, until the ``room`` for their bodies (bytes) is
        overdrawn. What stands before others out of order ends it.
        """
        taken: list[Message] = []
        lane = self._lanes[-self._order[0]] if self._order else None
        if lane is None or lane.early or lane.stack:
            return taken
        line = lane.line
        while line and len(taken) < most and room >= 0:
            _, _, gen, m = line[0]
            if m.gen != gen or m.options is not DEFAULTS or m.run is not None:
                break
            taken.append(m)
            room -= len(m.body)
            line.popleft()
        self._size -= len(taken)
        return taken

    def peek(self) -> Message | None:
        """Return the message whose turn it is, without taking it out."""
        while self._order:
            lane = self._lanes[-self._order[0]]
            entry = lane.first()
            if entry is None:
                del self._lanes[-heappop(self._order)]
            elif entry[2] == entry[3].gen:
                return entry[3]
            else:
                lane.pop()
                lane.stale -= 1
                self._stale -= 1
        return None

    def left(self, m: Message) -> None:
        """A message left READY without being popped: its entry is stale from now on."""
        if self._stale > SLACK and self._stale > self._size:
            for lane in self._lanes.values():
                lane.sweep()  # before its own entry is stale: a sweep tells that by the generation
            self._stale = 0
        lane = self._lanes[m.priority]
        lane.stale += 1
        self._size -= 1
        self._stale += 1
        line = lane.line
        while line and line[0][2] != line[0][3].gen:  # a queue that is drained needs no sweep
            line.popleft()
            lane.stale -= 1
            self._stale -= 1

    def priorities(self) -> dict[int, int]:
        """Return how many messages of each priority are ready."""
        counts = {
            priority: len(lane.line) + len(lane.early) + len(lane.stack) - lane.stale
            for priority, lane in self._lanes.items()
        }
        return {priority: n for priority, n in counts.items() if n}

    def ahead(self, m: Message, most: int) -> tuple[int, bool]:
        """Count the messages that go before a ready one, and tell whether these are all.

        Those of higher priority are counted for certain, those of its own priority by a look at
        about ``most`` of them, so that asking costs the same however many there are.
        """
        higher = sum(n for priority, n in self.priorities().items() if priority > m.priority)
        n, exact = self._lanes[m.priority].ahead(m, most)
        return higher + n, exact

    def all(self) -> Iterator[Message]:
        """Yield the ready messages by priority, noted down lane by lane as quickly as possible.

        Some may have left already, and some may come twice: look at each before doing anything.
        Messages may come and go in between.
        """
        for priority in sorted(self._lanes, reverse=True):
            lane = self._lanes.get(priority)
            if lane is not None:
                yield from used_up(lane.stack, lane.early, lane.line)

    def oldest(self) -> Iterator[Message]:
        """Yield the ready messages, those of the lowest priority first, oldest before newest."""
        for priority in sorted(self._lanes):
            for entry in self._lanes[priority].entries():
                if entry[2] == entry[3].gen:
                    yield entry[3]

    def __iter__(self) -> Iterator[Message]:
        """Yield the ready messages in the order in which they would be handed out."""
        for priority in sorted(self._lanes, reverse=True):
            for entry in self._lanes[priority].entries():
                if entry[2] == entry[3].gen:
                    yield entry[3]

    def __reversed__(self) -> Iterator[Message]:
        """Yield the ready messages, the one that would be handed out last first."""
        for priority in sorted(self._lanes):
            for entry in self._lanes[priority].entries_reversed():
                if entry[2] == entry[3].gen:
                    yield entry[3]
