"""Admission: a message comes into being."""

from __future__ import annotations

from tandemq.engine.core import Engine
from tandemq.model.message import DEFAULTS, Message, Options, State

DELAYED, READY = State.DELAYED, State.READY
ENDED = (State.DONE, State.DEAD)


def publish(
    engine: Engine,
    queue: str,
    name: str,
    body: bytes,
    now: int,
    priority: int = 0,
    delay: int = 0,
    options: Options = DEFAULTS,
    id: str | None = None,
    created: int | None = None,
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
    state = DELAYED if due > now else READY
    engine.seq = seq = engine.seq + 1
    # Born in its first state, an edge of the table that needs no look at where it came from.
    m = Message(id, queue, name, body, seq, created, due, priority, options, state, state)
    engine.messages[id] = m
    q = engine.queue(queue)
    engine.enter(m, q)
    engine.counters.pushed += 1
    if options.durable:
        engine.owes_sync = True
    if q.ring:
        engine.match(q, now)
    return m
