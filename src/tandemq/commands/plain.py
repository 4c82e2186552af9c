"""PUSH and PUSHB of jobs that ask for nothing, as most do.

Their shapes have no room for more than name and data, so nothing has to be looked for in them: that
halves what reading costs. A wire tries these first; what does not fit is read as ``push`` has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Pushed, PushedMany
from tandemq.commands.push import BATCH_LIMIT, Name, contents, each
from tandemq.commands.table import ABSENT, Request, variant
from tandemq.engine.publish import publish_plain


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


@variant
def push(req: PlainPush, call: Call) -> Pushed:
    """Add a job to a queue and return its id."""
    queue = req.queue
    check.good_queue(queue)
    jobs = (contents(req.data, req.name),)
    return Pushed(publish_plain(call.engine, queue, jobs, call.now)[0])


@variant
def push_many(req: PlainPushMany, call: Call) -> PushedMany:
    """Add jobs to a queue, all or none, and return their ids."""
    queue = check.queue_name(req.queue)
    if not req.jobs:  # they would leave a queue behind that holds nothing
        return PushedMany([])
    jobs = each(req.jobs, lambda job: contents(job.data, job.name))
    return PushedMany(publish_plain(call.engine, queue, jobs, call.now))
