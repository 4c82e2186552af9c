"""PUSH, PUSHB and PUSHF of jobs that ask for nothing, as most do.

Their shapes have no room for more than name and data, and family in a flow, so nothing has to be
looked for in them: that halves what reading costs. A wire tries these first; what does not fit is
read as ``push`` and ``pushf`` have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import asdict

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Flowed, Later, Pushed, PushedMany
from tandemq.commands.entry import enter, remark_batch
from tandemq.commands.push import BATCH_LIMIT, Job, Name, contents, each
from tandemq.commands.pushf import (
    JOB_LIMIT,
    Planned,
    add_flow,
    concerned,
    kin_draft,
    planned_draft,
)
from tandemq.commands.table import ABSENT, Request, queues_of, together, variant
from tandemq.engine.core import Engine
from tandemq.engine.publish import publish_plain
from tandemq.model.errors import MustWait
from tandemq.model.message import Message

SMALL = 16_384  # bytes of data that need no look at what all of it comes to
Jobs = Sequence[tuple[str, bytes]]  # names and bodies


class Plain(Struct, forbid_unknown_fields=True, gc=False):
    """A member of a PUSHB that says no more."""

    data: Raw = ABSENT
    name: Name | UnsetType = UNSET


class PlainPush(Request, tag="PUSH", forbid_unknown_fields=True, gc=False):
    """Add one job."""

    queue: str
    data: Raw = ABSENT
    name: Name | UnsetType = UNSET

    def opaque(self) -> Iterable[Raw]:
        return (self.data,)


class PlainPushMany(Request, tag="PUSHB", forbid_unknown_fields=True):
    """Add several jobs, all or none."""

    queue: str
    jobs: Annotated[list[Plain], Meta(max_length=BATCH_LIMIT)]

    def opaque(self) -> Iterable[Raw]:
        return [job.data for job in self.jobs]


class Kin(Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    """What a member of a PUSHF says that asks for no more than its family."""

    data: Raw = ABSENT
    name: Name | UnsetType = UNSET
    parent_id: str | None = None
    depends_on: list[str] | None = None
    children_ids: list[str] | None = None

    def touches(self, engine: Engine) -> Iterable[str]:
        """Return the queues of the jobs it is tied to."""
        ties = (self.parent_id, *(self.depends_on or ()), *(self.children_ids or ()))
        return queues_of(engine, ties)


class PlainPlanned(Struct, forbid_unknown_fields=True, gc=False):
    """One job of a flow, under an id that is chosen before."""

    id: str
    queue: str
    input: Kin


class PlainFlow(Request, tag="PUSHF", forbid_unknown_fields=True):
    """Add the jobs of a flow, all or none."""

    jobs: Annotated[list[PlainPlanned], Meta(max_length=JOB_LIMIT)]

    def opaque(self) -> Iterable[Raw]:
        return [job.input.data for job in self.jobs]

    def concerns(self, engine: Engine) -> Iterable[str]:
        return concerned(engine, self.jobs)


@variant
def push(req: PlainPush, call: Call) -> Pushed | Later:
    """Add a job to a queue and return its id."""
    queue = req.queue
    check.good_queue(queue)
    jobs = (contents(req.data, req.name),)
    if not call.engine.pressure.level:
        try:
            return Pushed(publish_plain(call.engine, queue, jobs, call.now)[0])
        except MustWait:
            pass
    return enter(call, req, queue, (jobs[0][1],), partial(_push, call.engine, queue, jobs))


@together(PlainPush)
def push_together(reqs: list[PlainPush], call: Call) -> list[Pushed]:
    """Add small jobs to one queue that is there and has no bounds."""
    engine, queue = call.engine, reqs[0].queue
    q = engine.queues.get(queue)
    if q is None or q.bounded or engine.pressure.level:
        return []
    jobs = []
    for req in reqs:
        name, data = req.name, bytes(req.data)
        if name is UNSET or len(data) > SMALL or req.queue != queue:
            break
        jobs.append((name, data))
    return list(map(Pushed, publish_plain(engine, queue, jobs, call.now)))


def _push(engine: Engine, queue: str, jobs: Jobs, now: int) -> Pushed:
    return Pushed(publish_plain(engine, queue, jobs, now)[0])


@variant
def push_many(req: PlainPushMany, call: Call) -> PushedMany | Later:
    """Add jobs to a queue, all or none, and return their ids."""
    queue = check.queue_name(req.queue)
    if not req.jobs:  # they would leave a queue behind that holds nothing
        return PushedMany([])
    jobs = each(req.jobs, lambda job: contents(job.data, job.name))
    if not call.engine.pressure.level:
        try:
            return _push_many(call.engine, queue, jobs, call.now)
        except MustWait:
            pass
    bodies = (body for _, body in jobs)
    return enter(call, req, queue, bodies, partial(_push_many, call.engine, queue, jobs))


def _push_many(engine: Engine, queue: str, jobs: Jobs, now: int) -> PushedMany:
    ids = publish_plain(engine, queue, jobs, now)
    remark_batch(engine, queue, ids, ids, now)
    return PushedMany(ids)


@variant
def push_flow(req: PlainFlow, call: Call) -> Flowed | Later:
    """Add a flow of jobs, all or none, and return them."""
    return add_flow(req, None, _kin, call)


def _kin(planned: PlainPlanned, now: int) -> Message:
    id, queue, kin = planned.id, planned.queue, planned.input
    m = kin_draft(id, queue, kin, now)
    if m is None:
        m = planned_draft(Planned(id, queue, Job(**asdict(kin))), now)
    return m
