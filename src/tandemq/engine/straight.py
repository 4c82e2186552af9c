"""The short way of a letter: straight to who is next, and gone when it is acknowledged.

Most letters come to a queue where nothing waits and somebody wants them. They are born as what the
long way (``post``, ``publish``, ``subscriptions``, ``fanout``, ``settle``) would have made of them
in many small steps; tests/engine/test_straight.py plays histories both ways and compares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tandemq.engine import fanout
from tandemq.engine.consumers import Subscription
from tandemq.engine.core import Engine
from tandemq.engine.lifecycle import move
from tandemq.engine.pressure import weight
from tandemq.engine.queue import Queue
from tandemq.model.broker import NAME, NORMAL, Mode
from tandemq.model.message import Lease, Letter, Message, Run, State
from tandemq.model.outcome import Deliver

if TYPE_CHECKING:
    from tandemq.engine.subscriptions import Subscriber

PARKED, READY, LEASED, GONE = State.PARKED, State.READY, State.LEASED, State.GONE
TO_ALL, FAN_OUT, PRIORITY = Mode.FAN_OUT_WITHOUT_ACK, Mode.FAN_OUT_WITH_ACK, Mode.PRIORITY_BASED


def post(engine: Engine, q: Queue, letter: Letter, body: bytes, level: int, now: int) -> bool:
    """Publish a letter and hand it out at once; False where it has to take the long way.

    That is: the queue asks for more than whose turn it is, something waits there or nobody wants
    it, there is too little memory, or somebody listens to what happens.
    """
    if not q.straight or q.ready or q.delayed or not engine.granting:
        return False
    if engine.blocked or engine.listening or engine.pressure.level:
        return False
    policy = q.settings.broker
    assert policy is not None, "only a broker's queue is straight"
    mode = policy.mode
    if mode is TO_ALL:
        return _hand_over(engine, q, letter, body, now)
    if mode is FAN_OUT:
        return _spread(engine, q, letter, body, now)
    sub = next(iter(q.ring), None)
    if type(sub) is not Subscription or not sub.willing:
        return False
    span, conn = policy.ack_wait, sub.conn
    m = _draft(engine, q, letter, body, now)
    if mode is PRIORITY:
        m.priority = level - NORMAL
    m.state, m.leases = LEASED, 1
    m.lease, m.run = Lease(engine.push_token, now + span, span, conn, 0, True), Run(now, 0, now)
    q.leased[m.seq] = m
    engine.timers.watch(m.seq, m, now + span)
    engine.counters.pulled += 1
    engine.counters.delivers(m, now)
    engine.subscribers[conn].add(letter.id, m)
    sub.took(m)
    engine.effects.append(Deliver([conn], m, body))
    q.ring.served(sub)
    return True


def _spread(engine: Engine, q: Queue, letter: Letter, body: bytes, now: int) -> bool:
    if not q.subscriptions:
        return False
    m = _draft(engine, q, letter, body, now)
    m.state = PARKED
    q.members[PARKED][m.seq] = m
    fanout.spread(engine, q, m, body, now)
    return True


def _draft(engine: Engine, q: Queue, letter: Letter, body: bytes, now: int) -> Message:
    """Make a message that was READY for no time at all, and will be one move further."""
    engine.seq = seq = engine.seq + 1
    m = Message(engine.new_id(now), q.name, NAME, body, seq, now, now, 0, q.options, READY, READY)
    m.letter, m.gen = letter, 1
    engine.messages[m.id] = engine.changed[seq] = m
    engine.pressure.grow(engine, weight(m))
    engine.counters.pushed += 1
    engine.counters.published += 1
    return m


def _hand_over(engine: Engine, q: Queue, letter: Letter, body: bytes, now: int) -> bool:
    """Give a letter to all who read; it comes and goes, so that nothing ever knows it by its id."""
    conns = q.readers()
    if not conns:
        return False
    engine.seq = seq = engine.seq + 1
    m = Message("", q.name, NAME, body, seq, now, now, 0, q.options, GONE, letter=letter)
    engine.counters.pushed += 1
    engine.counters.published += 1
    engine.counters.delivers(m, now, len(conns))
    engine.effects.append(Deliver(conns, m, body))
    return True


def forget(engine: Engine, q: Queue, who: Subscriber, m: Message) -> None:
    """Let a letter go that was delivered and is acknowledged; who calls counts it."""
    seq, sub = m.seq, who.subscriptions[q.name]
    del q.leased[seq], engine.messages[m.id]
    engine.timers.unwatch(seq)
    who.drop(m.letter.id, m)  # type: ignore[union-attr]  # it is a letter
    sub.gave(m)
    move(m, "ack", GONE)
    engine.changed[seq] = m
    engine.pressure.grow(engine, -weight(m))
    if sub not in q.ring and sub.willing:
        q.ring.add(sub)
