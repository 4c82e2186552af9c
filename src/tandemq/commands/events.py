"""SubscribeEvents, UnsubscribeEvents and TrimEvents: being told of what happens in a queue."""

from __future__ import annotations

from typing import Any

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command


class SubscribeEvents(Request, tag="SubscribeEvents"):
    """Ask to be told of the events of a queue."""

    queue: Any = None


class UnsubscribeEvents(Request, tag="UnsubscribeEvents"):
    """Ask to be told of no more events."""


class TrimEvents(Request, tag="TrimEvents"):
    """Shorten the journal of a queue's events."""

    queue: Any = None
    max_length: Any = None


@command(Permission.SUBSCRIBE, http=None)
def subscribe_events(req: SubscribeEvents, call: Call) -> None:
    """Tell this connection of what happens in a queue; an earlier subscription ends.

    A refused subscription leaves the earlier one as it is.
    """
    call.host.observers.subscribe(call.caller, check.queue_name(req.queue))


@command(Permission.OPEN, http=None)
def unsubscribe_events(req: UnsubscribeEvents, call: Call) -> None:
    """Tell this connection of no more events, also when it is told of none."""
    call.host.observers.unsubscribe(call.caller)


@command(Permission.CONTROL, http="POST /queues/{queue}/events/trim")
def trim_events(req: TrimEvents, call: Call) -> Data:
    """Keep the newest events of a queue's journal and return how many were forgotten."""
    queue = check.queue_name(req.queue)
    keep = check.natural(req.max_length, "maxLength")
    return Data({"removed": call.engine.journal.trim(queue, keep)})
