"""Metrics, Prometheus and WorkerStats: figures of the server, of one queue, of the workers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command
from tandemq.commands.workers import totals
from tandemq.engine.tallies import Series
from tandemq.model.errors import BadRequest

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

MIB = 2**20


class Metrics(Request, tag="Metrics"):
    """Ask for totals of the server, or for ends of one queue minute by minute."""

    queue: Any = None
    type: Any = None  # "completed", "failed"
    start: Any = None  # first minute, 0 is the newest
    end: Any = None  # last minute, inclusive; -1 is the oldest

    def concerns(self, engine: Engine) -> Iterable[Any] | None:
        return None if self.queue is None else (self.queue,)


class Prometheus(Request, tag="Prometheus"):
    """Ask for all figures as text exposition."""


class WorkerStats(Request, tag="WorkerStats"):
    """Ask for the totals of the workers (ours)."""


@command(Permission.INSPECT, keeps=False, http="GET /queues/{queue}/metrics")
def metrics(req: Metrics, call: Call) -> dict[str, Any] | Data:
    """Return totals since the start, or how many jobs of a queue ended in each minute."""
    if req.queue is None and req.type is None:
        return {"metrics": _totals(call)}
    if req.queue is None or req.queue == "":
        raise BadRequest("Metrics queue is required")
    queue = check.queue_name(req.queue)
    if req.type not in ("completed", "failed"):
        raise BadRequest("Metrics type must be 'completed' or 'failed'")
    start = 0 if req.start is None else check.natural(req.start, "start")
    last = -1 if req.end in (None, -1) else check.natural(req.end, "end")
    tally = call.engine.tallies.of(queue)
    series = tally.completed if req.type == "completed" else tally.failed
    return _minutes(series, start, None if last == -1 else last + 1)


@command(Permission.SUPERUSER, keeps=False, http=None)
def prometheus(req: Prometheus, call: Call) -> Data:
    """Return every figure of the server as Prometheus text."""
    return Data({"metrics": call.host.monitor.prometheus()})


@command(Permission.SUPERUSER, keeps=False, http="GET /workers/stats")
def worker_stats(req: WorkerStats, call: Call) -> Data:
    """Return how many workers there are and what they say they did."""
    return Data({"stats": totals(call.engine.workers, call.now)})


def _totals(call: Call) -> dict[str, float]:
    counters, monitor = call.engine.counters, call.host.monitor
    averages = monitor.latency()["averages"]
    return {
        "totalPushed": counters.pushed,
        "totalPulled": counters.pulled,
        "totalCompleted": counters.completed,
        "totalFailed": counters.failed,
        "avgLatencyMs": averages["pushMs"],
        "avgProcessingMs": averages["ackMs"],
        "memoryUsageMb": round(monitor.memory()["rss"] / MIB, 2),
        "sqliteSizeMb": round(monitor.store_bytes() / MIB, 2),
        "activeConnections": monitor.connections(),
    }


def _minutes(series: Series, start: int, stop: int | None) -> Data:
    meta = {"count": series.total, "prevTS": series.last, "prevCount": series.newest}
    return Data({"meta": meta, "data": series.page(start, stop), "count": len(series)})
