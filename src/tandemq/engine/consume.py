"""Demand: pulls that are served or wait, and what happens when a connection is gone."""

from __future__ import annotations

from collections.abc import Callable

from tandemq.engine import admission, overflow, search, subscriptions, watches
from tandemq.engine.consumers import Consumer
from tandemq.engine.core import Engine
from tandemq.engine.lane import Terms
from tandemq.engine.overlap import dropped
from tandemq.engine.settle import bury
from tandemq.engine.timeline import end_run
from tandemq.model.message import Message, State
from tandemq.model.policy import lease_of, most_interruptions

READY = State.READY


def take(
    engine: Engine,
    queue: str,
    conn: int | None,
    count: int,
    span: int | None,
    now: int,
    terms: Terms | None = None,
) -> list[Message]:
    """Take up to ``count`` ready messages at once, without waiting for any.

    ``span`` asks for leases with a token, of that many ms; ``conn`` None for leases that survive
    every connection. ``terms`` are what the pull asks of groups. A queue that does not exist is not
    made by asking. Large messages come in smaller numbers, see ``Engine.grant``.

    Raises:
        BadRequest: the queue gives every message to all its subscribers.
    """
    q = engine.queues.get(queue)
    if q is not None and q.fans_out:
        raise admission.to_be_subscribed(queue)
    if q is None or not q.open or not engine.granting:
        return []
    return engine.grant(q, count, conn, span, now, terms)


def wait(engine: Engine, c: Consumer) -> None:
    """Let a pull that found nothing wait until ``c.until``.

    It is answered by a ``Reply`` effect that carries ``c.req``: with messages as soon as there are
    some, with none when its time is over.
    """
    q = engine.queue(c.queue)
    q.ring.add(c)
    engine.waiting.setdefault(c.conn, {})[c] = None
    engine.timers.set(c, c.until)
    if q.limited or c.terms is not None:
        q.limited = True
        admission.arm(engine, q)


def give_up(engine: Engine, c: Consumer, now: int) -> None:
    """A pull has waited as long as it wanted to."""
    if c.until > now:
        engine.timers.set(c, c.until)
        return
    engine.answer(c, [])
    engine.tidy(engine.queues[c.queue])


def withdraw(engine: Engine, conn: int, allowed: Callable[[str], bool], now: int) -> None:
    """End the waiting pulls of a connection on queues that are not allowed: they get nothing.

    Its subscriptions there end too; what they held goes back uncharged.
    """
    for c in list(engine.waiting.get(conn, ())):
        if not allowed(c.queue):
            engine.answer(c, [])
            engine.tidy(engine.queues[c.queue])
    who = engine.subscribers.get(conn)
    for queue in [] if who is None else [q for q in who.subscriptions if not allowed(q)]:
        subscriptions.unsubscribe(engine, queue, conn, now)


def disconnect(
    engine: Engine, conn: int, now: int, spared: int | None = None, *, broken: bool = True
) -> None:
    """Forget a connection: its waiting pulls end, what it held goes back to its place at once.

    No attempt is charged, one interruption is (ruling 15), but for leases taken at ``spared`` or
    later: nobody has seen those. Leases that were renewed stay: they belong to a client that
    heartbeats over another connection (bunqueue semantics 6). What its subscriptions held is
    charged less, and nothing unless the connection was ``broken`` without taking its leave.
    """
    if engine.subscribers:
        subscriptions.disconnect(engine, conn, now, broken=broken)
    if engine.blocked or engine.pressure.held:
        overflow.disconnect(engine, conn)
    for c in list(engine.waiting.pop(conn, ())):
        q = engine.queues[c.queue]
        q.ring.drop(c)
        engine.tidy(q)
    if engine.watched_by:
        watches.disconnect(engine, conn)
    if engine.searches.waiting:
        search.disconnect(engine, conn)
    held = list(engine.leased_by.get(conn, {}).values())
    for m in held:
        run, lease = lease_of(m)
        if lease.renewals:
            lease.conn = None
            engine.touched(m)
        else:
            run.interruptions += spared is None or run.started < spared
            engine.counters.interrupted += 1
            if not dropped(engine, m, now):
                release(engine, m, now)
    engine.leased_by.pop(conn, None)
    # Only now, so that the best of them go first.
    for name in dict.fromkeys(m.queue for m in held):
        if (touched := engine.queues.get(name)) is not None:
            engine.match(touched, now)


def keep(engine: Engine, conn: int) -> None:
    """Let everything that a connection holds outlive it: it has been answered, and goes."""
    for m in engine.leased_by.pop(conn, {}).values():
        lease_of(m)[1].conn = None
        engine.touched(m)


def release(engine: Engine, m: Message, now: int) -> None:
    """Give a leased message back to its old place, uncharged; who calls lets its queue match.

    One that took too many connections with it becomes a dead letter instead (ruling 15).
    """
    assert m.run is not None, "a leased message has run"
    end_run(m.run)
    if 0 < most_interruptions(m.options) <= m.run.interruptions:
        m.run.error = f"Connection lost {m.run.interruptions} times while it was running"
        if engine.listening:
            engine.say("failed", m, now, error=m.run.error)
        bury(engine, m, now, "worker_lost", verb="release")
        return
    m.run.started = 0
    engine.shift(m, "release", READY)


def release_all(engine: Engine, now: int) -> None:
    """Give back everything that is leased, as a clean stop does: nothing is charged."""
    engine.granting = False
    for q in list(engine.queues.values()):
        for m in list(q.members[State.LEASED].values()):
            if not dropped(engine, m, now):
                release(engine, m, now)
