"""Full queues: what makes room, and publishers that wait for some.

Only what waits counts, not what somebody holds. A job is never dropped for room (ruling 12).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tandemq.engine.core import Engine
from tandemq.engine.queue import Queue
from tandemq.model.errors import MemoryFull, MustWait, QueueFull, TandemqError
from tandemq.model.message import State

GONE, DELAYED = State.GONE, State.DELAYED


@dataclass(slots=True, eq=False)
class Blocked:
    """One publisher that waits for room in a queue."""

    queue: str
    conn: int
    req: Any
    accept: Callable[[int], Any]  # (now): publishes, and returns what to answer
    until: int  # when it is refused
    size_bytes: int = 0  # of what it wants to publish
    gen: int = 0


def waiting(q: Queue) -> int:
    """Return how many messages wait in a queue."""
    return len(q.ready) + len(q.members[DELAYED])


def full(q: Queue) -> bool:
    """Whether no more may wait in a queue."""
    policy = q.settings.broker
    return policy is not None and waiting(q) >= policy.max_size


def crowded(engine: Engine, q: Queue) -> bool:
    """Whether whoever comes now must wait: the queue is full, or others were there before."""
    return full(q) or q.name in engine.blocked


def drop_oldest(engine: Engine, q: Queue, now: int) -> bool:
    """Drop the oldest letter of those that are served last; False if there is none."""
    m = next((m for m in q.ready.oldest() if m.letter is not None), None)
    if m is None:
        return False
    from tandemq.engine.endings import ended  # which builds on what needs this module

    engine.counters.dropped += 1
    engine.shift(m, "overflow", GONE)
    engine.queues[q.name] = q  # it may have held nothing else
    ended(engine, m, now, well=False)
    return True


# -- publishers that wait --------------------------------------------------------------------------


def enter(engine: Engine, b: Blocked, now: int) -> Any:
    """Publish and return the answer; None when there is no room, and the answer comes later.

    Raises:
        TandemqError: what it wants to publish is refused.
    """
    if b.queue not in engine.blocked:
        try:
            return b.accept(now)
        except MustWait as full:
            b.queue = full.queue  # of several
    engine.blocked.setdefault(b.queue, deque()).append(b)
    waits(engine, b)
    return None


def admit(engine: Engine, b: Blocked, now: int) -> None:
    """Let somebody in who has waited, and answer; who must wait again does so."""
    try:
        reply = enter(engine, b, now)
    except TandemqError as refused:
        _refuse(engine, b, refused)
        return
    if reply is not None:
        engine.tell(b.conn, b.req, reply)


def let_in(engine: Engine, q: Queue, now: int) -> None:
    """Accept from those who wait for room in a queue, in their order, while there is some."""
    while not full(q) and (waiters := engine.blocked.pop(q.name, None)) is not None:
        b = waiters.popleft()
        waits_no_more(engine, b)
        admit(engine, b, now)
        again = engine.blocked.get(q.name)  # it may have to go on waiting
        if waiters:
            engine.blocked[q.name] = waiters if again is None else again + waiters
        if again is not None:
            return


def give_up(engine: Engine, b: Blocked, now: int) -> None:
    """A publisher has waited long enough."""
    if b.until > now:
        engine.timers.set(b, b.until)
    elif b in engine.blocked.get(b.queue, ()):
        _leave(engine, b)
        _refuse(engine, b, QueueFull(b.queue))
    elif b in engine.pressure.held:
        engine.pressure.held.remove(b)
        waits_no_more(engine, b)
        _refuse(engine, b, MemoryFull())


def disconnect(engine: Engine, conn: int) -> None:
    """Forget what a connection wanted to publish; it was never accepted."""
    for waiters in list(engine.blocked.values()):
        for b in [b for b in waiters if b.conn == conn]:
            _leave(engine, b)
    for b in [b for b in engine.pressure.held if b.conn == conn]:
        engine.pressure.held.remove(b)
        waits_no_more(engine, b)


def refuse_all(engine: Engine, queue: str) -> None:
    """The queue is gone: those who wait for room in it are refused."""
    for b in list(engine.blocked.get(queue, ())):
        _leave(engine, b)
        _refuse(engine, b, QueueFull(queue))


def _refuse(engine: Engine, b: Blocked, error: TandemqError) -> None:
    """Tell a publisher no, as late as it is; who is told at once is counted where that is done."""
    engine.counters.errors += 1
    engine.tell(b.conn, b.req, error)


def waits(engine: Engine, b: Blocked) -> None:
    """Somebody waits from now on, somewhere: for room or for memory."""
    engine.held_bytes[b.conn] = engine.held_bytes.get(b.conn, 0) + b.size_bytes
    engine.timers.set(b, b.until)


def waits_no_more(engine: Engine, b: Blocked) -> None:
    """Somebody waits no more, or will begin to wait anew."""
    b.gen += 1
    left = engine.held_bytes.get(b.conn, 0) - b.size_bytes
    if left:
        engine.held_bytes[b.conn] = left
    else:
        engine.held_bytes.pop(b.conn, None)


def _leave(engine: Engine, b: Blocked) -> None:
    waits_no_more(engine, b)
    waiters = engine.blocked[b.queue]
    waiters.remove(b)
    if not waiters:
        del engine.blocked[b.queue]
