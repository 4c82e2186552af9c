"""What may be handed out of a queue that has limits, groups, or pulls with terms of their own.

A queue without any of these never comes here: ``Queue.limited`` is False, and the matchmaker
serves it in one short loop. Here a message goes out only if the queue has a place left (its
concurrency counts everything leased), its lane is open, and the rate limit has tokens for its cost;
a place or tokens are used only when a message really goes out (bunqueue semantics 2 and 8).

Liveness: no consumer waits while a message that *it* may take is ready. What only time can change,
a token, the end of a window, of a closure or of a limit, rings the one alarm of the queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from tandemq.engine.consumers import Subscription
from tandemq.engine.lane import NO_TERMS, Lane, Terms
from tandemq.engine.lanes import Lanes
from tandemq.engine.timers import FAR
from tandemq.model.broker import options_of
from tandemq.model.errors import BadRequest
from tandemq.model.message import DEFAULTS, Message, State
from tandemq.model.policy import Rate, deadline, expires

if TYPE_CHECKING:
    from tandemq.engine.consumers import Consumer
    from tandemq.engine.core import Engine
    from tandemq.engine.queue import Queue, Settings

LEASED = State.LEASED

NEVER = FAR  # time alone does not bring it
ROUNDING = 1e-3  # ms; a moment computed in floats may be off by less


class Bucket:
    """The tokens of a rate limit.

    Instead of a level it keeps the moment at which it is full again: so it needs no refilling, and
    shifting the clock is one addition. What costs more than the bucket holds goes out when it is
    full, and leaves a debt: the average rate is kept.
    """

    __slots__ = ("capacity", "full_at", "span")

    def __init__(self, rate: Rate) -> None:
        self.capacity = rate.max
        self.span = rate.duration / rate.max if rate.max > 0 else 0.0  # ms for one token
        self.full_at: float = 0

    def opens_at(self, cost: float) -> int:
        """Return the moment from which there is enough for ``cost``."""
        return self.has_at(min(cost, self.capacity), 0)

    def has_at(self, tokens: float, now: int) -> int:
        """Return the moment at which there would be so many tokens, if there were room for them."""
        if self.capacity <= 0:
            return NEVER
        missing = (self.capacity - tokens) * self.span
        return ceil(max(self.full_at, now) - missing - ROUNDING)

    def draw(self, cost: float, now: int) -> None:
        """Use tokens."""
        self.full_at = max(self.full_at, now) + cost * self.span


@dataclass(slots=True, eq=False)
class Alarm:
    """The timer of a queue that has limits or groups."""

    queue: str
    gen: int = 0
    at: int = FAR  # when it rings; FAR: it is not set


def limited(q: Queue) -> bool:
    """Whether a queue has anything that has to be asked before a message is handed out."""
    s = q.settings
    return asks(q) or s.broker is not None or bool(q.subscriptions)


def asks(q: Queue) -> bool:
    """Whether it depends on more than whose turn it is who gets what."""
    return _asks_always(q) or q.ring.choosy > 0


def _asks_always(q: Queue) -> bool:
    s = q.settings
    return q.groups is not None or s.rate is not None or s.concurrency is not None


def open_lanes(q: Queue) -> Lanes:
    """Return the lanes of a queue; from the first time on it asks about groups."""
    lanes = q.groups
    if lanes is None:
        assert not isinstance(q.ready, Lanes), "lanes stand in both places or in none"
        q.ready = q.groups = lanes = Lanes(q.ready)
        q.limited, q.straight = True, False
    return lanes


def adopt(engine: Engine, q: Queue, before: Settings) -> None:
    """Settings of a queue have changed: follow them. A new rate limit begins with full tokens."""
    rate = q.settings.rate
    if rate != before.rate:
        q.bucket = None if rate is None else Bucket(rate)
    if q.settings.stall != before.stall:
        _watch_again(engine, q)
    q.limited = limited(q) or q.ring.choosy > 0
    policy = q.settings.broker
    q.fans_out = policy is not None and policy.fans_out and policy.decided
    q.bounded = policy is not None
    q.straight = policy is not None and policy.decided and q.open and not _asks_always(q)
    q.options = DEFAULTS if policy is None else options_of(policy)
    if q.fans_out:
        _turn_away(engine, q)
    arm(engine, q)
    if q.ring or q.name in engine.blocked:
        ring_at(engine, q, 0)  # it may have opened


def _turn_away(engine: Engine, q: Queue) -> None:
    """Tell those who wait for a message of their own that everybody gets every message here.

    Whoever is subscribed stands in the ring, so that what comes is looked at.
    """
    for sub in q.subscriptions:
        if sub not in q.ring:
            q.ring.add(sub)
    for c in [c for c in q.ring if not isinstance(c, Subscription)]:
        engine.answer(c, [], to_be_subscribed(q.name))


def to_be_subscribed(queue: str) -> BadRequest:
    """Return the refusal of a pull on a queue that fans out."""
    return BadRequest(f"Queue {queue} fans out to its subscribers: subscribe to it, do not pull")


def _watch_again(engine: Engine, q: Queue) -> None:
    """Set the timers of leased messages anew; an old one that rings as well does no harm."""
    for m in q.members[LEASED].values():
        if (at := deadline(m, q.settings.stall)) is not None:
            engine.timers.set(m, at)


def full(q: Queue) -> bool:
    """Whether a queue has as many leased messages as it may have."""
    limit = q.settings.concurrency
    return limit is not None and len(q.members[LEASED]) >= limit


def following(engine: Engine, q: Queue, terms: Terms | None, now: int) -> Message | None:
    """Take out the message that a pull with these terms gets; None when there is none for it."""
    if full(q):
        return None
    asked, bucket = terms or NO_TERMS, bucket_at(q, now)
    while (found := _front(q, asked, now)) is not None:
        lane, m = found
        end = expires(m)
        if end is not None and end <= now:
            _expire(engine, q, lane, m, now)
            continue
        if bucket is not None:
            opens = bucket.opens_at(m.options.cost)
            if opens > now:
                q.opens = min(q.opens, opens)
                return None
            bucket.draw(m.options.cost, now)
        _take_out(engine, q, lane, m, asked, now)
        if engine.blocked and q.name in engine.blocked:
            ring_at(engine, q, 0)  # there is room for whoever waits for it
        return m
    return None


def bucket_at(q: Queue, now: int) -> Bucket | None:
    """Return the tokens of a queue, None without a rate limit or when its time is over."""
    rate = q.settings.rate
    return None if rate is None or (rate.ends is not None and rate.ends <= now) else q.bucket


def _front(q: Queue, terms: Terms, now: int) -> tuple[Lane | None, Message] | None:
    if q.groups is not None:
        return q.groups.front(terms, now)
    if isinstance(terms.affinity, str):
        return None
    m = q.ready.peek()
    return None if m is None else (None, m)


def _expire(engine: Engine, q: Queue, lane: Lane | None, m: Message, now: int) -> None:
    lanes = q.groups
    if lane is None or lanes is None:
        q.ready.pop()
    else:
        lanes.drop(lane)
        lanes.forget(lane)
    from tandemq.engine.endings import expired  # which builds on this module

    expired(engine, m, now, popped=True)


def _take_out(
    engine: Engine, q: Queue, lane: Lane | None, m: Message, terms: Terms, now: int
) -> None:
    lanes = q.groups
    if lane is None or lanes is None:
        q.ready.pop()
        return
    if lane.took(terms, m.options.cost, now):
        lanes.at(lane.window_ends, lane.name)
        ring_at(engine, q, lane.window_ends)
    lanes.take(lane)


def match(engine: Engine, q: Queue, now: int) -> None:
    """Bind ready messages to whoever may take them, first come first served.

    What ends on the way may ask for another match: that is one more round, not one level deeper.
    """
    q.rounds += 1
    if q.rounds > 1:
        return
    q.opens = NEVER
    if q.alarm is not None and q.alarm.at == 0:
        q.alarm.at = FAR  # this is what it was to ring for
        q.alarm.gen += 1
    try:
        while q.rounds:
            q.rounds = 1
            _match_once(engine, q, now)
            q.rounds -= 1
    finally:
        q.rounds = 0
    arm(engine, q)


def _match_once(engine: Engine, q: Queue, now: int) -> None:
    if q.fans_out:
        from tandemq.engine import fanout  # which builds on this module

        fanout.match(engine, q, now)
    else:
        _match_ring(engine, q, now)
    if engine.blocked and q.name in engine.blocked:
        from tandemq.engine import overflow  # as well

        overflow.let_in(engine, q, now)


def _match_ring(engine: Engine, q: Queue, now: int) -> None:
    if not asks(q):
        _match_in_turn(engine, q, now)
        return
    refused: set[Terms | None] = set()
    while engine.granting and q.open and q.ready and not full(q):
        c = q.ring.willing(refused)
        if c is None:
            break
        if not _serve(engine, q, c, now):
            refused.add(c.terms)
        elif q.bucket is not None:
            refused.clear()  # what is first now may cost less than what there were no tokens for


def _match_in_turn(engine: Engine, q: Queue, now: int) -> None:
    """Give what is ready to whoever is next; nothing else has to be asked."""
    while q.ready and q.open and engine.granting and (c := q.ring.first()) is not None:
        if not isinstance(c, Subscription):
            if taken := engine.grant_to(c, q, now):
                engine.answer(c, taken)
        elif (m := engine.next_in_line(q, now)) is not None:
            engine.subscribers[c.conn].serve(engine, q, c, m, now)


def _serve(engine: Engine, q: Queue, c: Consumer, now: int) -> bool:
    """Give a consumer what it may take; False when that is nothing."""
    if isinstance(c, Subscription):
        m = following(engine, q, None, now)
        if m is not None:
            engine.subscribers[c.conn].serve(engine, q, c, m, now)
        return m is not None
    taken = engine.grant_to(c, q, now)
    if taken:
        engine.answer(c, taken)
    return bool(taken)


# -- what time alone changes ---------------------------------------------------------------------


def arm(engine: Engine, q: Queue) -> None:
    """Ring when time opens something; whoever waits may have it then."""
    if q.opens < NEVER and q.ring:
        ring_at(engine, q, q.opens)
    rate = q.settings.rate
    if rate is not None and rate.ends is not None:
        ring_at(engine, q, rate.ends)
    if q.groups is not None and (wakes := q.groups.wakes) is not None:
        ring_at(engine, q, wakes)


def ring_at(engine: Engine, q: Queue, moment: int) -> None:
    """Ring the alarm of a queue at a moment, if it is not set for an earlier one."""
    alarm = q.alarm
    if alarm is None:
        alarm = q.alarm = Alarm(q.name)
    if moment < alarm.at:
        alarm.at = moment
        alarm.gen += 1
        engine.timers.set(alarm, moment)


def shift_spans(engine: Engine, q: Queue, step: int) -> None:
    """The wall clock was set: windows, tokens and closures keep their length (ruling 20)."""
    if q.bucket is not None:
        q.bucket.full_at += step
    if q.groups is not None:
        q.groups.shift_spans(step)
    if q.alarm is not None:
        q.alarm.at = FAR
        ring_at(engine, q, 0)
