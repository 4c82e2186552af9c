"""DashboardOverview, DashboardQueues and DashboardQueue: what a page about the server shows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from msgspec import Raw

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Data
from tandemq.commands.cron import CronList, cron_list
from tandemq.commands.states import in_state, priorities_of, states_of
from tandemq.commands.table import Permission, Request, command
from tandemq.commands.workers import shown as shown_worker
from tandemq.commands.workers import totals
from tandemq.engine import inspect
from tandemq.engine.core import Engine
from tandemq.engine.queue import Queue
from tandemq.model.message import Message, State
from tandemq.model.permission import Operation

LISTED = 100  # workers and schedules that an overview names
PREVIEW = 10  # dead letters that a queue's page shows
JOBS = 50  # jobs of each state that a queue's page shows, unless it asks for another number
JOBS_LIMIT = 1_000


class DashboardOverview(Request, tag="DashboardOverview"):
    """Ask how the server is doing."""


class DashboardQueues(Request, tag="DashboardQueues"):
    """Ask how every queue is doing."""


class DashboardQueue(Request, tag="DashboardQueue"):
    """Ask how one queue is doing."""

    queue: Any = None
    include_jobs: Any = None
    jobs_limit: Any = None


@command(Permission.SUPERUSER, keeps=False)
def dashboard_overview(req: DashboardOverview, call: Call) -> Data:
    """Return counts, rates, durations, memory, workers and schedules of the server."""
    engine, monitor = call.engine, call.host.monitor
    return Data(
        {
            "stats": _stats(call),
            "throughput": monitor.rates(),
            "latency": monitor.latency(),
            "memory": {name: float(size) for name, size in monitor.memory().items()},
            "collections": _collections(engine),
            "workers": _workers(call),
            "crons": _crons(call),
            "storage": call.host.storage(),
            "timestamp": float(call.now),
        }
    )


@command(Permission.LIST, keeps=False)
def dashboard_queues(req: DashboardQueues, call: Call) -> Data:
    """Return the counts of every queue that the caller may list, by name."""
    queues = sorted((q for q in call.engine.queues.values() if not q.blank), key=lambda q: q.name)
    lines = [_line(q) for q in queues if call.may(Operation.LIST_QUEUES, q.name)]
    return Data({"queues": lines, "timestamp": float(call.now)})


@command(Permission.INSPECT)
def dashboard_queue(req: DashboardQueue, call: Call) -> Data:
    """Return counts, priorities and some dead letters of a queue, with some jobs if asked."""
    name = check.queue_name(req.queue)
    q = call.engine.queues.get(name)
    tally = call.engine.tallies.of(name)
    shown = {
        "name": name,
        "counts": {
            **states_of(q),
            "totalCompleted": tally.completed.total,
            "totalFailed": tally.failed.total,
        },
        "paused": q is not None and q.settings.paused,
        "priorityCounts": priorities_of(q),
        "dlqPreview": [] if q is None else [_dead(m) for m in _first_dead(q)],
        "timestamp": float(call.now),
    }
    if req.include_jobs:
        shown["jobs"] = _jobs(call.engine, q, req.jobs_limit)
    return Data(shown)


def _stats(call: Call) -> dict[str, float]:
    counts, counters = inspect.counts(call.engine), call.engine.counters
    return {
        "waiting": counts[State.READY],
        "active": counts[State.LEASED],
        "delayed": counts[State.DELAYED],
        "completed": counts[State.DONE],
        "dlq": counts[State.DEAD],
        "totalPushed": counters.pushed,
        "totalPulled": counters.pulled,
        "totalCompleted": counters.completed,
        "totalFailed": counters.failed,
        "uptime": call.host.stats()["uptime"],
    }


def _collections(engine: Engine) -> dict[str, int]:
    """Return the sizes of what the reference calls its collections."""
    counts = inspect.counts(engine)
    held = [len(held) for held in engine.leased_by.values()]
    return {
        "jobIndex": len(engine.messages),
        "completedJobs": engine.finished.count,
        "jobResults": engine.finished.results,
        "jobLogs": len(engine.logs),
        "customIdMap": 0,  # the index of messages is that of custom ids too
        "jobLocks": counts[State.LEASED],
        "clientJobs": len(held),
        "clientJobsTotal": sum(held),
        "pendingDepChecks": 0,
        "stalledCandidates": 0,
        "processingTotal": counts[State.LEASED],
        "queuedTotal": counts[State.READY] + counts[State.DELAYED],
        "waitingDepsTotal": counts[State.PARKED],
        "temporalIndexTotal": len(engine.timers),
        "delayedHeapTotal": counts[State.DELAYED],
    }


def _workers(call: Call) -> dict[str, Any]:
    workers = call.engine.workers.listed(call.now)
    sums = totals(call.engine.workers, call.now)
    return {
        "total": sums["total"],
        "active": sums["active"],
        "list": [shown_worker(w, call) for w in workers[:LISTED]],
        "truncated": len(workers) > LISTED,
    }


def _line(q: Queue) -> dict[str, Any]:
    states = states_of(q)
    ready = len(q.ready)
    return {
        "name": q.name,
        "waiting": ready - q.prioritized,
        "prioritized": q.prioritized,
        "delayed": states["delayed"],
        "active": states["active"],
        "dlq": states["failed"],
        "paused": q.settings.paused,
    }


def _first_dead(q: Queue) -> Iterable[Message]:
    return islice(q.members[State.DEAD].values(), PREVIEW)


def _dead(m: Message) -> dict[str, Any]:
    return {
        "id": m.id,
        "data": Raw(m.body),
        "attempts": m.attempts,
        "createdAt": float(m.created),
    }


def _jobs(engine: Engine, q: Queue | None, limit: Any) -> dict[str, Any]:
    asked = check.loose_number(limit)
    count = JOBS if asked is None else max(0, min(JOBS_LIMIT, int(asked)))
    names = ("waiting", "active", "delayed", "paused")
    if q is None:
        return {name: [] for name in names}
    return {
        name: [_brief(m) for m in in_state(engine, q, (name,), 0, count, False)] for name in names
    }


def _brief(m: Message) -> dict[str, Any]:
    return {
        "id": m.id,
        "priority": m.priority,
        "createdAt": float(m.created),
        "runAt": float(m.due),
        "attempts": m.attempts,
        "progress": m.run.progress if m.run is not None else 0,
    }


def _crons(call: Call) -> dict[str, Any]:
    total = len(call.engine.schedules)
    shown = cron_list(CronList(limit=LISTED), call)["crons"]
    return {"total": total, "list": shown, "truncated": total > LISTED}
