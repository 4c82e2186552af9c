"""Admission: a message comes into being."""

from __future__ import annotations

from tandemq.engine.core import Engine
from tandemq.engine.queue import Queue
from tandemq.model.message import DEFAULTS, Message, Options, State

DELAYED, READY = State.DELAYED, State.READY
ENDED = (State.DONE, State.DEAD)


def draft(
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
    """Return a message that nobody has accepted yet.

    ``created`` may lie in the past or the future; the message is due ``delay`` ms after it.
    """
    start = now if created is None else created
    return Message(id or "", queue, name, body, 0, start, start + delay, priority, options)


def publish(engine: Engine, m: Message, now: int) -> Message:
    """Accept a draft, or return the live message that has the same id; see ``publish_all``."""
    q = engine.queue(m.queue)
    accepted = _accept(engine, q, m, now)
    if q.ring:
        engine.match(q, now)
    elif accepted is not m:
        engine.tidy(q)
    return accepted


def publish_all(engine: Engine, queue: str, drafts: list[Message], now: int) -> list[Message]:
    """Accept drafts for one queue, and hand them out together.

    An id chosen by the publisher names one message over all queues while that message lives: its
    draft is dropped and the live message returned. Once it has ended the id is free, and a new
    message replaces the old record (bunqueue semantics 9).
    """
    q = engine.queue(queue)
    accepted = [_accept(engine, q, m, now) for m in drafts]
    if q.ring:
        engine.match(q, now)
    else:
        engine.tidy(q)  # all of them may live in another queue
    return accepted


def _accept(engine: Engine, q: Queue, m: Message, now: int) -> Message:
    if not m.id:
        m.id = engine.new_id(now)
    elif (known := engine.messages.get(m.id)) is not None:
        if known.state not in ENDED:
            return known
        engine.forget(known)
        engine.queues[q.name] = q  # it may have held nothing else
    engine.seq = m.seq = engine.seq + 1
    # Born in its first state: an edge of the table that needs no look at where it came from.
    m.state = m.born = DELAYED if m.due > now else READY
    engine.messages[m.id] = m
    engine.enter(m, q)
    engine.counters.pushed += 1
    if m.options.durable:
        engine.owes_sync = True
    if engine.listening:
        engine.say("pushed", m, now)
    return m
