"""Admission: a message comes into being."""

from __future__ import annotations

from tandemq.engine.core import Engine
from tandemq.model.message import DEFAULTS, Message, Options, State

DELAYED, READY = State.DELAYED, State.READY
ENDED = (State.DONE, State.DEAD)


def publish(
    engine: Engine,
    queue: str,
    body: bytes,
    now: int,
    *,
    name: str = "default",
    priority: int = 0,
    delay: int = 0,
    created: int | None = None,
    id: str | None = None,
    options: Options = DEFAULTS,
) -> Message:
    """Accept a message, or return the live one that has the same id.

    An id chosen by the publisher names one message over all queues while that message lives; once
    it has ended the id is free, and a new message replaces the old record (bunqueue semantics 9).
    ``created`` may lie in the past or the future; the message is due ``delay`` ms after it.
    """
    if id is None:
        id = engine.new_id(now)
    else:
        known = engine.messages.get(id)
        if known is not None:
            if known.state not in ENDED:
                return known
            engine.forget(known)
    if created is None:
        created = now
    due = created + delay
    engine.seq += 1
    m = Message(id, queue, name, body, engine.seq, created, due, priority, options)
    engine.messages[id] = m
    q = engine.queue(queue)
    m.born = DELAYED if due > now else READY
    engine.shift(m, "publish", m.born)
    engine.counters.pushed += 1
    engine.owes_sync = engine.owes_sync or options.durable
    if q.ring:
        engine.match(q, now)
    return m
