"""Taking in what a store holds: at start, and when a batch that could not be stored is undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tandemq.engine import sweeps
from tandemq.engine.consume import release
from tandemq.engine.core import Engine
from tandemq.engine.deadletters import remember_try, restored
from tandemq.engine.overlap import dropped
from tandemq.engine.queue import Queue
from tandemq.engine.settle import bury, retry_later
from tandemq.engine.timeline import end_run
from tandemq.model.message import Message, State, Try
from tandemq.model.policy import most_stalls

PARKED, READY, LEASED = State.PARKED, State.READY, State.LEASED


def resume(engine: Engine, now: int) -> int:
    """Decide about the messages that a crash left leased; return how many there were.

    Each is charged an attempt and a stall, and tried again after its back-off (bunqueue semantics
    17). A clean stop gives leases back before it stores them, so it leaves none. What subscribers
    held, or copies of it, takes its old place again, uncharged.
    """
    held = [m for q in engine.queues.values() for m in q.members[LEASED].values()]
    for q in list(engine.queues.values()):
        _unspread(engine, q)
    for m in held:
        if dropped(engine, m, now) or _undelivered(engine, m):
            continue
        run = m.run
        assert run is not None, "a leased message has run"
        started = run.started
        end_run(run)
        m.attempts += 1
        run.stalls += 1
        limit = most_stalls(m.options, engine.queues[m.queue].settings.stall)
        if m.attempts >= m.options.max_attempts:
            run.error = f"Job reached max attempts ({m.attempts}) during startup recovery"
            bury(engine, m, now, "max_attempts_exceeded")
        elif limit > 0 and run.stalls >= limit:
            run.error = f"Job stalled {run.stalls} times (recovered at startup)"
            bury(engine, m, now, "stalled")
        else:
            remember_try(run, Try(m.attempts, started, now, "stalled", "The server ended"))
            retry_later(engine, m, now)
            run.started = started
    engine.finished.sort()
    for q in list(engine.queues.values()):
        restored(engine, q)
    return len(held)


def _undelivered(engine: Engine, m: Message) -> bool:
    """Give back what a subscriber held; False for anything else."""
    if m.lease is None or not m.lease.delivered:
        return False
    engine.timers.unwatch(m.seq)
    m.lease.delivered, m.lease.conn = False, None  # nobody has to be told that there is a place
    engine.shift(m, "release", READY)
    return True


def _unspread(engine: Engine, q: Queue) -> None:
    """Let what waited for its copies wait for subscribers: copies end with the server."""
    for m in list(q.members[PARKED].values()) if q.fans_out else ():
        if (m.links is None or not m.links.open) and not engine.keyring.follows(m):
            engine.shift(m, "settled", READY)


def show_last_start(m: Message) -> None:
    """Let a message read at start tell when it last ran, as the reference's rows do."""
    if m.run is not None and not m.run.started:
        m.run.started = next((s.at for s in reversed(m.run.history) if s.state is LEASED), 0)


def roll_back(
    engine: Engine,
    touched: Iterable[Message],
    stored: Iterable[Message],
    now: int,
    lost: Callable[[int], bool] = lambda conn: False,
) -> None:
    """Replace messages by what the store knows of them.

    ``touched`` are all that changed since the last stored batch, ``stored`` those of them that
    the store holds. All go before any comes back, since a new message may bear an old one's id.
    Leases of connections that are ``lost`` meanwhile are given back at once.
    """
    gens: dict[int, int] = {}
    for m in touched:
        engine.evict(m)
        gens[m.seq] = m.gen
    back = list(stored)
    for m in back:
        m.gen = gens[m.seq]  # newer than any entry that the old record has left behind
        engine.admit(m)
        if _undelivered(engine, m):
            continue
        if m.lease is not None and m.lease.conn is not None and lost(m.lease.conn):
            release(engine, m, now)
    engine.finished.sort()
    sweeps.fail_all(engine, "what this command had done could not be stored")
    for name in dict.fromkeys(m.queue for m in back):
        _unspread(engine, engine.queues[name])
        restored(engine, engine.queues[name])
        engine.match(engine.queues[name], now)
