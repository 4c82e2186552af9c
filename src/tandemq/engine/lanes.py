"""The lanes of a queue: one for each group, served in turn, beside the messages without a group.

A queue gets lanes with its first grouped message or its first rule for a group. Messages without a
group go first; then one message from each lane in turn. A lane that was served goes to the back, a
lane that was passed over keeps its turn, one that was empty joins at the back (bunqueue semantics
2).

Pulls may bring terms of their own, so a lane can be shut for one pull and open for another. For
each set of terms in use there is one ``Turns``: the lanes that may be open under these terms. A
lane found shut there leaves it, and is offered again to all of them by whatever may have opened it:
a lease of the group that ends, another rule, or time. So finding whose turn it is does not mean
looking at every lane, however many there are and however many are shut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from operator import attrgetter

from msgspec import UNSET
from msgspec.structs import replace

from tandemq.engine.lane import NO_GROUP, NO_RULE, GroupRule, Key, Lane, Terms
from tandemq.engine.ready import Ready, take_first
from tandemq.model.message import Message, State

LEASED, DELAYED = State.LEASED, State.DELAYED

SLACK = 256  # lanes in a view that are not worth a sweep
VIEWS = 8  # sets of terms that are kept ready; pulls of one queue rarely have more than one


class Turns:
    """Lanes that may be open under one set of terms, in turn."""

    __slots__ = ("_early", "_line", "inside")

    def __init__(self) -> None:
        self.inside: set[Lane] = set()
        self._line: deque[tuple[int, Lane]] = deque()
        self._early: list[tuple[int, Lane]] = []

    def add(self, lane: Lane) -> None:
        """Let a lane take part again, in its turn."""
        if lane not in self.inside:
            self.inside.add(lane)
            self._put(lane)

    def first(self) -> Lane | None:
        """Return the lane whose turn it is; it stays."""
        while (source := self._source()) is not None:
            turn, lane = source[0]
            if lane.size and turn == lane.turn:
                return lane
            take_first(source)
            if lane.size:
                self._put(lane)  # served meanwhile, perhaps under other terms
            else:
                self.inside.discard(lane)
        return None

    def drop(self, lane: Lane) -> None:
        """Let the first lane go: it is shut."""
        source = self._source()
        assert source is not None, "the first lane is there"
        take_first(source)
        self.inside.discard(lane)

    def _put(self, lane: Lane) -> None:
        if not self._line or self._line[-1][0] < lane.turn:
            self._line.append((lane.turn, lane))
        else:
            heappush(self._early, (lane.turn, lane))

    def _source(self) -> deque[tuple[int, Lane]] | list[tuple[int, Lane]] | None:
        line, early = self._line, self._early
        if early and (not line or early[0][0] < line[0][0]):
            return early
        return line or None


class Lanes:
    """All that waits in a queue with groups; it stands where a queue without has its ``Ready``."""

    def __init__(self, plain: Ready) -> None:
        self.plain = plain
        self.lanes: dict[str, Lane] = {}
        self.rules: dict[str, GroupRule] = {}
        self.lapsed: list[str] = []  # groups whose closure is over, but still in their rule
        self.grouped = 0  # ready messages in lanes
        self.delayed = 0  # messages of groups that are due later
        self._turn = 0
        self._views: dict[Key, Turns] = {}
        self._timed: list[tuple[int, str]] = []  # a heap: when time may open which lane

    # -- as an order of ready messages -------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.plain) + self.grouped

    def push(self, m: Message) -> None:
        """Add a message that became ready."""
        if m.options.group is None:
            self.plain.push(m)
            return
        lane = self.lane(m.options.group)
        if not lane.size:
            self._to_the_back(lane)
        lane.push(m)
        self.grouped += 1
        if lane.size == 1:
            self.offer(lane)

    def peek(self) -> Message | None:
        """Return what is first of that without a group."""
        return self.plain.peek()

    def pop(self) -> Message | None:
        """Take out what is first of that without a group."""
        return self.plain.pop()

    def fresh(self, most: int, room: int) -> list[Message]:
        """Take out some of that without a group; see ``Ready.fresh``."""
        return self.plain.fresh(most, room)

    def left(self, m: Message) -> None:
        """A message left READY without being popped."""
        if m.options.group is None:
            self.plain.left(m)
            return
        lane = self.lane(m.options.group)
        lane.left(m)
        self.grouped -= 1
        self.forget(lane)

    def ahead(self, m: Message, most: int) -> tuple[int, bool]:
        """Count what goes before a ready message among those without a group, or in its lane."""
        group = m.options.group
        return (self.plain if group is None else self.lane(group)).ahead(m, most)

    def priorities(self) -> dict[int, int]:
        """Return how many messages of each priority are ready."""
        counts = self.plain.priorities()
        for lane in self.lanes.values():
            for priority, n in lane.priorities.items():
                counts[priority] = counts.get(priority, 0) + n
        return counts

    def oldest(self) -> Iterator[Message]:
        """Yield what has no group; see ``Ready.oldest``."""
        return self.plain.oldest()

    def all(self) -> Iterator[Message]:
        """Yield the ready messages; see ``Ready.all``."""
        yield from self.plain.all()
        for lane in list(self.lanes.values()):
            yield from lane.all()

    def __iter__(self) -> Iterator[Message]:
        """Yield what has no group, then lane after lane in the order of their turns."""
        yield from self.plain
        for lane in sorted(self.lanes.values(), key=attrgetter("turn")):
            yield from lane

    def __reversed__(self) -> Iterator[Message]:
        for lane in sorted(self.lanes.values(), key=attrgetter("turn"), reverse=True):
            yield from reversed(list(lane))
        yield from reversed(self.plain)

    # -- counting ----------------------------------------------------------------------------------

    @property
    def blank(self) -> bool:
        """Nothing would be lost if the lanes were forgotten."""
        return not (self.lanes or self.rules)

    def waiting(self, group: str) -> int:
        """Return how many messages of a group are ready or will be by time alone."""
        lane = self.lanes.get(group)
        return lane.size + lane.delayed if lane else 0

    def entered(self, m: Message) -> None:
        """A grouped message reached its present state; what is ready is pushed besides."""
        if m.state is DELAYED:
            self.lane(m.options.group or "").delayed += 1
            self.delayed += 1
        elif m.state is LEASED:
            self.lane(m.options.group or "").leased += 1

    def leaves(self, m: Message) -> None:
        """A grouped message is about to leave its state; of what is ready, ``left`` tells."""
        state = m.state
        if state is DELAYED:
            lane = self.lane(m.options.group or "")
            lane.delayed -= 1
            self.delayed -= 1
        elif state is LEASED:
            lane = self.lane(m.options.group or "")
            lane.leased -= 1
            self.offer(lane)
        else:
            return
        self.forget(lane)

    def lane(self, group: str) -> Lane:
        """Return the lane of a group; it begins to exist with the first message."""
        lane = self.lanes.get(group)
        if lane is None:
            lane = self.lanes[group] = Lane(group, self.rules.get(group, NO_RULE))
        return lane

    def forget(self, lane: Lane) -> None:
        """Let go of a lane that holds nothing, so that made-up groups do not fill the memory."""
        if lane.blank:
            self.lanes.pop(lane.name, None)

    # -- whose turn it is --------------------------------------------------------------------------

    def front(self, terms: Terms, now: int) -> tuple[Lane | None, Message] | None:
        """Return what a pull with these terms gets next, and its lane; None when all is shut."""
        if self._timed and self._timed[0][0] <= now:
            self.advance(now)
        wanted = terms.affinity
        if wanted is UNSET or wanted is None:
            m = self.plain.peek()
            if m is not None and (not self.rules or self._plain_open(now)):
                return None, m
            if wanted is None:
                return None
            lane = self._next_open(terms, now)
        else:
            lane = self.lanes.get(wanted)
            if lane is not None and not (lane.size and lane.open(terms, now)):
                return None
        m = None if lane is None else lane.first()
        return None if m is None else (lane, m)

    def take(self, lane: Lane) -> None:
        """Take out what ``front`` has just returned; its lane has had its turn."""
        self.drop(lane)
        lane.credit -= 1
        if lane.credit <= 0:
            self._to_the_back(lane)

    def drop(self, lane: Lane) -> None:
        """Take out the first of a lane without using up its turn."""
        lane.pop()
        self.grouped -= 1

    def _plain_open(self, now: int) -> bool:
        rule = self.rules.get(NO_GROUP)
        return rule is None or rule.closed_until <= now

    def _next_open(self, terms: Terms, now: int) -> Lane | None:
        turns = self._turns(terms.key)
        while (lane := turns.first()) is not None and not lane.open(terms, now):
            turns.drop(lane)
        return lane

    def _turns(self, key: Key) -> Turns:
        turns = self._views.get(key)
        if turns is not None and len(turns.inside) > 2 * len(self.lanes) + SLACK:
            turns = None  # nobody has looked for long: most of these lanes are gone
        if turns is None:
            if len(self._views) >= VIEWS:
                del self._views[next(iter(self._views))]
            turns = self._views[key] = Turns()
            for lane in sorted(self.lanes.values(), key=attrgetter("turn")):
                if lane.size:
                    turns.add(lane)
        return turns

    def _to_the_back(self, lane: Lane) -> None:
        self._turn += 1
        lane.turn = self._turn
        lane.credit = lane.rule.weight

    # -- what opens and shuts ----------------------------------------------------------------------

    def offer(self, lane: Lane) -> None:
        """A lane may have opened: let it take part again."""
        if not lane.size:
            return
        bound = 2 * len(self.lanes) + SLACK
        for key, turns in list(self._views.items()):
            if len(turns.inside) > bound:
                del self._views[key]  # nobody looks at it any more
            else:
                turns.add(lane)

    def set_rule(self, group: str, rule: GroupRule) -> None:
        """Replace the rule of a group."""
        if rule == NO_RULE:
            self.rules.pop(group, None)
        else:
            self.rules[group] = rule
        if rule.closed_until:
            self.at(rule.closed_until, group)
        lane = self.lanes.get(group)
        if lane is not None:
            lane.credit += rule.weight - lane.rule.weight
            lane.rule = rule
            self.offer(lane)

    def at(self, moment: int, group: str) -> None:
        """Look at a group again at some moment."""
        heappush(self._timed, (moment, group))

    @property
    def wakes(self) -> int | None:
        """The next moment at which time alone may open a lane."""
        return self._timed[0][0] if self._timed else None

    def advance(self, now: int) -> None:
        """Open what time has opened."""
        while self._timed and self._timed[0][0] <= now:
            name = heappop(self._timed)[1]
            rule = self.rules.get(name)
            if rule is not None and 0 < rule.closed_until <= now:
                self.lapsed.append(name)
            lane = self.lanes.get(name)
            if lane is not None:
                if lane.window_ends <= now:
                    lane.window_ends, lane.used = 0, 0
                self.offer(lane)
                self.forget(lane)

    def shift_spans(self, step: int) -> None:
        """The wall clock was set: windows and closures keep their length."""
        self._timed = []
        for lane in self.lanes.values():
            if lane.window_ends:
                lane.window_ends += step
                self.at(lane.window_ends, lane.name)
        for name, rule in list(self.rules.items()):
            if rule.closed_until:
                self.set_rule(name, replace(rule, closed_until=rule.closed_until + step))
