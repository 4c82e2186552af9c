"""What time alone does: everything that is due, in order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice
from typing import Any

from tandemq.engine import (
    admission,
    consume,
    deadletters,
    endings,
    entrance,
    fanout,
    limits,
    overflow,
    schedules,
    search,
    settle,
    sweeps,
    watches,
)
from tandemq.engine.admission import Alarm
from tandemq.engine.consumers import Consumer, Subscription
from tandemq.engine.core import Engine
from tandemq.engine.deadletters import Graveyard
from tandemq.engine.fanout import Copy, Fanout
from tandemq.engine.finished import Finished
from tandemq.engine.overflow import Blocked
from tandemq.engine.pressure import Pressure, Slow
from tandemq.engine.search import Line
from tandemq.engine.sweeps import Sweep
from tandemq.engine.tallies import Tallies
from tandemq.engine.watches import Watch
from tandemq.model.message import Message, State
from tandemq.model.policy import deadline, expires, lease_of
from tandemq.model.schedule import Schedule

READY, LEASED, DEAD = State.READY, State.LEASED, State.DEAD

SLICE = 2_000  # owners looked at in one tick: a million jobs due at once must not stall the loop


def tick(engine: Engine, now: int) -> None:
    """Do what is due at ``now``; call again at ``next_wake``, which may be now again."""
    for owner in islice(engine.timers.due(now), SLICE):
        ON_TIME[type(owner)](engine, owner, now)


def shift_spans(engine: Engine, step: int) -> None:
    """The wall clock was set: move every running span with it, so that it stays a span.

    Leases, runs and waits keep their length; delays, times to live and retention are moments and
    stay where they are (ruling 20).
    """
    for q in engine.queues.values():
        for m in q.members[LEASED].values():
            run, lease = lease_of(m)
            run.started += step
            run.heartbeat += step
            lease.until += step if lease.until else 0
            engine.extended(m)
        if q.limited:
            admission.shift_spans(engine, q, step)
        for c in q.ring:
            if not isinstance(c, Subscription):
                c.until += step
                c.gen += 1
                engine.timers.set(c, c.until)
    _shift_broker(engine, step)
    watches.shift_spans(engine, step)
    sweeps.shift_spans(engine)
    search.shift_spans(engine)


def _shift_broker(engine: Engine, step: int) -> None:
    for out in engine.fanouts.values():
        for copy in out.copies.values():
            if copy.out:  # what waits for a place has no deadline
                copy.until += step
                copy.gen += 1
                engine.timers.set(copy, copy.until)
    for b in chain(engine.pressure.held, *engine.blocked.values()):
        b.until += step
        b.gen += 1
        engine.timers.set(b, b.until)


def next_wake(engine: Engine) -> int | None:
    """Return the moment of the next tick, None when nothing is pending."""
    return engine.timers.next_wake()


def _message(engine: Engine, m: Message, now: int) -> None:
    if m.state is DEAD:
        deadletters.rang(engine, m, now)
        return
    q = engine.queues[m.queue]
    at = deadline(m, q.settings.stall)
    if at is None:
        return
    if at > now:
        engine.timers.set(m, at)
        return
    if m.state is LEASED:
        settle.overdue(engine, m, now)
        return
    if m.seq in engine.fanouts:
        return  # what is out is not cut off
    end = expires(m)
    if end is not None and end <= now:
        endings.expired(engine, m, now)
    else:
        engine.shift(m, "due", READY)
        engine.match(q, now)


ON_TIME: dict[type, Callable[[Engine, Any, int], object]] = {
    Message: _message,
    Consumer: consume.give_up,
    Schedule: schedules.due,
    Alarm: limits.rang,
    Finished: lambda engine, finished, now: finished.sweep(engine, now),
    Sweep: sweeps.go_on,
    Line: search.go_on,
    Watch: watches.give_up,
    Copy: fanout.rang,
    Fanout: fanout.overdue,
    Subscription: fanout.catch_up,
    Blocked: overflow.give_up,
    Pressure: entrance.rang,
    Slow: entrance.late,
    Graveyard: deadletters.go_over,
    Tallies: lambda engine, tallies, _: tallies.flush(engine),
}
"""What is done when the moment of a timer's owner has come."""
