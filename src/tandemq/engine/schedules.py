"""Recurring publishes: when the next run of a schedule is, and whether it takes place.

A schedule has one timer, for its next run; a hundred thousand of them cost nothing while none is
due. A run is published in the same batch as the schedule that has counted it, so neither a crash
nor a batch that could not be stored makes a run happen twice or leaves one out.

Sources: bunqueue semantics 12 and quirk 60; what becomes of missed runs is ours.
"""

from __future__ import annotations

import msgspec

from tandemq.engine import endings, publish
from tandemq.engine.core import Engine
from tandemq.engine.cron import BadPattern, parse
from tandemq.model.errors import TandemqError
from tandemq.model.message import State
from tandemq.model.schedule import ALL, Schedule, alive, options_of

FACT = "cron/"  # + name: the key under which a schedule is stored
STUCK = 3_600_000  # ms until the next look at a schedule whose moments cannot be told
PAUSE = 1_000  # ms until the next try after a batch with a run could not be stored

_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(Schedule).decode


def upsert(
    engine: Engine, new: Schedule, now: int, *, immediately: bool = False, restart: bool = False
) -> Schedule:
    """Add a schedule, or change the one of this name, which keeps what it has counted.

    A run that is planned stays planned, as long as the schedule names the same moments: programs
    that add their schedules at every start would put it off for ever. ``immediately`` plans the
    first run of a new schedule for now. ``restart`` drops a run that still waits.

    Raises:
        BadPattern
    """
    known = engine.schedules.get(new.name)
    planned = _first_after(new, now)
    if known is not None:
        new.executions, new.last_job = known.executions, known.last_job
        planned = known.next if known.same_moments(new) else planned
        known.gen += 1  # its timer is none of the new one's
    else:
        planned = now if immediately else planned
        new.last_job = _left_behind(engine, new, now)
    if restart:
        _drop_waiting(engine, new, now)
    assert planned is not None, "a pattern that never matches is refused when it is read"
    engine.schedules[new.name] = new
    _plan(engine, new, planned)
    return new


def delete(engine: Engine, name: str) -> bool:
    """Forget a schedule; False when there is none. A run that was published stays."""
    s = engine.schedules.pop(name, None)
    if s is None:
        return False
    s.gen += 1
    engine.record(FACT + name, None)
    return True


def preview(s: Schedule, count: int) -> list[int]:
    """Return the moments of the next runs, at most ``count``, if nothing keeps one from taking
    place.
    """
    if s.max_runs is not None:
        count = min(count, s.max_runs - s.executions)
    at: int | None = s.next
    found: list[int] = []
    while at is not None and len(found) < count:
        found.append(at)
        at = _first_after(s, at)
    return found


def due(engine: Engine, s: Schedule, now: int) -> None:
    """The moment of the next run has come; its timer may have rung too early."""
    at = s.next
    if at > now:
        engine.timers.set(s, at)
        return
    if s.spent:
        delete(engine, s.name)
        return
    try:
        following = _following(s, at, now)
    except BadPattern:  # its time zone is gone from this machine: a pity, but no end of it
        engine.timers.set(s, now + STUCK)
        return
    tolerance = s.tolerance
    if tolerance is None or now - at <= tolerance:
        _run(engine, s, now)
    if following is None:
        delete(engine, s.name)
    else:
        _plan(engine, s, following)


def restore(engine: Engine, name: str, fact: bytes | None, now: int | None = None) -> None:
    """Take a schedule as it was stored; None is none.

    ``now`` is given when a batch could not be stored: a run that is due is tried again a little
    later, and not in every turn until writing works.
    """
    known = engine.schedules.pop(name, None)
    if known is not None:
        known.gen += 1
    if fact is not None:
        s = engine.schedules[name] = _decode(fact)
        engine.timers.set(s, s.next if now is None else max(s.next, now + PAUSE))


def _plan(engine: Engine, s: Schedule, at: int) -> None:
    s.next = at
    s.gen += 1
    engine.timers.set(s, at)
    engine.record(FACT + s.name, _encode(msgspec.structs.replace(s, gen=0)))


def _run(engine: Engine, s: Schedule, now: int) -> None:
    """Publish a message, unless nobody works or the last one has not ended."""
    if s.skip_if_no_worker and not engine.workers.on(s.queue, now):
        engine.remark("cron:skipped", s.queue, now, name=s.name, queue=s.queue, reason="no-worker")
        return
    if s.exclusive and s.last_job and alive(engine.messages.get(s.last_job)):
        engine.remark("cron:skipped", s.queue, now, name=s.name, queue=s.queue, reason="overlap")
        return
    m = publish.draft(s.queue, s.job_name, s.body, now, s.priority, s.delay, options_of(s))
    try:
        accepted = publish.publish(engine, m, now)
    except TandemqError:  # its queue is full: a run that does not take place
        return
    s.last_job = accepted.id
    if accepted is m:
        s.executions += 1
        engine.remark("cron:fired", s.queue, now, name=s.name, queue=s.queue)


def _left_behind(engine: Engine, s: Schedule, now: int) -> str | None:
    """Return the run that a deleted schedule of this name has left, if it has not ended."""
    if not s.exclusive or s.key is None:
        return None
    holder = engine.keyring.holder(engine, s.queue, s.key, now)
    return None if holder is None else holder.id


def _drop_waiting(engine: Engine, s: Schedule, now: int) -> None:
    """Drop the last run if it still waits for a worker."""
    m = engine.messages.get(s.last_job or "")
    if m is not None and m.state in (State.READY, State.DELAYED):
        engine.shift(m, "cancel", State.GONE)
        endings.ended(engine, m, now, well=False)


def _first_after(s: Schedule, moment: int) -> int | None:
    """Return the next moment after an execution, or after the schedule was made."""
    if s.pattern is not None:
        return parse(s.pattern, s.tz).next(moment)
    assert s.every is not None, "a schedule has a pattern or an interval"
    return moment + s.every


def _following(s: Schedule, at: int, now: int) -> int | None:
    """Return the moment of the run after the one at ``at``, of which the time has come ``now``.

    Intervals count from the planned moment, so they do not drift. Missed runs are left behind,
    unless all are to be made up for: then the next one may lie in the past too, as far back as
    the tolerance reaches.
    """
    passed = now
    if s.missed == ALL:
        tolerance = s.tolerance
        passed = at if tolerance is None else max(at, now - tolerance - 1)
    if s.pattern is not None:
        return parse(s.pattern, s.tz).next(passed)
    assert s.every is not None, "a schedule has a pattern or an interval"
    return at + s.every * ((passed - at) // s.every + 1)
