"""One group's lane: what waits in it, what it holds, and whether a pull may take from it.

The *smallest* priority goes first, then the earliest admission; ``lifo`` means nothing here, and a
message that comes back takes its old place (bunqueue semantics 2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappush, merge

from msgspec import UNSET, Struct, UnsetType

from tandemq.engine.ready import before, before_in_order, take_first, used_up
from tandemq.model.message import Message

SLACK = 256  # stale entries that are not worth a sweep
NO_GROUP = ""  # no group has this name: rules under it are for messages without a group

Entry = tuple[int, int, int, Message]  # priority, seq, generation, message
Key = tuple[int | None, int | None, int | None]


class Terms(Struct, frozen=True, gc=False):
    """What a pull asks of groups: whom it takes from, and the limits that it brings along."""

    affinity: str | UnsetType | None = UNSET  # only this group; None: only what has no group
    concurrency: int | None = None  # leases of one group at a time
    max: int | None = None  # messages of one group within ``duration`` ms
    duration: int | None = None

    @property
    def key(self) -> Key:
        """What decides which lanes are open, apart from affinity."""
        return self.concurrency, self.max, self.duration


NO_TERMS = Terms()


class GroupRule(Struct, frozen=True, omit_defaults=True):
    """What an operator has set for one group; stored as a fact, absent while all is default.

    The limits replace those of pulls that bring some, and mean nothing to pulls without.
    """

    paused: bool = False
    concurrency: int | None = None
    max: int | None = None
    duration: int | None = None  # ms
    weight: int = 1  # messages in each of its turns
    closed_until: int = 0  # a moment; nothing is handed out before it


NO_RULE = GroupRule()


class Lane:
    """The messages of one group that wait, and how many are leased."""

    __slots__ = (
        "_early",
        "_line",
        "_stale",
        "credit",
        "delayed",
        "leased",
        "name",
        "priorities",
        "rule",
        "size",
        "turn",
        "used",
        "window_ends",
    )

    def __init__(self, name: str, rule: GroupRule) -> None:
        self.name = name
        self.rule = rule
        self.size = 0  # of what is ready
        self.priorities: dict[int, int] = {}  # and how many of them have which
        self.delayed = 0
        self.leased = 0
        self.turn = 0  # the smallest is served first
        self.credit = 0  # messages left in this turn
        self.window_ends = 0  # of the rate limit; 0: no window has begun
        self.used: float = 0  # cost of what was handed out in this window
        self._line: deque[Entry] = deque()
        self._early: list[Entry] = []  # a heap of those that came out of order
        self._stale = 0

    @property
    def blank(self) -> bool:
        """Nothing would be lost if the lane were forgotten."""
        return not (self.size or self.delayed or self.leased or self.window_ends)

    def push(self, m: Message) -> None:
        """Add a ready message in its place; ``m.gen`` names this stay."""
        self.size += 1
        self._count(m.priority, 1)
        entry = (m.priority, m.seq, m.gen, m)
        if not self._line or self._line[-1] <= entry:
            self._line.append(entry)
        else:
            heappush(self._early, entry)

    def left(self, m: Message) -> None:
        """A message left without being popped: its entry is stale from now on."""
        self._count(m.priority, -1)
        self.size -= 1
        self._stale += 1
        if self._stale > SLACK and self._stale > self.size:
            self._line = deque(e for e in self._line if e[2] == e[3].gen)
            self._early = [e for e in self._early if e[2] == e[3].gen]
            heapify(self._early)
            self._stale = 0

    def first(self) -> Message | None:
        """Return the message whose turn it is, without taking it out."""
        while (found := self._source()) is not None:
            entry = found[0]
            if entry[2] == entry[3].gen:
                return entry[3]
            take_first(found)
            self._stale -= 1
        return None

    def pop(self) -> None:
        """Take out what ``first`` has just returned."""
        found = self._source()
        assert found is not None, "first has returned a message"
        self._count(found[0][0], -1)
        take_first(found)
        self.size -= 1

    def ahead(self, m: Message, most: int) -> tuple[int, bool]:
        """Count what goes before a ready message of this group; see ``Ready.ahead``."""
        place = (m.priority, m.seq)
        early, few = before(self._early, place, most)
        line, short = before_in_order(self._line, place, most)
        return early + line, few and short

    def all(self) -> Iterator[Message]:
        """Yield what was ready when asked; some may have left already."""
        return used_up(self._early, self._line)

    def _count(self, priority: int, n: int) -> None:
        left = self.priorities.get(priority, 0) + n
        if left:
            self.priorities[priority] = left
        else:
            del self.priorities[priority]

    def _source(self) -> deque[Entry] | list[Entry] | None:
        line, early = self._line, self._early
        if early and (not line or early[0] < line[0]):
            return early
        return line or None

    def __iter__(self) -> Iterator[Message]:
        """Yield the ready messages in the order in which they would be handed out."""
        for entry in merge(self._line, sorted(self._early)):
            if entry[2] == entry[3].gen:
                yield entry[3]

    # -- whether it is open ----------------------------------------------------------------------

    def open(self, terms: Terms, now: int) -> bool:
        """Whether a pull with these terms may take from it."""
        rule = self.rule
        if rule.paused or rule.closed_until > now:
            return False
        if terms.concurrency is not None and self.leased >= (rule.concurrency or terms.concurrency):
            return False
        return terms.max is None or self.window_ends <= now or self.used < (rule.max or terms.max)

    def took(self, terms: Terms, cost: float, now: int) -> bool:
        """Count what was handed out; True when a window of the rate limit begins with it."""
        if terms.max is None or terms.duration is None:
            return False
        begins = self.window_ends <= now
        if begins:
            self.window_ends, self.used = now + (self.rule.duration or terms.duration), 0
        self.used += cost
        return begins
