"""Stats, StorageStatus and CompactMemory: how the server is doing."""

from __future__ import annotations

from typing import Any

from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command
from tandemq.engine import inspect
from tandemq.model.message import State


class Stats(Request, tag="Stats"):
    """Ask for the figures of the whole server."""

    details: Any = False  # ours: with the loop's longest turn and more


class CompactMemory(Request, tag="CompactMemory"):
    """Let go of what is not needed."""


class StorageStatus(Request, tag="StorageStatus"):
    """Ask whether the store can be written."""


@command(Permission.SUPERUSER, keeps=False, http=None)
def stats(req: Stats, call: Call) -> dict[str, Any]:
    """Return counts over all queues, totals since the start, and rates a second."""
    engine, measured = call.engine, call.host.stats()
    counts = inspect.counts(engine)
    shown: dict[str, Any] = {
        "waiting": counts[State.READY],
        "active": counts[State.LEASED],
        "delayed": counts[State.DELAYED],
        "dlq": counts[State.DEAD],
        "completed": engine.counters.completed,
        "failed": engine.counters.failed,
        "uptime": measured.pop("uptime"),
        "pushPerSec": measured.pop("pushPerSec"),
        "pullPerSec": measured.pop("pullPerSec"),
    }
    return {"stats": {**shown, **measured} if req.details else shown}


@command(Permission.SUPERUSER, http=None)
def compact_memory(req: CompactMemory, call: Call) -> None:
    """Let go of what nothing points to any more; the server does that by itself as well."""
    call.engine.compact()
    call.remark("memory:compacted", None)


@command(Permission.SUPERUSER, keeps=False, http="GET /storage")
def storage_status(req: StorageStatus, call: Call) -> Data:
    """Return whether writing works, since when it does not, and why."""
    return Data(call.host.storage())
