"""Fan-out: one message for everybody who is subscribed when its turn comes.

Without acknowledgment it is handed over, and that is that. With acknowledgment the message waits,
parked, while every subscriber has a copy of its own: a slim record with a timer and a count of
attempts, in memory only. A crash ends every subscription, and with it every copy, so that there is
nothing to store: the message stands in its old place again (docs/decisions). Sources: VibeMQ
semantics 2.4 and 2.5, ruling 17.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from tandemq.engine import admission, dlq, settle
from tandemq.engine.consumers import Subscription
from tandemq.engine.core import Engine
from tandemq.engine.queue import Queue
from tandemq.engine.timeline import run_for
from tandemq.model.broker import Mode, Reason, most_attempts, wait_for_ack
from tandemq.model.crossing import Uncarriable, name_of, payload_of
from tandemq.model.message import Message, State
from tandemq.model.policy import expires

if TYPE_CHECKING:
    from tandemq.engine.subscriptions import Subscriber

PARKED, READY, GONE = State.PARKED, State.READY, State.GONE


class Copy(Struct, eq=False, gc=False):
    """What one subscriber has to acknowledge."""

    fanout: Fanout
    sub: Subscription
    until: int = 0  # when the present delivery has gone unanswered
    out: bool = False  # it was delivered, else it waits for a place
    attempts: int = 0  # deliveries that went unanswered
    gen: int = 0


class Fanout:
    """A message and its copies."""

    __slots__ = (
        "acked", "copies", "failed", "gen", "interrupted", "name", "origin", "payload", "reason",
    )  # fmt: skip

    def __init__(self, origin: Message, name: str, payload: bytes) -> None:
        self.origin = origin
        self.name = name
        self.payload = payload
        self.copies: dict[Subscription, Copy] = {}
        self.acked = 0
        self.gen = 0  # it has one timer, which is taken back
        self.failed: list[str] = []  # the names of subscribers that never answered
        self.reason = Reason.MAX_RETRIES_EXCEEDED
        self.interrupted = False  # a connection broke that held it before all others

    def close(self, engine: Engine) -> None:
        """The message is taken away: nobody need answer any more."""
        engine.timers.unwatch(self.origin.seq)
        for copy in list(self.copies.values()):
            _let_go(engine, copy)
            if copy.sub.mailbox:
                engine.timers.set(copy.sub, 0)  # it has a place for the next one


# -- spreading -------------------------------------------------------------------------------------


def match(engine: Engine, q: Queue, now: int) -> None:
    """Give each ready message to everybody who is subscribed."""
    policy = q.settings.broker
    assert policy is not None, "only a broker's queue fans out"
    acked = policy.mode is Mode.FAN_OUT_WITH_ACK
    while engine.granting and q.open and q.ready:
        wanted = q.subscriptions if acked else q.readers()
        m = admission.following(engine, q, None, now) if wanted else None
        if m is None:
            return
        try:
            payload = payload_of(m)
        except Uncarriable as odd:
            text = f"JSON cannot carry {odd}"
            dlq.end(engine, m, now, Reason.DESERIALIZATION_ERROR, text, popped=True)
            continue
        if acked:
            engine.shift(m, "fan-out", PARKED, popped=True)
            spread(engine, q, m, payload, now)
        else:
            _hand_over(engine, q.readers(), m, payload, now)


def _hand_over(engine: Engine, conns: list[int], m: Message, payload: bytes, now: int) -> None:
    engine.counters.delivers(m, now, len(conns))
    engine.deliver(conns, m, payload)
    if m.letter is None:  # a job is completed, for those who wait for its end
        engine.lease(m, None, None, now)
        settle.complete(engine, m, now, None, False)
    else:
        engine.shift(m, "hand-off", GONE, popped=True)


def spread(engine: Engine, q: Queue, m: Message, payload: bytes, now: int) -> None:
    """Give everybody who is subscribed a copy of a message that is parked.

    Copies that are delivered together have one timer together, while each has its first try.
    """
    policy = q.settings.broker
    assert policy is not None, "only a broker's queue fans out"
    name, until = name_of(m), now + wait_for_ack(policy, 0)
    fanout = engine.fanouts[m.seq] = Fanout(m, name, payload)
    copies, subscribers, size = fanout.copies, engine.subscribers, len(m.body)
    conns = []
    for sub in q.subscriptions:
        out = sub.willing and not sub.mailbox
        copy = copies[sub] = Copy(fanout, sub, until, out)
        if not out:
            sub.mailbox.append(copy)
            continue
        who = subscribers[sub.conn]
        if name in who.held:
            who.add(name, copy)
        else:
            who.held[name] = copy
        sub.held += 1
        sub.held_bytes += size
        conns.append(sub.conn)
    if conns:
        engine.counters.delivers(m, now, len(conns))
        engine.timers.watch(m.seq, fanout, until)
        engine.deliver(conns, m, payload)


def _out(engine: Engine, copy: Copy, now: int) -> None:
    sub, fanout = copy.sub, copy.fanout
    copy.out = True
    engine.subscribers[sub.conn].add(fanout.name, copy)
    sub.took(fanout.origin)
    if not copy.attempts:
        engine.counters.delivers(fanout.origin, now)
    _wait(engine, copy, now)


def _wait(engine: Engine, copy: Copy, now: int) -> None:
    policy = engine.queues[copy.sub.queue].settings.broker
    assert policy is not None, "only a broker's queue fans out"
    copy.until = now + wait_for_ack(policy, copy.attempts)
    engine.timers.set(copy, copy.until)


def catch_up(engine: Engine, sub: Subscription, now: int) -> None:
    """Deliver the copies that wait for a place, as far as there is one."""
    while sub.mailbox and sub.willing:
        copy = sub.mailbox.popleft()
        _out(engine, copy, now)
        engine.deliver([sub.conn], copy.fanout.origin, copy.fanout.payload)


# -- answers, and none -----------------------------------------------------------------------------


def acknowledge(engine: Engine, who: Subscriber, copy: Copy, now: int) -> None:
    """One subscriber is done with the copy that it holds."""
    fanout, sub = copy.fanout, copy.sub
    fanout.acked += 1
    del fanout.copies[sub]
    copy.gen += 1
    sub.held -= 1
    sub.held_bytes -= len(fanout.origin.body)
    if who.later:
        who.drop(fanout.name, copy)
    else:
        del who.held[fanout.name]
    if not fanout.copies:
        _finish(engine, fanout, now)
    if sub.mailbox:
        catch_up(engine, sub, now)


def refuse(engine: Engine, copy: Copy, delay: int, now: int) -> None:
    """One subscriber wants its copy again, after ``delay`` ms."""
    if not _charge(engine, copy, now, Reason.HANDLER_EXCEPTION):
        return
    copy.gen += 1
    if delay:
        copy.until = now + delay
        engine.timers.set(copy, copy.until)
        copy.attempts -= 1  # its timer will count this one
    else:
        _again(engine, copy, now)


def overdue(engine: Engine, fanout: Fanout, now: int) -> None:
    """The time for an answer to the first delivery is over."""
    for copy in list(fanout.copies.values()):
        if copy.out and copy.until <= now:
            rang(engine, copy, now)


def rang(engine: Engine, copy: Copy, now: int) -> None:
    """One subscriber has not answered in time: it is asked again, nobody else is."""
    if copy.until > now:
        engine.timers.set(copy, copy.until)
    elif _charge(engine, copy, now, Reason.MAX_RETRIES_EXCEEDED):
        _again(engine, copy, now)


def _again(engine: Engine, copy: Copy, now: int) -> None:
    sub = copy.sub
    if sub.stalled:
        _take_back(engine, copy)
        sub.mailbox.appendleft(copy)  # until it reads again
        return
    _wait(engine, copy, now)
    engine.deliver([sub.conn], copy.fanout.origin, copy.fanout.payload)


def _charge(engine: Engine, copy: Copy, now: int, reason: Reason) -> bool:
    """Count a delivery that went wrong; False when it was the last one."""
    fanout, q = copy.fanout, engine.queues[copy.sub.queue]
    m = fanout.origin
    copy.attempts += 1
    policy = q.settings.broker
    assert policy is not None, "only a broker's queue fans out"
    most = most_attempts(policy) if m.letter is not None else m.options.max_attempts
    end = expires(m)
    late = end is not None and end <= now
    if copy.attempts < most and not late:
        engine.counters.retried += 1
        return True
    m.attempts = max(m.attempts, copy.attempts)
    give_up(engine, copy, Reason.MESSAGE_EXPIRED if late else reason, now)
    return False


def give_up(engine: Engine, copy: Copy, reason: Reason, now: int) -> None:
    """One subscriber will not be asked any more, and has failed."""
    copy.fanout.failed.append(copy.sub.name)
    copy.fanout.reason = reason
    _settle(engine, copy, now)


def leave(engine: Engine, who: Subscriber, sub: Subscription, now: int, *, broken: bool) -> None:
    """A subscription ends: its copies are settled, neither acknowledged nor failed."""
    held = [copy for copy in who.everything() if isinstance(copy, Copy) and copy.sub is sub]
    for n, copy in enumerate([*held, *sub.mailbox]):
        copy.fanout.interrupted |= broken and n == 0
        _settle(engine, copy, now)


def _settle(engine: Engine, copy: Copy, now: int) -> None:
    fanout, sub = copy.fanout, copy.sub
    _let_go(engine, copy)
    if not fanout.copies:
        _finish(engine, fanout, now)
    if sub.mailbox:
        catch_up(engine, sub, now)


def _let_go(engine: Engine, copy: Copy) -> None:
    del copy.fanout.copies[copy.sub]
    if copy.out:
        _take_back(engine, copy)
    else:
        copy.sub.mailbox.remove(copy)


def _take_back(engine: Engine, copy: Copy) -> None:
    copy.gen += 1
    copy.out = False
    copy.sub.gave(copy.fanout.origin)
    engine.subscribers[copy.sub.conn].drop(copy.fanout.name, copy)


def _finish(engine: Engine, fanout: Fanout, now: int) -> None:
    """Every copy is settled: the message is done, dead, or has to find somebody else."""
    m = fanout.origin
    engine.timers.unwatch(m.seq)
    del engine.fanouts[m.seq]
    if fanout.failed:
        text = "not acknowledged by " + ", ".join(fanout.failed)
        dlq.end(engine, m, now, fanout.reason, text)
    elif fanout.acked and m.letter is not None:
        settle.forget(engine, engine.queues[m.queue], m, now, "settled")
    elif fanout.acked:
        run_for(m)
        settle.complete(engine, m, now, None, False, verb="settled")
    else:
        _back(engine, fanout, now)


def _back(engine: Engine, fanout: Fanout, now: int) -> None:
    m = fanout.origin
    if fanout.interrupted and dlq.interrupted(engine, m, now):
        return
    engine.shift(m, "settled", READY)
    engine.match(engine.queues[m.queue], now)
