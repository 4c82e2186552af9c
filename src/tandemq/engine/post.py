"""Publishing on a broker's wire: a letter enters a queue, makes room in it, or waits for some.

The first message decides what a queue is: a letter makes it a broker's, a job makes it a job
queue, and so it stays (ruling 11).
"""

from __future__ import annotations

from enum import Enum

from msgspec.structs import replace

from tandemq.engine import control, dlq, overflow, publish
from tandemq.engine.core import Engine
from tandemq.engine.queue import Queue
from tandemq.model.broker import Mode, Overflow, Policy, Reason, options_of
from tandemq.model.errors import NotFound, QueueFull
from tandemq.model.message import Letter, Message, State

NORMAL = 1  # of the four levels low, normal, high and critical, counted from 0
NAME = "default"  # of the jobs that letters are for workers


class Entry(Enum):
    """What becomes of a letter."""

    ACCEPTED = "it is in its queue, or in the one for dead letters"
    BLOCKED = "its queue is full, and its publisher has to wait"


def exists(engine: Engine, queue: str) -> bool:
    """Whether there is a queue of this name, with messages, a policy or subscribers."""
    q = engine.queues.get(queue)
    return q is not None and (
        q.settings.broker is not None or bool(q.subscriptions) or any(q.counts)
    )


def opened(engine: Engine, queue: str, now: int, default: Policy | None) -> Queue:
    """Return the queue for a letter; one that nobody has decided about becomes a broker's.

    Raises:
        NotFound: there is none, and ``default`` None says that none is made.
    """
    q = engine.queues.get(queue)
    if q is not None and (q.settings.broker is not None or any(q.counts)):
        return q
    if default is None and not exists(engine, queue):
        raise NotFound(queue)
    q = engine.queue(queue)
    control.configure(engine, q, broker=replace(default or Policy(), created=now))
    return q


def post(engine: Engine, q: Queue, letter: Letter, body: bytes, level: int, now: int) -> Entry:
    """Publish a letter; ``body`` is JSON and ``level`` one of four, 0 is low.

    Raises:
        QueueFull: nothing has changed.
    """
    policy = q.settings.broker
    if policy is not None and policy.overflow is Overflow.BLOCK_PUBLISHER:
        if overflow.full(q) or overflow.held(engine, q.name):
            return Entry.BLOCKED
    elif policy is not None and overflow.full(q):
        m = _draft(engine, q, policy, letter, body, level, now)
        if policy.overflow is Overflow.REDIRECT_TO_DLQ and policy.dead_letters:
            dlq.move(engine, m, policy, now, Reason.QUEUE_OVERFLOW, None)
            engine.counters.published += 1
            return Entry.ACCEPTED
        dropped = policy.overflow is Overflow.DROP_OLDEST and overflow.drop_oldest(engine, q, now)
        if not dropped:
            raise QueueFull(q.name)
    enter(engine, q, letter, body, level, now)
    return Entry.ACCEPTED


def enter(engine: Engine, q: Queue, letter: Letter, body: bytes, level: int, now: int) -> None:
    """Publish a letter into a queue that has room for it."""
    m = _draft(engine, q, q.settings.broker, letter, body, level, now)
    publish.begin(engine, q, m, State.READY, now)
    engine.counters.published += 1
    if q.ring or q.subscriptions:
        engine.match(q, now)


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
