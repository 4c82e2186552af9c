"""Standing demand: who is subscribed to what, what each one holds, and who is asked again.

A subscription stands in the ring of its queue while it may get more, beside the pulls that wait
there; so both share a queue fairly. What it got is leased to its connection until it answers, and
is known there by the name that its publisher gave it. Sources: VibeMQ semantics 2 and 4; rulings
15 and 16.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from tandemq.engine import admission, dlq, fanout, settle, straight
from tandemq.engine.consumers import Subscription
from tandemq.engine.core import Engine
from tandemq.engine.fanout import Copy
from tandemq.engine.queue import Queue
from tandemq.engine.timeline import end_run
from tandemq.model.broker import DEFAULT_POLICY, Policy, Reason, most_attempts, wait_for_ack
from tandemq.model.crossing import Uncarriable, name_of, payload_of
from tandemq.model.message import Message, State
from tandemq.model.policy import expires, lease_of

READY, DELAYED = State.READY, State.DELAYED


class Subscriber:
    """A connection that subscribes: to what, and what it has not answered yet."""

    __slots__ = ("conn", "held", "later", "subscriptions")

    def __init__(self, conn: int) -> None:
        self.conn = conn
        self.subscriptions: dict[str, Subscription] = {}  # by queue
        self.held: dict[str, Message | Copy] = {}  # by the name it was delivered under
        self.later: dict[str, deque[Message | Copy]] = {}  # of the same name, delivered after it

    def add(self, name: str, what: Message | Copy) -> None:
        """Something was delivered."""
        if self.held.setdefault(name, what) is not what:
            self.later.setdefault(name, deque()).append(what)

    def drop(self, name: str, what: Message | Copy) -> None:
        """It is answered, or taken back."""
        if not self.later:  # as nearly always
            if self.held.get(name) is what:
                del self.held[name]
            return
        others = self.later.get(name)
        if self.held.get(name) is what:
            del self.held[name]
            if others:
                self.held[name] = others.popleft()
        elif others is not None and what in others:
            others.remove(what)
        if others is not None and not others:
            del self.later[name]

    def newest(self, name: str) -> Message | Copy | None:
        """Return what was delivered under this name last."""
        others = self.later.get(name)
        return others[-1] if others else self.held.get(name)

    def everything(self) -> Iterator[Message | Copy]:
        """Yield all that it holds, what was delivered first before what has the same name."""
        yield from self.held.values()
        for others in self.later.values():
            yield from others

    @property
    def messages(self) -> list[Message]:
        """The messages that it holds, without the copies of those that all get."""
        return [what for what in self.everything() if isinstance(what, Message)]

    # -- for the engine's inner parts, which cannot import this module ----------------------------

    def serve(self, engine: Engine, q: Queue, sub: Subscription, m: Message, now: int) -> None:
        """Deliver a message that was just taken out of the ready order."""
        try:
            payload = payload_of(m)
        except Uncarriable as odd:
            text = f"JSON cannot carry {odd}"
            dlq.end(engine, m, now, Reason.DESERIALIZATION_ERROR, text, popped=True)
            return
        span = wait_for_ack(_policy_of(q), m.attempts)
        engine.lease(m, sub.conn, span, now, delivered=True)
        self.add(name_of(m), m)
        sub.took(m)
        if m.leases == 1:
            engine.counters.delivers(m, now)
        engine.deliver([sub.conn], m, payload)
        q.ring.served(sub)

    def let_go(self, engine: Engine, m: Message) -> None:
        """A message that was delivered has left its lease: its place is free."""
        self.drop(name_of(m), m)
        sub = self.subscriptions.get(m.queue)
        if sub is not None:
            sub.gave(m)
            _take_part(engine.queues[m.queue], sub)

    def unanswered(self, engine: Engine, m: Message, now: int) -> None:
        """Nobody answered in time: it is asked again, or the next one is (ruling 16)."""
        q = engine.queues[m.queue]
        if not _charge(engine, q, m, now, Reason.MAX_RETRIES_EXCEEDED):
            return
        sub = self.subscriptions.get(m.queue)
        if sub is None or sub.stalled:
            _again(engine, q, m, 0, now)
            return
        _, lease = lease_of(m)
        lease.until = now + wait_for_ack(_policy_of(q), m.attempts)
        m.leases += 1
        engine.extended(m, "redeliver")
        engine.deliver([self.conn], m, payload_of(m))


# -- subscribing -----------------------------------------------------------------------------------


def subscribe(engine: Engine, queue: str, conn: int, window: int, now: int, name: str = "") -> None:
    """Let a connection have messages of a queue as they come, at most ``window`` at a time.

    To subscribe twice changes nothing. What waits is delivered at once. ``name`` tells people who
    it is.
    """
    engine.push_token = engine.push_token or engine.new_id(now)
    who = engine.subscribers.get(conn)
    if who is None:
        who = engine.subscribers[conn] = Subscriber(conn)
    if queue in who.subscriptions:
        return
    q = engine.queue(queue)
    sub = who.subscriptions[queue] = Subscription(conn, queue, window, name=name)
    q.subscriptions[sub], q.audience = None, None
    q.limited = True
    q.ring.add(sub)
    engine.match(q, now)


def unsubscribe(engine: Engine, queue: str, conn: int, now: int) -> None:
    """Let a connection have no more of a queue; what it holds of it goes back, uncharged."""
    who = engine.subscribers.get(conn)
    if who is not None and (sub := who.subscriptions.get(queue)) is not None:
        _end(engine, who, sub, now, broken=False)
        if not who.subscriptions:
            del engine.subscribers[conn]


def disconnect(engine: Engine, conn: int, now: int, *, broken: bool) -> None:
    """A connection is gone; ``broken`` says that it had not taken its leave.

    Then the oldest message that each of its subscriptions holds is charged an interruption.
    """
    who = engine.subscribers.get(conn)
    if who is not None:
        for sub in list(who.subscriptions.values()):
            _end(engine, who, sub, now, broken=broken)
        del engine.subscribers[conn]


def stall(engine: Engine, conn: int, now: int, *, stalled: bool) -> None:
    """A connection does not read any more, or reads again: others get its share meanwhile."""
    who = engine.subscribers.get(conn)
    for sub in who.subscriptions.values() if who is not None else ():
        sub.stalled = stalled
        q = engine.queues[sub.queue]
        q.audience = None
        if stalled:
            if not q.fans_out:  # there it has its copies when it reads again
                q.ring.pop(sub, None)
        else:
            fanout.catch_up(engine, sub, now)
            _take_part(q, sub)
            engine.match(q, now)


def _end(engine: Engine, who: Subscriber, sub: Subscription, now: int, *, broken: bool) -> None:
    q = engine.queues[sub.queue]
    q.ring.drop(sub)
    del q.subscriptions[sub]
    q.audience = None
    fanout.leave(engine, who, sub, now, broken=broken)
    held = [m for m in who.messages if m.queue == sub.queue]
    held.sort(key=lambda m: m.seq)
    for n, m in enumerate(held):
        _give_back(engine, m, now, interrupted=broken and n == 0)
    del who.subscriptions[sub.queue]
    q.limited = admission.limited(q) or q.ring.choosy > 0
    engine.match(q, now)
    engine.tidy(q)


def _take_part(q: Queue, sub: Subscription) -> None:
    """Let a subscription stand in the ring while it may get more, at the back."""
    if sub.willing and sub not in q.ring:
        q.ring.add(sub)


def _policy_of(q: Queue) -> Policy:
    return q.settings.broker or DEFAULT_POLICY


# -- answers, and none -----------------------------------------------------------------------------


def acknowledge(engine: Engine, conn: int, names: Iterable[str], now: int) -> int:
    """Settle the oldest message of each name that a connection holds; return how many it held."""
    who = engine.subscribers.get(conn)
    if who is None:
        return 0
    found = 0
    gone: dict[str, int] = {}  # how many letters of each queue went the short way
    for name in names:
        held = who.held.get(name)
        if held is None:
            continue
        found += 1
        if isinstance(held, Copy):
            fanout.acknowledge(engine, who, held, now)
            continue
        q = engine.queues[held.queue]
        if q.straight and held.letter is not None and not (engine.listening or engine.watches):
            straight.forget(engine, q, who, held)
            gone[q.name] = gone.get(q.name, 0) + 1
        elif held.letter is None or q.settings.broker is None:  # a job queue keeps what is done
            settle.complete(engine, held, now, None, False)
        else:
            settle.forget(engine, q, held, now)
    engine.counters.acknowledged += found
    for queue, count in gone.items():
        settle.forgot(engine, engine.queues[queue], count, now)
    return found


def refuse(engine: Engine, conn: int, name: str, delay: int, now: int) -> bool:
    """Give back the oldest message of this name for another try, after ``delay`` ms.

    It is charged an attempt (ruling 28); False if the connection holds none of this name.
    """
    who = engine.subscribers.get(conn)
    held = None if who is None else who.held.get(name)
    if held is None:
        return False
    if isinstance(held, Copy):
        fanout.refuse(engine, held, delay, now)
        return True
    q = engine.queues[held.queue]
    if _charge(engine, q, held, now, Reason.HANDLER_EXCEPTION):
        _again(engine, q, held, delay, now)
    return True


def undeliverable(engine: Engine, conn: int, name: str, text: str, now: int) -> None:
    """The newest message of this name cannot be said on the wire of a connection: it is dead.

    So says ``text``. What needs no answer is gone already.
    """
    who = engine.subscribers.get(conn)
    held = None if who is None else who.newest(name)
    if held is None:
        return
    engine.counters.errors += 1
    if isinstance(held, Copy):
        fanout.give_up(engine, held, Reason.DESERIALIZATION_ERROR, now)
    else:
        _end_run(held)
        dlq.end(engine, held, now, Reason.DESERIALIZATION_ERROR, text)
        engine.match(engine.queue(held.queue), now)


def _charge(engine: Engine, q: Queue, m: Message, now: int, reason: Reason) -> bool:
    """Count a delivery that went wrong; False when it was the last one, and the message ended."""
    m.attempts += 1
    most = m.options.max_attempts if m.letter is None else most_attempts(_policy_of(q))
    end = expires(m)
    if end is not None and end <= now:
        reason = Reason.MESSAGE_EXPIRED
    elif m.attempts < most:
        engine.counters.retried += 1
        return True
    _end_run(m)
    dlq.end(engine, m, now, reason)
    return False


def _again(engine: Engine, q: Queue, m: Message, delay: int, now: int) -> None:
    """Let whoever comes next have a message, after ``delay`` ms, in its old place."""
    _end_run(m)
    m.due = now + delay if delay else m.due
    engine.shift(m, "fail", DELAYED if delay else READY)
    engine.match(q, now)


def _give_back(engine: Engine, m: Message, now: int, *, interrupted: bool) -> None:
    """Return what a subscriber held to its old place; who calls lets its queue match."""
    _end_run(m)
    if interrupted and dlq.interrupted(engine, m, now):
        return
    engine.shift(m, "release", READY)


def _end_run(m: Message) -> None:
    run, _ = lease_of(m)
    end_run(run)
    run.started = 0
