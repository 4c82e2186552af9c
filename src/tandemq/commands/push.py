"""PUSH and PUSHB: add jobs to a queue.

A frame of the usual shape decodes straight into the typed request, so its numbers are checked
already. Anything else is read field by field, in the order and words of the reference
(wire-commands 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from tandemq.commands import fields as check
from tandemq.commands import repeat
from tandemq.commands.call import Call, Later, Pushed, PushedMany
from tandemq.commands.entry import enter, remark_batch
from tandemq.commands.identity import NOTHING, Dedup, asked, bind, read_identity
from tandemq.commands.jobdata import DATA_LIMIT, check_data, check_size
from tandemq.commands.table import (
    ABSENT,
    Permission,
    Request,
    command,
    queues_of,
)
from tandemq.engine.publish import publish, publish_all
from tandemq.engine.ties import check_all
from tandemq.model import body
from tandemq.model.errors import BadRequest, MustWait
from tandemq.model.message import DEFAULTS, Message, Options
from tandemq.model.values import WideInteger

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

BATCH_LIMIT = 100_000  # jobs of one PUSHB; the frame limit alone would allow millions
MOMENT = 2.0**53  # the largest timestamp that a float holds exactly
MOST_COST = 1_000_000_000
SHARED = 4096  # sets of options that are kept as one object for all jobs that ask for them

Yearly = Annotated[float, Meta(ge=0, le=check.YEAR)] | None
Daily = Annotated[float, Meta(ge=0, le=check.DAY)] | None
GroupId = Annotated[str, Meta(min_length=1, max_length=check.GROUP_LENGTH, pattern=r"\A[^\x00]*\Z")]
GroupSize = Annotated[int, Meta(ge=1, le=check.SAFE)]
Strikes = Annotated[int, Meta(ge=0, le=1000)] | None
Name = Annotated[str, Meta(min_length=1, max_length=check.NAME_LENGTH)]
T = TypeVar("T")
J = TypeVar("J")


class Job(Request):
    """What PUSH says of one job, and each member of a PUSHB."""

    data: Raw = ABSENT
    name: Name | UnsetType = UNSET
    priority: Annotated[int, Meta(ge=-1_000_000, le=1_000_000)] | None = 0
    delay: Yearly = 0
    max_attempts: Annotated[int, Meta(ge=1, le=1000)] | None = 3
    backoff: Daily = 1000
    ttl: Yearly = None
    timeout: Daily = None
    job_id: str | None = None  # PUSH names its own id so,
    custom_id: str | None = None  # PUSHB so; both are read
    lifo: bool | None = False
    durable: bool | None = False
    remove_on_complete: bool | None = False
    remove_on_fail: bool | None = False
    timestamp: float | None = None
    tags: tuple[str, ...] | None = None
    stall_timeout: float | None = None
    stack_trace_limit: float | None = None
    keep_logs: float | None = None
    size_limit: float | None = None
    group_id: GroupId | UnsetType = UNSET
    group_max_size: GroupSize | None = None
    cost: Annotated[float, Meta(ge=0, le=MOST_COST)] | None = 1  # ours
    max_stalls: Strikes = None  # ours
    max_interruptions: Strikes = None  # ours
    unique_key: str | None = None
    dedup: Dedup | None = None
    debounce_id: str | None = None
    debounce_ttl: float | None = None
    depends_on: list[str] | None = None
    parent_id: str | None = None
    children_ids: list[str] | None = None
    fail_parent_on_failure: bool | None = False
    continue_parent_on_failure: bool | None = False
    ignore_dependency_on_failure: bool | None = False
    remove_dependency_on_failure: bool | None = False
    cascade_on_failure: bool | None = False  # ours
    fail_on_removal: bool | None = False  # ours
    repeat: repeat.Fields | None = None
    backoff_type: Literal["fixed", "exponential"] | None = None  # set by ``read``

    def touches(self, engine: Engine) -> Iterable[str]:
        """Return the queues of the jobs it is tied to, and of the one that has its id already."""
        own = (self.job_id, self.custom_id, self.parent_id)
        return queues_of(engine, (*own, *(self.depends_on or ()), *(self.children_ids or ())))

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Any:
        """Nearly all members of an odd batch are not odd themselves; those take no time."""
        check_data(bytes(fields.get("data", ABSENT)))
        try:
            if WideInteger not in map(type, fields.values()):
                return msgspec.convert(fields, cls)
        except msgspec.ValidationError:
            pass  # it is read slowly, which finds the words or makes the best of it
        return cls(**_read_job(fields))


class Push(Job, tag="PUSH", kw_only=True):
    """Add one job."""

    queue: str

    def opaque(self) -> Iterable[Raw]:
        return (self.data,)

    def concerns(self, engine: Engine) -> Iterable[str]:
        return (self.queue, *self.touches(engine))

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Push:
        queue = check.queue_name(fields.get("queue"))
        return cls(queue=queue, **_read_job(fields), req_id=fields.get("reqId", ABSENT))


class PushMany(Request, tag="PUSHB", kw_only=True):
    """Add several jobs, all or none."""

    queue: str
    jobs: Annotated[list[Job], Meta(max_length=BATCH_LIMIT)]

    def opaque(self) -> Iterable[Raw]:
        return [job.data for job in self.jobs]

    def concerns(self, engine: Engine) -> Iterable[str]:
        return chain((self.queue,), *(job.touches(engine) for job in self.jobs))

    @classmethod
    def read(cls, fields: dict[str, Any]) -> PushMany:
        queue, listed = check.queue_name(fields.get("queue")), check.listed(fields, "jobs")
        check_count(len(listed))
        jobs = [_numbered(i, _member, job) for i, job in enumerate(listed)]
        return cls(queue=queue, jobs=jobs, req_id=fields.get("reqId", ABSENT))


@command(Permission.PUBLISH, large=("data",), http="POST /queues/{queue}/jobs body")
def push(req: Push, call: Call) -> Pushed | Later:
    """Add a job to a queue and return its id."""
    queue, req_id = req.queue, req.req_id
    check.good_queue(queue)
    req.queue, req.req_id = "", ABSENT  # so that a plain one compares as such
    try:
        m = draft(req, queue, call.now)
    finally:
        req.req_id = req_id
    if not call.engine.pressure.level:
        try:
            return Pushed(publish(call.engine, m, call.now).id)
        except MustWait:
            pass
    return enter(call, req, queue, (m.body,), partial(_push, call.engine, m))


def _push(engine: Engine, m: Message, now: int) -> Pushed:
    return Pushed(publish(engine, m, now).id)


@command(Permission.PUBLISH, large=("jobs",), http="POST /queues/{queue}/jobs/bulk body")
def push_many(req: PushMany, call: Call) -> PushedMany | Later:
    """Add jobs to a queue, all or none, and return their ids."""
    queue, jobs = check.queue_name(req.queue), req.jobs
    check_count(len(jobs))
    engine, now = call.engine, call.now
    if not jobs:  # they would leave a queue behind that holds nothing
        return PushedMany([])
    drafts = each(jobs, lambda job: draft(job, queue, now))
    if not engine.pressure.level:
        try:
            return _push_many(engine, queue, drafts, now)
        except MustWait:
            pass
    bodies = (m.body for m in drafts)
    return enter(call, req, queue, bodies, partial(_push_many, engine, queue, drafts))


def _push_many(engine: Engine, queue: str, drafts: list[Message], now: int) -> PushedMany:
    check_all(engine, drafts, now)
    accepted = publish_all(engine, queue, drafts, now)
    remark_batch(engine, queue, drafts, accepted, now)
    return PushedMany([m.id for m in accepted])


def check_count(jobs: int) -> None:
    """Check how many jobs one PUSHB adds.

    Raises:
        BadRequest
    """
    if jobs > BATCH_LIMIT:
        raise BadRequest(f"PUSHB takes at most {BATCH_LIMIT} jobs; send {jobs} in parts")


def draft(job: Job, queue: str, now: int) -> Message:
    """Check what a job holds and make a message of it; its numbers are good already.

    Raises:
        BadRequest
    """
    name, data = contents(job.data, job.name)
    # What is left of a job without its data and name tells, in one comparison, whether it asks
    # for anything at all; most members of batches do not.
    job.data, job.name = ABSENT, UNSET
    if job in _PLAINS:
        return Message("", queue, name, data, 0, now, now)
    if job.group_id is not UNSET:
        check.group_priority(job.priority)
    id, stamp = job.job_id or job.custom_id or "", job.timestamp
    created = int(stamp) if stamp is not None and abs(stamp) < MOMENT else now
    due = created + int(job.delay or 0)
    options = _options(job, bool(id))
    if options.size_limit:
        job.data, job.name = Raw(data), name  # of a batch, it may be looked at again
        check_size(data, options)
    m = Message(id, queue, name, data, 0, created, due, job.priority or 0, options)
    if asked(job) != NOTHING:
        bind(job, m)
    if job.repeat is not None:
        tied = bool(job.depends_on or job.parent_id or job.children_ids)
        m.repeat = repeat.read(job.repeat, named=bool(id), tied=tied)
    return m


def contents(raw: Raw, name: str | UnsetType) -> tuple[str, bytes]:
    """Return the name and the data of a job; the name may stand in the data.

    Raises:
        BadRequest
    """
    data = bytes(raw)
    if len(data) * 6 > DATA_LIMIT:
        check_data(data)
    if name is not UNSET:
        return name, data
    split = body.split_legacy_name(data)
    return ("default", data) if split is None else (check.job_name(split[0]), split[1])


_asked = attrgetter(
    "max_attempts", "backoff", "backoff_type", "ttl", "timeout", "lifo", "durable",
    "remove_on_complete", "remove_on_fail", "stall_timeout", "stack_trace_limit", "keep_logs",
    "size_limit", "tags", "group_id", "group_max_size", "cost", "max_stalls", "max_interruptions",
)  # fmt: skip
_PLAINS = Job(), Push(queue="")
_PLAIN = _asked(_PLAINS[0])
_shared: tuple[dict[Any, Options], dict[Any, Options]] = ({}, {})


def _options(job: Job, named: bool) -> Options:
    """Return what the job asks for, as one object for all jobs that ask for the same."""
    key, shared = _asked(job), _shared[named]
    if key == _PLAIN and not named:
        return DEFAULTS
    options = shared.get(key)
    if options is None:
        options = _make_options(job, named)
        if len(shared) < SHARED:
            shared[key] = options
    return options


def _make_options(job: Job, named: bool) -> Options:
    stack = check.whole(job.stack_trace_limit)
    return Options(
        max_attempts=3 if job.max_attempts is None else job.max_attempts,
        backoff=1000 if job.backoff is None else job.backoff,
        backoff_type=job.backoff_type,
        ttl=job.ttl,
        timeout=job.timeout,
        lifo=bool(job.lifo),
        durable=bool(job.durable),
        remove_on_complete=bool(job.remove_on_complete),
        remove_on_fail=bool(job.remove_on_fail),
        custom_id=named,
        stall_timeout=check.loose_number(job.stall_timeout),
        stack_trace_limit=10 if stack is None else stack,
        keep_logs=check.loose_number(job.keep_logs),
        size_limit=check.loose_number(job.size_limit),
        tags=job.tags or (),
        group=None if job.group_id is UNSET else job.group_id,
        group_max=None if job.group_id is UNSET else job.group_max_size,
        cost=1 if job.cost is None else job.cost,
        max_stalls=job.max_stalls,
        max_interruptions=job.max_interruptions,
    )


# -- reading what did not fit at once ------------------------------------------------------------

# name, from, to, what null stands for, whole numbers only
_PRIORITY = ("priority", *check.PRIORITIES, 0, True)
_SPANS = (
    ("delay", 0, check.YEAR, 0, False),
    ("timeout", 0, check.DAY, None, False),
    ("maxAttempts", 1, 1000, 3, True),
)
_LIMITS = (
    ("ttl", 0, check.YEAR, None, False),
    ("cost", 0, MOST_COST, 1, False),
    ("maxStalls", 0, 1000, None, True),
    ("maxInterruptions", 0, 1000, None, True),
)
_UNCHECKED: dict[Callable[[Any], Any], tuple[str, ...]] = {
    check.loose_number: ("timestamp", "stallTimeout", "stackTraceLimit", "keepLogs", "sizeLimit"),
    bool: ("lifo", "durable", "removeOnComplete", "removeOnFail"),
    check.identifier: ("jobId", "customId"),
    check.texts: ("tags",),
    lambda value: value: ("repeat",),
}  # fmt: skip
_LOOSE = [(name, check.snake(name), read) for read, names in _UNCHECKED.items() for name in names]
_SNAKE = {name: check.snake(name) for name, *_ in (_PRIORITY, *_SPANS, *_LIMITS)}


def _read_job(fields: dict[str, Any]) -> dict[str, Any]:
    """Read what is there; what is absent is as a job has it by itself."""
    data = bytes(fields.get("data", ABSENT))
    check_data(data)
    found: dict[str, Any] = {"data": Raw(data)}
    grouped = "groupId" in fields
    if grouped:
        found["group_id"] = check.group_id(fields["groupId"])
        found["priority"] = check.group_priority(fields.get("priority", 0))
    _read_numbers(fields, found, _SPANS if grouped else (_PRIORITY, *_SPANS))
    if "backoff" in fields:
        found["backoff"], found["backoff_type"] = _read_backoff(fields)
    _read_numbers(fields, found, _LIMITS)
    if grouped and fields.get("groupMaxSize") is not None:
        found["group_max_size"] = check.positive(fields["groupMaxSize"], "group.maxSize")
    if "name" in fields:
        found["name"] = check.job_name(fields["name"])
    found.update(read_identity(fields))
    for name, to, read in _LOOSE:
        if name in fields:
            found[to] = read(fields[name])
    return found


def _read_numbers(
    fields: dict[str, Any], found: dict[str, Any], wanted: Iterable[tuple[Any, ...]]
) -> None:
    for name, low, high, default, whole in wanted:
        if name in fields:
            found[_SNAKE[name]] = check.number(fields, name, low, high, default, whole=whole)


def _read_backoff(fields: dict[str, Any]) -> tuple[float, str | None]:
    value = fields.get("backoff")
    if not isinstance(value, (dict, list)):
        return check.number(fields, "backoff", 0, check.DAY, 1000), None
    parts = value if isinstance(value, dict) else {}
    kind = parts.get("type")
    if kind not in ("fixed", "exponential"):
        raise BadRequest("backoff.type must be 'fixed' or 'exponential'")
    delay = check.number(parts, "delay", 0, check.DAY, None, label="backoff.delay")
    if delay is None:
        raise BadRequest("backoff.delay is required")
    return delay, kind


def _member(fields: Any) -> Job:
    if not isinstance(fields, dict):
        raise BadRequest("must be a map with the fields of a job")
    job: Job = Job.read(fields)
    return job


def each(jobs: list[J], do: Callable[[J], T]) -> list[T]:
    """Do something with all members of a batch; a refusal tells with which it went wrong."""
    try:
        return [do(job) for job in jobs]
    except BadRequest:
        for i, job in enumerate(jobs):  # again, slowly: which one was it?
            _numbered(i, do, job)
        raise


def _numbered(index: int, do: Callable[[Any], Any], job: Any) -> Any:
    """Do something with a member of a batch; a refusal tells which member it was."""
    try:
        return do(job)
    except BadRequest as refused:
        raise type(refused)(f"jobs[{index}]: {refused}") from None
