"""Cron, CronGet, CronList and CronDelete: jobs that come again by themselves.

Fields, their order of checks and the sentences are the reference's (wire-commands 6); ``missed``,
``maxLateness`` and ``preview`` are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from tandemq.commands import fields as check
from tandemq.commands.answers import part
from tandemq.commands.call import Call
from tandemq.commands.jobdata import check_data
from tandemq.commands.table import ABSENT, Permission, Request, command
from tandemq.engine import cron as calendar
from tandemq.engine import schedules
from tandemq.model import body
from tandemq.model.errors import BadRequest, NotFound
from tandemq.model.permission import Operation
from tandemq.model.schedule import MISSED, ONCE, SKIP, Schedule
from tandemq.model.size import texts_bytes

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

PREVIEW = 1_000  # runs that are shown at most
NAME_LENGTH = 1_024  # characters of a schedule's name, and of its key
SCHEDULE = 200  # bytes of one that is shown, besides its texts
INTERVAL = "Cron repeatEvery must be a positive safe integer number of milliseconds"

Number = int | float
Flag = bool | None


class Cron(Request, tag="Cron", kw_only=True):
    """Add a schedule, or change the one of this name."""

    name: str | None = None
    queue: str | None = None
    data: Raw = ABSENT
    job_name: str | None = None
    schedule: str | None = None
    repeat_every: Number | None = None
    priority: Number | None = None
    max_limit: Number | None = None
    timezone: str | None = None
    unique_key: str | None = None
    dedup: dict[str, Number | str | Flag] | None = None
    skip_missed_on_restart: Flag = None
    skip_if_no_worker: Flag = None
    prevent_overlap: Flag = None
    immediately: Flag = None
    job_options: dict[str, Number | str | Flag | dict[str, Number | str | None]] | None = None
    missed: str | None = None  # ours: skip, once, all
    max_lateness: Number | None = None  # ours: ms

    def opaque(self) -> Iterable[Raw]:
        return (self.data,)

    def concerns(self, engine: Engine) -> Iterable[Any]:
        return (self.queue, *_queue_of(engine, self.name))

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Cron:
        names = zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True)
        return cls(**{to: fields[name] for name, to in names if name in fields})


class CronGet(Request, tag="CronGet"):
    """Ask for a schedule."""

    name: Any = None
    preview: Any = None  # ours: how many of its next runs are shown

    def concerns(self, engine: Engine) -> Iterable[str]:
        return _queue_of(engine, self.name)


class CronList(Request, tag="CronList"):
    """Ask for all schedules."""

    offset: Any = None  # ours, as are limit and queue: part of a long list
    limit: Any = None
    queue: Any = None


class CronDelete(Request, tag="CronDelete"):
    """Remove a schedule."""

    name: Any = None

    def concerns(self, engine: Engine) -> Iterable[str]:
        return _queue_of(engine, self.name)


@command(Permission.PUBLISH, large=("data",), http="POST /crons body")
def cron(req: Cron, call: Call) -> dict[str, Any]:
    """Add a schedule or change one; what it has counted stays."""
    wanted = _schedule(req)
    known = wanted.name in call.engine.schedules
    s = schedules.upsert(
        call.engine,
        wanted,
        call.now,
        immediately=req.immediately is True,
        restart=req.prevent_overlap is True,
    )
    call.remark(f"cron:{'updated' if known else 'created'}", s.queue, **_told(s))
    return {"cron": shown(s)}


@command(Permission.INSPECT, http="GET /crons/{name} 404")
def cron_get(req: CronGet, call: Call) -> dict[str, Any]:
    """Return a schedule; with ``preview`` also its next runs and how it treats them."""
    s = call.engine.schedules.get(req.name) if isinstance(req.name, str) else None
    if s is None:
        raise NotFound("Cron job not found")
    asked = {"preview": req.preview} if isinstance(req.preview, (int, float)) else {}
    count = check.number(asked, "preview", 0, PREVIEW, None, whole=True)
    if count is None:
        return {"cron": shown(s)}
    runs = [_run(s, at) for at in schedules.preview(s, count)]
    return {"cron": shown(s) | _treatment(s), "preview": runs}


@command(Permission.LIST, http="GET /crons")
def cron_list(req: CronList, call: Call) -> dict[str, Any]:
    """Return all schedules, in the order in which they were added; or a part of them.

    Those of queues that the caller may not list are left out. A part is smaller than asked for
    where schedules are large.
    """
    every = call.engine.schedules.values()
    found = (s for s in every if call.may(Operation.LIST_QUEUES, s.queue))
    if isinstance(req.queue, str):
        found = (s for s in found if s.queue == req.queue)
    return {"crons": [shown(s) for s in part(found, size, req.offset, req.limit)]}


@command(Permission.CONTROL, http="DELETE /crons/{name} 404")
def cron_delete(req: CronDelete, call: Call) -> None:
    """Remove a schedule; a job that it has published stays."""
    queue = next(iter(_queue_of(call.engine, req.name)), None)
    if queue is None or not schedules.delete(call.engine, req.name):
        raise NotFound("Cron job not found")
    call.remark("cron:deleted", queue, name=req.name)


# -- what is asked for ---------------------------------------------------------------------------


def _queue_of(engine: Engine, name: Any) -> tuple[str, ...]:
    """Return the queue of a schedule, if it exists."""
    s = engine.schedules.get(name) if isinstance(name, str) else None
    return () if s is None else (s.queue,)


def _schedule(req: Cron) -> Schedule:
    """Check a request and make a schedule of it.

    Raises:
        BadRequest
    """
    name, queue = _name(req.name), check.any_queue(req.queue or None)
    every, pattern = _interval(req.repeat_every), _pattern(req)
    if every is None and pattern is None:
        raise BadRequest("Cron job must have either schedule or repeatEvery")
    job_name, data = _content(req)
    job, delay = _job_options(req)
    return Schedule(
        name=name,
        queue=queue,
        job_name=job_name,
        body=data,
        pattern=pattern,
        every=None if pattern is not None else every,
        tz=check.text(req.timezone) or None,
        priority=_number(req.priority, "priority", *check.PRIORITIES, 0, whole=True),
        delay=delay,
        job=job,
        max_runs=_limit(req.max_limit),
        skip_if_no_worker=req.skip_if_no_worker is True,
        prevent_overlap=req.prevent_overlap is not False,
        missed=_missed(req),
        max_lateness=_number(req.max_lateness, "maxLateness", 0, check.EXACT, None, whole=True),
    )


def _name(name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH:
        raise BadRequest(
            f"Cron name must be a non-empty string of at most {NAME_LENGTH} characters"
        )
    return name


def _interval(every: Any) -> int | None:
    if every is None:
        return None
    found = None if isinstance(every, bool) else check.loose_number(every)
    if found is None or found != int(found) or not 0 < found < check.EXACT:
        raise BadRequest(INTERVAL)
    return int(found)


def _pattern(req: Cron) -> str | None:
    pattern = check.text(req.schedule) or ""
    if not pattern.strip():
        return None
    try:
        calendar.parse(pattern, check.text(req.timezone))
    except calendar.BadPattern as exc:
        raise BadRequest(f"Invalid cron expression: {exc}") from None
    return pattern


def _content(req: Cron) -> tuple[str, bytes]:
    """Return name and data of the jobs; old clients put the name into the data."""
    data = bytes(req.data)
    check_data(data)
    if req.job_name is not None:
        return check.job_name(req.job_name), data
    split = body.split_legacy_name(data)
    return ("default", data) if split is None else (check.job_name(split[0]), split[1])


def _job_options(req: Cron) -> tuple[dict[str, Any], int]:
    """Return what is not default in the jobs' options, and their delay."""
    asked: Any = req.job_options
    if asked is not None and not isinstance(asked, dict):
        raise BadRequest("jobOptions must be an object")
    asked = {name: value for name, value in (asked or {}).items() if value is not UNSET}
    backoff, kind = _backoff(asked.get("backoff"))
    found = {
        "max_attempts": _option(asked, "maxAttempts", 1, 1000, whole=True),
        "backoff": backoff,
        "backoff_type": kind,
        "timeout": _option(asked, "timeout", 0, check.DAY),
        "stall_timeout": check.loose_number(asked.get("stallTimeout")),
        "remove_on_complete": asked.get("removeOnComplete") is True or None,
        "remove_on_fail": asked.get("removeOnFail") is True or None,
        **_uniqueness(req),
    }
    delay = int(_option(asked, "delay", -check.YEAR, check.YEAR) or 0)
    return {name: value for name, value in found.items() if value is not None}, max(0, delay)


def _backoff(value: Any) -> tuple[float | None, str | None]:
    if not isinstance(value, dict):
        return _option({"backoff": value}, "backoff", 0, check.DAY), None
    kind = value.get("type")
    if kind not in ("fixed", "exponential"):
        raise BadRequest("jobOptions.backoff.type must be 'fixed' or 'exponential'")
    return _option(value, "delay", 0, check.DAY, label="jobOptions.backoff.delay"), kind


def _uniqueness(req: Cron) -> dict[str, Any]:
    key, dedup = check.text(req.unique_key) or None, req.dedup
    if key is not None and len(key) > NAME_LENGTH:
        raise BadRequest(f"Cron uniqueKey must be at most {NAME_LENGTH} characters")
    dedup = dedup if isinstance(dedup, dict) else {}
    return {
        "unique_key": key,
        "dedup_ttl": check.loose_number(dedup.get("ttl")),
        "dedup_extend": dedup.get("extend") is True or None,
        "dedup_replace": dedup.get("replace") is True or None,
    }


def _limit(value: Any) -> int | None:
    found = check.loose_number(value)
    return math.ceil(found) if found is not None and 0 < found < check.EXACT else None


def _missed(req: Cron) -> str | None:
    if req.missed is not None:
        if req.missed not in MISSED:
            raise BadRequest("missed must be 'skip', 'once' or 'all'")
        return req.missed
    if not isinstance(req.skip_missed_on_restart, bool):
        return None
    return SKIP if req.skip_missed_on_restart else ONCE


def _option(
    asked: dict[str, Any], name: str, low: int, high: int, *, whole: bool = False, label: str = ""
) -> Any:
    return _number(asked.get(name), label or f"jobOptions.{name}", low, high, None, whole=whole)


def _number(
    value: Any, label: str, low: float, high: float, default: Any, *, whole: bool = False
) -> Any:
    return check.number({label: value}, label, low, high, default, whole=whole)


# -- what is shown -------------------------------------------------------------------------------


def shown(s: Schedule) -> dict[str, Any]:
    """Return a schedule as readers see it."""
    return {
        "name": s.name,
        "jobName": s.job_name,
        "queue": s.queue,
        "schedule": s.pattern,
        "repeatEvery": s.every,
        "nextRun": float(s.next),
        "executions": s.executions,
        "maxLimit": s.max_runs,
        "timezone": s.tz,
        "priority": s.priority,
    }


def _told(s: Schedule) -> dict[str, Any]:
    """Return what those are told of a schedule who look at the server."""
    when = {"every": s.every} if s.pattern is None else {"pattern": s.pattern}
    return {"name": s.name, "queue": s.queue, **when, "nextRun": s.next}


def size(s: Schedule) -> int:
    """Return about how many bytes that takes."""
    return SCHEDULE + texts_bytes((s.name, s.job_name, s.queue, s.pattern, s.tz))


def _treatment(s: Schedule) -> dict[str, Any]:
    return {
        "missed": s.missed,
        "maxLateness": None if s.tolerance is None else float(s.tolerance),
        "preventOverlap": s.prevent_overlap,
        "skipIfNoWorker": s.skip_if_no_worker,
    }


def _run(s: Schedule, at: int) -> dict[str, Any]:
    """Return a moment as a number, and as UTC and the schedule's zone show it."""
    return {"at": float(at), "utc": calendar.shown(at), "local": calendar.shown(at, s.tz)}
