"""PUSHF: add a whole flow, all of its jobs or none.

Most jobs of flows say no more than their name, data and family, and are checked as such in a few
comparisons; every other is checked field by field, like those that did not fit at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw

from tandemq.commands import flowcheck
from tandemq.commands.call import Call, Flowed, Later
from tandemq.commands.entry import enter
from tandemq.commands.identity import FLAGS
from tandemq.commands.jobdata import DATA_LIMIT
from tandemq.commands.push import Job, draft
from tandemq.commands.table import ABSENT, Permission, Request, command, queues_of
from tandemq.engine import flows, trees
from tandemq.model.body import is_map
from tandemq.model.errors import BadRequest, MustWait
from tandemq.model.message import Links, Message
from tandemq.model.policy import ANSWER_BYTES
from tandemq.model.size import message_bytes

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

JOB_LIMIT = 10_000
TOTAL_LIMIT = 64 << 20  # bytes of all data
TOO_LARGE = "flow data is too large (max 64MB per atomic batch)"
FEW = 100  # jobs whose answer is hardly longer than their request

P = TypeVar("P")

_FAMILY = ("depends_on", "parent_id", "children_ids")
_SEEN = ("req_id", "data", "name", *_FAMILY, *FLAGS)
_BARE = Job()
_OTHERS = tuple(name for name in Job.__struct_fields__ if name not in _SEEN)
_others = attrgetter(*_OTHERS)
_PLAIN = _others(_BARE)
_flags = attrgetter(*FLAGS)
_NO_FLAGS = (False,) * len(FLAGS)
_ONE_FLAG = {tuple(flag == chosen for flag in FLAGS): policy for chosen, policy in FLAGS.items()}
_DEFAULTS = {name: getattr(_BARE, name) for name in Job.__struct_fields__}
_CAMEL = dict(zip(Job.__struct_fields__, Job.__struct_encode_fields__, strict=True))


class Planned(msgspec.Struct, gc=False):
    """One job of a flow, under an id that is chosen before."""

    id: str
    queue: str
    input: Job


class PushFlow(Request, tag="PUSHF", kw_only=True):
    """Add the jobs of a flow, all or none."""

    jobs: Annotated[list[Planned], Meta(max_length=JOB_LIMIT)]
    on_child_failure: str | None = None  # ours: what a child without a policy of its own does

    def opaque(self) -> Iterable[Raw]:
        return [job.input.data for job in self.jobs]

    def concerns(self, engine: Engine) -> Iterable[str]:
        return concerned(engine, self.jobs)

    @classmethod
    def read(cls, fields: dict[str, Any]) -> PushFlow:
        listed = fields.get("jobs")
        if not isinstance(listed, list):
            raise BadRequest("flow jobs must be an array")
        check_count(len(listed))
        seen: set[str] = set()
        jobs = [_read_planned(job, seen) for job in listed]
        req, policy = fields.get("reqId", ABSENT), fields.get("onChildFailure")
        return cls(jobs=jobs, on_child_failure=policy, req_id=req)


def concerned(engine: Engine, jobs: Sequence[Any]) -> Iterable[str]:
    """Return the queues of planned jobs, of whoever has their ids already, and of their ties."""
    taken = queues_of(engine, [job.id for job in jobs])
    return chain((job.queue for job in jobs), taken, *(job.input.touches(engine) for job in jobs))


@command(Permission.PUBLISH, large=("jobs",), http="POST /flows body")
def push_flow(req: PushFlow, call: Call) -> Flowed | Later:
    """Add a flow of jobs, all or none, and return them."""
    return add_flow(req, req.on_child_failure, planned_draft, call)


def add_flow(
    req: Any, policy: str | None, draft: Callable[[Any, int], Message], call: Call
) -> Flowed | Later:
    """Check the jobs of a flow, each and together, and add them as soon as there is room.

    ``draft`` makes a message of a job whose id and queue are good.
    """
    drafts = _drafts(req.jobs, policy, draft, call.now)
    if not (call.engine.pressure.level and drafts):
        try:
            return _add(call.engine, drafts, call.now)
        except MustWait:
            pass
    bodies = (m.body for m in drafts)
    return enter(call, req, drafts[0].queue, bodies, partial(_add, call.engine, drafts))


def _drafts(
    jobs: Sequence[P], policy: str | None, draft: Callable[[P, int], Message], now: int
) -> list[Message]:
    if policy is not None and policy not in flows.POLICIES:
        raise BadRequest(f"onChildFailure must be one of {', '.join(flows.POLICIES)}")
    check_count(len(jobs))
    drafts: list[Message] = []
    seen: set[str] | None = None if flowcheck.all_usual(jobs) else set()
    size = 0
    for job in jobs:
        if seen is not None:
            _check_place(job, seen)
        m = draft(job, now)
        if policy is not None and m.links is not None and m.links.parent is not None:
            m.links.on_failure = m.links.on_failure or policy
        size += len(m.body)
        if size > TOTAL_LIMIT:
            raise BadRequest(TOO_LARGE)
        drafts.append(m)
    if len(drafts) > FEW and sum(map(message_bytes, drafts)) > ANSWER_BYTES:
        raise BadRequest(TOO_LARGE)  # its answer, which holds every job, would be
    flowcheck.check_topology(drafts)
    return drafts


def _add(engine: Engine, drafts: list[Message], now: int) -> Flowed:
    if (taken := trees.taken(engine, [m.id for m in drafts])) is not None:
        raise BadRequest(f"Flow job {taken} already exists")
    trees.publish_flow(engine, drafts, now)
    return Flowed(drafts)


def check_count(count: int) -> None:
    """Check how many jobs a flow has.

    Raises:
        BadRequest
    """
    if count > JOB_LIMIT:
        raise BadRequest(f"flow exceeds the {JOB_LIMIT} job limit")


def _check_place(job: Any, seen: set[str]) -> None:
    """Check id and queue of a job; ``seen`` are the ids before it."""
    flowcheck.good_id(job.id)
    if job.id in seen:
        raise BadRequest(f"duplicate flow job id: {job.id}")
    seen.add(job.id)
    flowcheck.good_queue(job.queue)


def planned_draft(planned: Planned, now: int) -> Message:
    """Check what a job says and make a message of it; its id and queue are good already.

    Raises:
        BadRequest
    """
    m = _plain_draft(planned, now)
    if m is None:
        job = planned.input
        flowcheck.good_input(planned.id, _as_fields(job))
        m = draft(job, planned.queue, now)
        m.id = planned.id
    return m


def _plain_draft(planned: Planned, now: int) -> Message | None:
    """Make a message of a job that asks for nothing but its family; None for any other."""
    job = planned.input
    raw, name, parent = job.data, job.name, job.parent_id
    needs, children = job.depends_on, job.children_ids
    # What is left without these tells, in one comparison, whether it asks for anything else.
    job.data, job.name = ABSENT, UNSET
    job.parent_id = job.depends_on = job.children_ids = None
    asks = job != _BARE
    job.data, job.name, job.parent_id = raw, name, parent
    job.depends_on, job.children_ids = needs, children
    policy = None
    if asks:
        flags = _flags(job)
        if _others(job) != _PLAIN or (
            flags != _NO_FLAGS and (parent is None or flags not in _ONE_FLAG)
        ):
            return None
        policy = _ONE_FLAG.get(flags)
    return kin_draft(planned.id, planned.queue, job, now, policy)


def kin_draft(id: str, queue: str, job: Any, now: int, policy: str | None = None) -> Message | None:
    """Make a message of a job with name, data and family; None if these need a closer look."""
    name, parent, needs, children = job.name, job.parent_id, job.depends_on, job.children_ids
    data = bytes(job.data)
    if not data or not is_map(data[0]) or len(data) * 6 > DATA_LIMIT or name is UNSET:
        return None
    if parent == "" or (needs and "" in needs) or (children and "" in children):
        return None
    m = Message(id, queue, name, data, 0, now, now)
    if needs or children or policy is not None:
        m.links = Links(parent, tuple(children or ()), tuple(needs or ()), (), policy)
    elif parent is not None:
        m.links = Links(parent)
    return m


def _as_fields(job: Job) -> dict[str, Any]:
    """Return what a job asks for as it stood on the wire."""
    found: dict[str, Any] = {}
    for name, default in _DEFAULTS.items():
        value = getattr(job, name)
        if value is not UNSET and (value != default or name == "data"):
            found[_CAMEL[name]] = value
    if "backoff" in found and job.backoff_type is not None:
        found["backoff"] = {"type": job.backoff_type, "delay": found["backoff"]}
    return found


def _read_planned(value: Any, seen: set[str]) -> Planned:
    """Check and read a job of a frame that did not fit at once."""
    if not isinstance(value, Mapping):
        raise BadRequest("a flow job must be an object with id, queue and input")
    id = flowcheck.good_id(value.get("id"))
    if id in seen:
        raise BadRequest(f"duplicate flow job id: {id}")
    seen.add(id)
    queue = flowcheck.good_queue(value.get("queue"))
    fields = value.get("input")
    if not isinstance(fields, Mapping):
        raise BadRequest(f"flow job input must be an object: {id}")
    flowcheck.good_input(id, fields)
    return Planned(id, queue, Job.read(dict(fields)))
