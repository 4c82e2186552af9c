"""Publishing on a broker's wire: a letter enters a queue, makes room in it, or waits for some.

The first message decides what a queue is: a letter makes it a broker's, a job makes it a job
queue, and so it stays (ruling 11).
"""

from __future__ import annotations

from msgspec.structs import replace

from tandemq.engine import control, dlq, overflow, publish, straight
from tandemq.engine.core import Engine
from tandemq.engine.pressure import Level
from tandemq.engine.queue import Queue
from tandemq.model.broker import NAME, NORMAL, Mode, Overflow, Policy, Reason, options_of
from tandemq.model.errors import MemoryFull, MustWait, NotFound, QueueFull
from tandemq.model.message import Letter, Message, State


def exists(engine: Engine, queue: str) -> bool:
    """Whether there is a queue of this name, with messages, a policy or subscribers."""
    q = engine.queues.get(queue)
    return q is not None and (
        q.settings.broker is not None or bool(q.subscriptions) or any(q.counts)
    )


def found(engine: Engine, queue: str, now: int, default: Policy | None) -> None:
    """Make sure that there is a queue to subscribe to; what it will be its first message decides.

    Raises:
        NotFound: there is none, and ``default`` None says that none is made.
    """
    if exists(engine, queue):
        return
    if default is None:
        raise NotFound(queue)
    policy = replace(default, created=now, decided=False)
    control.configure(engine, engine.queue(queue), broker=policy)


def opened(engine: Engine, queue: str, now: int, default: Policy | None) -> Queue:
    """Return the queue for a letter; one that nobody has decided about becomes a broker's.

    Raises:
        NotFound: there is none, and ``default`` None says that none is made.
    """
    q = engine.queues.get(queue)
    policy = None if q is None else q.settings.broker
    if q is not None and policy is not None:
        if not policy.decided:
            control.configure(engine, q, broker=replace(policy, decided=True))
        return q
    if q is not None and any(q.counts):
        return q
    if default is None and q is None:
        raise NotFound(queue)
    q = engine.queue(queue)
    control.configure(engine, q, broker=replace(default or Policy(), created=now))
    return q


def post(engine: Engine, q: Queue, letter: Letter, body: bytes, level: int, now: int) -> None:
    """Publish a letter; ``body`` is JSON and ``level`` one of four, 0 is low.

    Raises:
        MustWait: the queue is full, and its publishers wait for room; nothing has changed.
        QueueFull: it is full, and the letter is refused; nothing has changed.
        MemoryFull: so is the memory, and a job queue drops nothing; nothing has changed.
    """
    if straight.post(engine, q, letter, body, level, now):
        return
    policy = q.settings.broker
    if policy is None and engine.pressure.level is Level.FULL:
        raise MemoryFull
    m = _draft(engine, q, policy, letter, body, level, now)
    if policy is not None and (overflow.crowded(engine, q) or engine.pressure.level is Level.FULL):
        if _redirected(engine, policy, m, now):
            engine.counters.published += 1
            return
        _make_room(engine, q, policy, now)
    publish.begin(engine, q, m, State.READY, now)
    engine.counters.published += 1
    if q.ring or q.subscriptions:
        engine.match(q, now)


def _redirected(engine: Engine, policy: Policy, m: Message, now: int) -> bool:
    """Put a letter among the dead ones, if that is the rule; it would free no memory."""
    if policy.overflow is not Overflow.REDIRECT_TO_DLQ or not policy.dead_letters:
        return False
    if engine.pressure.level is Level.FULL:
        return False
    dlq.move(engine, m, policy, now, Reason.QUEUE_OVERFLOW, None)
    return True


def _make_room(engine: Engine, q: Queue, policy: Policy, now: int) -> None:
    if policy.overflow is Overflow.BLOCK_PUBLISHER:
        raise MustWait(q.name)
    if policy.overflow is Overflow.DROP_OLDEST and overflow.drop_oldest(engine, q, now):
        return
    raise QueueFull(q.name)


def _draft(
    engine: Engine,
    q: Queue,
    policy: Policy | None,
    letter: Letter,
    body: bytes,
    level: int,
    now: int,
) -> Message:
    m = Message(engine.new_id(now), q.name, NAME, body, 0, now, now)
    if policy is None or policy.mode is Mode.PRIORITY_BASED:
        m.priority = level - NORMAL  # a job without a priority is a normal one
    if policy is not None:
        m.options = options_of(policy)
    m.letter = letter
    return m
