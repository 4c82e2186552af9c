"""What is done to a queue as a whole: pause, resume, list."""

from __future__ import annotations

from typing import Any

from tandemq.commands import fields as check
from tandemq.commands.answers import part
from tandemq.commands.call import Call
from tandemq.commands.table import Permission, Request, command
from tandemq.engine import control
from tandemq.engine.queue import NO_SETTINGS, Queue
from tandemq.model.permission import Operation
from tandemq.model.size import ITEM, text_bytes


class Pause(Request, tag="Pause"):
    """Stop delivery."""

    queue: Any = None


class Resume(Request, tag="Resume"):
    """Go on with delivery."""

    queue: Any = None


class IsPaused(Request, tag="IsPaused"):
    """Ask whether delivery is stopped."""

    queue: Any = None


class ListQueues(Request, tag="ListQueues"):
    """Ask for the names of all queues."""

    offset: Any = None  # ours, as is limit: part of a long list
    limit: Any = None


@command(Permission.CONTROL, http="POST /queues/{queue}/pause 200")
def pause(req: Pause, call: Call) -> None:
    """Stop handing out jobs of a queue; publishing and settling go on."""
    queue = check.any_queue(req.queue)
    control.pause(call.engine, queue)
    call.engine.announce("paused", queue, call.now)
    call.remark("queue:paused", queue, queue=queue)


@command(Permission.CONTROL, http="POST /queues/{queue}/resume 200")
def resume(req: Resume, call: Call) -> None:
    """Hand out jobs of a queue again."""
    queue = check.any_queue(req.queue)
    call.engine.announce("resumed", queue, call.now)
    call.remark("queue:resumed", queue, queue=queue)
    control.resume(call.engine, queue, call.now)


@command(Permission.INSPECT, http="GET /queues/{queue}/paused 200")
def is_paused(req: IsPaused, call: Call) -> dict[str, Any]:
    """Return whether a queue is paused."""
    q = call.engine.queues.get(check.any_queue(req.queue))
    return {"paused": q is not None and q.settings.paused}


@command(Permission.LIST, keeps=False, http="GET /queues 200")
def list_queues(req: ListQueues, call: Call) -> dict[str, Any]:
    """Return the names of the queues that hold jobs or settings, or a part of them.

    Those that the caller may not list are left out.
    """
    names = (q.name for q in call.engine.queues.values() if _visible(q))
    found = (name for name in names if call.may(Operation.LIST_QUEUES, name))
    return {"queues": part(found, lambda name: text_bytes(name) + ITEM, req.offset, req.limit)}


def _visible(q: Queue) -> bool:
    """Whether a queue is more than the name that somebody waits for, or once took from."""
    ruled = q.groups is not None and bool(q.groups.rules)
    return any(q.counts) or q.settings != NO_SETTINGS or ruled
