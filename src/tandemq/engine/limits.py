"""Limits of a queue: its rate, its concurrency, and when a silent worker's message is taken back.

They are settings, so they survive a restart; the level of the rate limit does not. Sources:
bunqueue semantics 7 and 8, quirks 32 and 33.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from tandemq.engine import admission, groups, overflow
from tandemq.engine.admission import NEVER, Alarm, Bucket
from tandemq.engine.control import configure
from tandemq.engine.core import Engine
from tandemq.model.policy import Rate, Stall

NO_LIMIT = -2  # ms until there are tokens, where there is no rate limit
NEVER_OPENS = -1  # where time alone does not bring any


class View(NamedTuple):
    """The limits of a queue at a moment."""

    rate: Rate | None
    opens_in: int  # ms
    concurrency: float | None
    full: bool  # as many are leased as may be


def set_rate(
    engine: Engine, queue: str, most: float, span: float, now: int, ttl: int | None = None
) -> None:
    """Hand out at most ``most`` in ``span`` ms, refilled evenly; with ``ttl`` for so many ms.

    A limit of 0 or less hands out nothing. Each call begins with full tokens.
    """
    q, rate = engine.queue(queue), Rate(most, span, None if ttl is None else now + ttl)
    configure(engine, q, rate=rate)
    q.bucket = Bucket(rate)  # an equal limit begins anew as well
    engine.match(q, now)


def clear_rate(engine: Engine, queue: str, now: int) -> None:
    """Hand out as fast as somebody pulls."""
    _change(engine, queue, now, rate=None)


def set_concurrency(engine: Engine, queue: str, limit: float | None, now: int) -> None:
    """Let at most ``limit`` messages be leased at a time; None: any number.

    Those that were leased before count, so lowering it hands out nothing until some have ended.
    """
    _change(engine, queue, now, concurrency=limit)


def set_stall(engine: Engine, queue: str, now: int, **changes: object) -> None:
    """Change when a message without sign of life is taken back, for those at work as well."""
    q = engine.queue(queue)
    configure(engine, q, stall=replace(q.settings.stall, **changes))
    engine.tidy(q)


def stall_of(engine: Engine, queue: str) -> Stall:
    """Return when a message without sign of life is taken back."""
    q = engine.queues.get(queue)
    return q.settings.stall if q is not None else Stall()


def view(engine: Engine, queue: str, tokens: float, now: int) -> View:
    """Return the limits of a queue, and how long until there are so many tokens."""
    q = engine.queues.get(queue)
    if q is None:
        return View(None, NO_LIMIT, None, False)
    rate, bucket = q.settings.rate, admission.bucket_at(q, now)
    limit = q.settings.concurrency
    if rate is None or bucket is None:
        return View(None, NO_LIMIT, limit, admission.full(q))
    if rate.ends is not None:
        return View(rate, rate.ends - now, limit, admission.full(q))
    at = bucket.has_at(tokens, now)
    opens_in = NEVER_OPENS if at >= NEVER else max(0, at - now)
    return View(rate, opens_in, limit, admission.full(q))


def rang(engine: Engine, alarm: Alarm, now: int) -> None:
    """Time may have opened something in a queue: hand out what it has."""
    alarm.at = NEVER
    q = engine.queues.get(alarm.queue)
    if q is None or q.alarm is not alarm:
        return
    groups.lapse(engine, q, now)
    rate = q.settings.rate
    if rate is not None and rate.ends is not None and rate.ends <= now:
        configure(engine, q, rate=None)
    engine.match(q, now)
    if alarm.queue in engine.blocked:
        overflow.let_in(engine, q, now)  # the queue may have no bound any more
    admission.arm(engine, q)
    engine.tidy(q)


def _change(engine: Engine, queue: str, now: int, **changes: object) -> None:
    q = engine.queue(queue)
    configure(engine, q, **changes)
    engine.match(q, now)
    engine.tidy(q)
