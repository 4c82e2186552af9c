"""The short way of a usual job: handed out for the first time, completed, forgotten.

Most jobs have default options and are done with at the first try, while nobody listens or waits
for anything of them. They go the way of ``Engine.lease``, ``settle.finish`` and ``Engine.forget``
without the stops; tests/engine/test_usual.py plays histories both ways and compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tandemq.engine.pressure import weight
from tandemq.model.message import DEFAULTS, Lease, Message, Run, State
from tandemq.model.policy import LEASE_GRACE, STALL_SWEEP

if TYPE_CHECKING:
    from tandemq.engine.core import Engine
    from tandemq.engine.queue import Queue

LEASED, DONE, GONE = State.LEASED, State.DONE, State.GONE

Ack = tuple[str, str | None, bytes | None]  # an id, a token, a result


def lease(
    engine: Engine, q: Queue, most: int, room: int, conn: int, span: int | None, now: int
) -> list[Message]:
    """Hand out the first ready messages, as far as they are usual; ``room`` is in bytes.

    Who calls knows that the queue is open and not limited; see ``Engine.lease`` for the rest.
    """
    if engine.listening or q.groups is not None:
        return []
    taken = q.ready.fresh(most, room)
    if not taken:
        return taken
    held = engine.leased_by.setdefault(conn, {})
    leased, changed, new_id = q.leased, engine.changed, engine.new_id
    until, at = 0, now + STALL_SWEEP
    if span is not None:
        until = now + span
        at = min(at, until + LEASE_GRACE)
    for m in taken:
        seq = m.seq
        m.run = Run(now, 0, now)
        m.leases += 1
        m.state = LEASED
        m.gen += 1
        m.lease = Lease(None if span is None else new_id(now), until, span or 0, conn)
        held[seq] = leased[seq] = changed[seq] = m
    if taken[0].priority > 0:  # they come from one line
        q.prioritized -= len(taken)
    engine.counters.pulled += len(taken)
    engine.timers.set_all(taken, at)
    return taken


def complete(engine: Engine, q: Queue, acks: Iterable[Ack], now: int) -> int:
    """Complete messages as far as they are usual, and return how many; who calls counts them.

    It stops at the first that has to take the long way, is of another queue or is not held.
    """
    if engine.listening or engine.watches or engine.dependents.waiting:
        return 0
    if q.ring and (q.limited or q.ready):
        return 0  # somebody may wait for a place
    messages, changed, leased_by = engine.messages, engine.changed, engine.leased_by
    leased, done, keep = q.leased, q.members[DONE], engine.finished.add
    progress, count = engine.rules.done_progress, 0
    for id, token, result in acks:
        m = messages.get(id)
        if m is None or (lease := m.lease) is None or m.options is not DEFAULTS:
            break
        conn, run, seq = lease.conn, m.run, m.seq
        if lease.token is not None and lease.token != token:
            break
        if conn is None or lease.delivered or m.repeat is not None or run is None:
            break
        if leased.pop(seq, None) is None:
            break  # it is of another queue
        held = leased_by[conn]
        del held[seq]
        if not held:
            del leased_by[conn]
        run.retired, run.finished, run.result = None, now, result
        if progress is not None:
            run.progress = progress
        m.lease, m.state = None, DONE
        m.gen += 1
        changed[seq] = done[seq] = m
        keep(m)
        count += 1
    return count


def forget(engine: Engine, m: Message) -> bool:
    """Let go of a completed message; False where that has to take the long way."""
    if m.options is not DEFAULTS or m.links is not None or engine.logs:
        return False
    q, seq = engine.queues[m.queue], m.seq
    done = q.members[DONE]
    if len(done) < 2:
        return False  # the queue may go with it
    del done[seq]
    engine.finished.remove(m)
    m.state = GONE
    m.gen += 1
    engine.changed[seq] = m
    engine.pressure.grow(engine, -weight(m))
    if engine.messages.get(m.id) is m:
        del engine.messages[m.id]
    return True
