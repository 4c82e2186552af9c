"""Demand: pulls that are served or wait, and what happens when a connection is gone."""

from __future__ import annotations

from typing import Any

from tandemq.engine.consumers import Consumer
from tandemq.engine.core import Engine, end_run
from tandemq.model.message import Message, State

READY = State.READY


def pull(
    engine: Engine,
    queue: str,
    conn: int,
    req: Any,
    now: int,
    *,
    count: int = 1,
    wait: int = 0,
    span: int | None = None,
    detach: bool = False,
) -> list[Message] | None:
    """Take up to ``count`` ready messages; None when there are none yet and the pull waits.

    A waiting pull is answered by a ``Reply`` effect that carries ``req``: with messages as soon
    as there are some, with none after ``wait`` ms. ``span`` asks for leases with a token, of that
    many ms. A pull leaves no trace in a queue that does not exist.
    """
    q = engine.queues.get(queue)
    taken: list[Message] = []
    if q is not None and q.open and engine.granting:
        while len(taken) < count and (m := q.ready.pop()) is not None:
            engine.lease(m, None if detach else conn, span, now)
            taken.append(m)
    if taken or wait <= 0 or count <= 0:
        return taken
    c = Consumer(conn, queue, count, req, span, detach, now + wait)
    engine.queue(queue).ring.add(c)
    engine.waiting.setdefault(conn, {})[c] = None
    engine.timers.set(c, c.until)
    return None


def give_up(engine: Engine, c: Consumer, now: int) -> None:
    """A pull has waited as long as it wanted to."""
    if c.until > now:
        engine.timers.set(c, c.until)
        return
    engine.answer(c, [])
    engine.tidy(engine.queues[c.queue])


def disconnect(engine: Engine, conn: int, now: int) -> None:
    """Forget a connection: its waiting pulls end, what it held goes back to its place at once.

    No attempt is charged, one interruption is (ruling 15). Leases that were renewed stay: they
    belong to a client that heartbeats over another connection (bunqueue semantics 6).
    """
    for c in list(engine.waiting.pop(conn, ())):
        q = engine.queues[c.queue]
        q.ring.drop(c)
        engine.timers.clear(c)
        engine.tidy(q)
    for m in list(engine.leased_by.get(conn, {}).values()):
        assert m.lease is not None and m.run is not None, "held messages are leased"
        if not m.lease.renewals:
            m.run.interruptions += 1
            engine.counters.interrupted += 1
            release(engine, m, now)
    for m in engine.leased_by.pop(conn, {}).values():
        assert m.lease is not None, "held messages are leased"
        m.lease.conn = None


def release(engine: Engine, m: Message, now: int) -> None:
    """Give a leased message back to its old place, uncharged."""
    assert m.run is not None, "a leased message has run"
    end_run(m.run)
    m.run.started = 0
    engine.shift(m, "release", READY)
    engine.match(engine.queues[m.queue], now)


def release_all(engine: Engine, now: int) -> None:
    """Give back everything that is leased, as a clean stop does: nothing is charged."""
    engine.granting = False
    for q in list(engine.queues.values()):
        for m in list(q.members[State.LEASED].values()):
            release(engine, m, now)
