"""What is done to one job: Cancel, Discard, Promote, the moves, its priority, its data, WaitJob."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from tandemq.commands import fields as check
from tandemq.commands.answers import check_length
from tandemq.commands.call import LATER, Call, Data, Later
from tandemq.commands.jobdata import check_data, check_size
from tandemq.commands.query import find, known
from tandemq.commands.states import name_of
from tandemq.commands.table import ABSENT, Permission, Request, command
from tandemq.engine import manage, watches
from tandemq.model.crossing import Uncarriable, body_for
from tandemq.model.errors import BadRequest, NotActive, NotFound
from tandemq.model.message import Message, State

WAIT = 30_000  # ms that WaitJob waits unless told otherwise
WAIT_LIMIT = 600_000


class Cancel(Request, tag="Cancel"):
    """Take a waiting job away."""

    id: Any = None


class Discard(Request, tag="Discard"):
    """Make a live job a dead letter."""

    id: Any = None
    token: Any = None


class Promote(Request, tag="Promote"):
    """Let a delayed job run now."""

    id: Any = None


class MoveToWait(Request, tag="MoveToWait"):
    """Let a job wait for the next pull."""

    id: Any = None
    token: Any = None


class MoveToDelayed(Request, tag="MoveToDelayed"):
    """Let a job wait for some time."""

    id: Any = None
    delay: Any = None
    token: Any = None


class MoveToWaitingChildren(Request, tag="MoveToWaitingChildren"):
    """Let an active job wait for its children."""

    id: Any = None
    token: Any = None


class ChangeDelay(Request, tag="ChangeDelay"):
    """Move the moment at which a job may run."""

    id: Any = None
    delay: Any = None
    token: Any = None


class ChangePriority(Request, tag="ChangePriority"):
    """Give a job another place in its queue."""

    id: Any = None
    priority: Any = None
    lifo: Any = None


class Update(Request, tag="Update"):
    """Give a job other data."""

    id: Any = None
    data: Raw = ABSENT

    def opaque(self) -> Iterable[Raw]:
        return (self.data,)

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Update:
        return cls(
            id=fields.get("id"),
            data=fields.get("data", ABSENT),
            req_id=fields.get("reqId", ABSENT),
        )


class WaitJob(Request, tag="WaitJob"):
    """Ask to be told when a job is completed."""

    id: Any = None
    timeout: Any = WAIT
    any_end: Any = False  # ours: tell of a failure or a removal as well


@command(Permission.CONTROL, http="DELETE /jobs/{id} 200")
def cancel(req: Cancel, call: Call) -> None:
    """Take a waiting job away, wherever it waits."""
    m = known(call, req.id)
    if m is None or not manage.cancel(call.engine, m, call.now):
        raise NotFound("Job not found or cannot be cancelled")


@command(Permission.CONTROL, http="POST /jobs/{id}/discard")
def discard(req: Discard, call: Call) -> None:
    """Make a live job a dead letter."""
    m = find(call, req.id)
    if not manage.discard(call.engine, m, check.text(req.token), call.now):
        raise NotFound("Job not found")
    call.remark("job:discarded", m.queue, queue=m.queue, jobId=m.id)


@command(Permission.CONTROL, http="POST /jobs/{id}/promote")
def promote(req: Promote, call: Call) -> None:
    """Let a delayed job run now."""
    m = known(call, req.id)
    if m is None or not manage.promote(call.engine, m, call.now):
        raise NotFound("Job not found or not delayed")
    call.remark("job:promoted", m.queue, jobId=m.id)


@command(Permission.CONTROL, http="POST /jobs/{id}/move-to-wait")
def move_to_wait(req: MoveToWait, call: Call) -> None:
    """Give an active job back, end a delay, retry a dead letter."""
    m = known(call, req.id)
    if m is None or not manage.move_to_wait(call.engine, m, check.text(req.token), call.now):
        state = name_of(m) if m else "unknown"
        raise NotActive(f"Cannot move job from state '{state}' to waiting")


@command(Permission.CONTROL, http="POST /jobs/{id}/move-to-delayed")
def move_to_delayed(req: MoveToDelayed, call: Call) -> None:
    """Let an active or waiting job wait for ``delay`` ms."""
    m, delay = find(call, req.id), _delay(req.delay)
    if not manage.move_to_delayed(call.engine, m, check.text(req.token), delay, call.now):
        raise NotActive(f"Job is not active (current state: {name_of(m)})")
    call.remark("job:moved-to-delayed", m.queue, queue=m.queue, jobId=m.id, delay=delay)


@command(Permission.CONTROL, http="POST /jobs/{id}/move-to-waiting-children")
def move_to_waiting_children(req: MoveToWaitingChildren, call: Call) -> Data:
    """Let an active job wait until everything it depends on is completed."""
    m = known(call, req.id)
    token = check.text(req.token)
    if m is None or not manage.move_to_waiting_children(call.engine, m, token, call.now):
        raise NotActive("Job is not active")
    return Data({"moved": True})


@command(Permission.CONTROL, http="PUT /jobs/{id}/delay")
def change_delay(req: ChangeDelay, call: Call) -> None:
    """Let a job run ``delay`` ms from now, not earlier."""
    m = known(call, req.id)
    token, delay = check.text(req.token), _delay(req.delay)
    if m is None or not manage.change_delay(call.engine, m, token, delay, call.now):
        raise NotFound("Job not found or cannot change delay")
    call.remark("job:delay-changed", m.queue, queue=m.queue, jobId=m.id, delay=delay)


@command(Permission.CONTROL, http="PUT /jobs/{id}/priority")
def change_priority(req: ChangePriority, call: Call) -> None:
    """Give a waiting or delayed job another priority."""
    m = known(call, req.id)
    priority = check.whole(req.priority)
    if priority is None:
        raise BadRequest("priority must be a number")
    if m is None or not manage.change_priority(call.engine, m, priority, check.flag(req.lifo)):
        raise NotFound("Job not found or not in queue")
    call.remark("job:priority-changed", m.queue, queue=m.queue, jobId=m.id, priority=priority)


@command(Permission.CONTROL, large=("data",), http="PUT /jobs/{id}/data body")
def update(req: Update, call: Call) -> None:
    """Replace the data of a job that is live or completed; it must be data that PUSH would take."""
    m, data = known(call, req.id), bytes(req.data)
    check_data(data)
    if m is not None:
        check_size(data, m.options)
        data = body_as(m, data)
    if m is None or not manage.update(call.engine, m, data):
        raise NotFound("Job not found or cannot be updated")
    call.remark("job:data-updated", m.queue, queue=m.queue, jobId=m.id)


@command(Permission.INSPECT, http="POST /jobs/{id}/wait 200")
def wait_job(req: WaitJob, call: Call) -> dict[str, Any] | Later:
    """Wait up to ``timeout`` ms for a job to be completed, and return its result."""
    fields = {"timeout": req.timeout}
    timeout = check.number(fields, "timeout", 0, WAIT_LIMIT, WAIT)
    m, any_end = find(call, req.id), req.any_end is True
    if m.state is State.DONE or (any_end and m.state is State.DEAD):
        return _outcome(m, m.state is State.DONE)
    if timeout < 1:
        return _outcome(None, False)
    until = call.now + int(timeout)
    watch = watches.Watch(call.caller.id, req.req_id, m.id, until, any_end, _told)
    watches.wait(call.engine, watch)
    return LATER


def body_as(m: Message, data: bytes) -> bytes:
    """Return new data of a job as its body; that of what was published as a message is JSON.

    Raises:
        BadRequest: JSON cannot say it.
    """
    try:
        return body_for(m, data)
    except Uncarriable as odd:
        raise BadRequest(f"Job {m.id} was published as JSON, which cannot carry {odd}") from None


def _told(m: Message | None, well: bool) -> dict[str, Any] | BadRequest:
    try:
        return _outcome(m, well)
    except BadRequest as refused:
        return refused


def _outcome(m: Message | None, well: bool) -> dict[str, Any]:
    """Return what WaitJob answers; a job that is not kept has no result (quirk 37).

    Raises:
        BadRequest: the result is too long.
    """
    if m is None:
        return {"completed": False}
    if well:
        kept = m.run.result if m.run is not None and m.state is State.DONE else None
        check_length(len(kept or b""))
        return {"completed": True, "result": ABSENT if kept is None else Raw(kept)}
    if m.state is not State.DEAD:
        return {"completed": False, "removed": True}
    return {"completed": False, "failed": True, "error": m.run.error if m.run else None}


def _delay(value: Any) -> int:
    """Return a delay in ms; what the reference lets be anything must be a number here."""
    delay = check.number({"delay": value}, "delay", 0, check.YEAR, None)
    if delay is None:
        raise BadRequest("delay must be a number")
    return int(delay)
