"""DashboardOverview, DashboardQueues and DashboardQueue: what a page about the server shows."""

from __future__ import annotations

from itertools import islice
from typing import Any

from msgspec import Raw

from tandemq.commands import cron
from tandemq.commands import fields as check
from tandemq.commands.answers import Page, part
from tandemq.commands.call import Call, Data
from tandemq.commands.states import in_state, priorities_of, states_of
from tandemq.commands.table import Permission, Request, command
from tandemq.commands.workers import shown as shown_worker
from tandemq.commands.workers import totals
from tandemq.engine import graves, inspect
from tandemq.engine.core import Engine
from tandemq.engine.queue import Queue
from tandemq.model.crossing import data_of
from tandemq.model.message import Message, State
from tandemq.model.permission import Operation
from tandemq.model.size import NUMBER, message_bytes, text_bytes

LISTED = 100  # workers and schedules that an overview names
PREVIEW = 10  # dead letters that a queue's page shows
JOBS = 50  # jobs of each state that a queue's page shows, unless it asks for another number
JOBS_LIMIT = 1_000
LINE = 250  # bytes of a queue or a job in a list, besides its name and data


class DashboardOverview(Request, tag="DashboardOverview"):
    """Ask how the server is doing."""


class DashboardQueues(Request, tag="DashboardQueues"):
    """Ask how every queue is doing."""

    offset: Any = None  # ours, as is limit: part of a long list
    limit: Any = None


class DashboardQueue(Request, tag="DashboardQueue"):
    """Ask how one queue is doing."""

    queue: Any = None
    include_jobs: Any = None
    jobs_limit: Any = None


@command(Permission.SUPERUSER, keeps=False, http="GET /dashboard")
def dashboard_overview(req: DashboardOverview, call: Call) -> Data:
    """Return counts, rates, durations, memory, workers and schedules of the server."""
    engine, monitor, page = call.engine, call.host.monitor, Page()
    return Data(
        {
            "stats": _stats(call),
            "throughput": monitor.rates(),
            "latency": monitor.latency(),
            "memory": {name: float(size) for name, size in monitor.memory().items()},
            "collections": collections_of(engine),
            "workers": _workers(call, page),
            "crons": _crons(engine, page),
            "storage": call.host.storage(),
            "timestamp": float(call.now),
        }
    )


@command(Permission.LIST, keeps=False, http="GET /dashboard/queues")
def dashboard_queues(req: DashboardQueues, call: Call) -> Data:
    """Return the counts of every queue that the caller may list, by name, or of a part of them."""
    queues = sorted((q for q in call.engine.queues.values() if not q.blank), key=lambda q: q.name)
    found = (q for q in queues if call.may(Operation.LIST_QUEUES, q.name))
    asked = part(found, lambda q: LINE + text_bytes(q.name), req.offset, req.limit)
    return Data({"queues": [_line(q) for q in asked], "timestamp": float(call.now)})


@command(Permission.INSPECT, http="GET /dashboard/queues/{queue}")
def dashboard_queue(req: DashboardQueue, call: Call) -> Data:
    """Return counts, priorities and some dead letters of a queue, with some jobs if asked."""
    name = check.queue_name(req.queue)
    q = call.engine.queues.get(name)
    tally = call.engine.tallies.of(name)
    priorities = priorities_of(q)
    page = Page(len(priorities) * 2 * NUMBER)
    first = islice(graves.listed(call.engine, name), PREVIEW)
    dead = page.take(first, lambda m: _size(m) + message_bytes(m))
    shown = {
        "name": name,
        "counts": {
            **states_of(q),
            "totalCompleted": tally.completed.total,
            "totalFailed": tally.failed.total,
        },
        "paused": q is not None and q.settings.paused,
        "priorityCounts": priorities,
        "dlqPreview": [_dead(m) for m in dead],
        "timestamp": float(call.now),
    }
    if req.include_jobs:
        shown["jobs"] = _jobs(call.engine, q, req.jobs_limit, page)
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


def collections_of(engine: Engine) -> dict[str, int]:
    """Return the sizes of what the reference calls its collections."""
    counts = inspect.counts(engine)
    held = [len(held) for held in engine.leased_by.values()]
    held += [len(who.messages) for who in engine.subscribers.values() if who.held]
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


def _workers(call: Call, page: Page) -> dict[str, Any]:
    sums = totals(call.engine.workers, call.now)
    workers = call.engine.workers.listed(call.now)[:LISTED]
    found = page.take(workers, lambda w: w.size_bytes)
    return {
        "total": sums["total"],
        "active": sums["active"],
        "list": [shown_worker(w, call) for w in found],
        "truncated": sums["total"] > len(found),
    }


def _line(q: Queue) -> dict[str, Any]:
    states = states_of(q)
    ready = len(q.ready)
    out = {"waiting-children": states["waiting-children"]} if q.fans_out else {}  # copies of them
    return {
        **out,
        "name": q.name,
        "waiting": ready - q.prioritized,
        "prioritized": q.prioritized,
        "delayed": states["delayed"],
        "active": states["active"],
        "dlq": states["failed"],
        "paused": q.settings.paused,
    }


def _dead(m: Message) -> dict[str, Any]:
    return {
        "id": m.id,
        "data": Raw(data_of(m)),
        "attempts": m.attempts,
        "createdAt": float(m.created),
    }


def _jobs(engine: Engine, q: Queue | None, limit: Any, page: Page) -> dict[str, Any]:
    asked = check.loose_number(limit)
    count = JOBS if asked is None else max(0, min(JOBS_LIMIT, int(asked)))
    names = ("waiting", "active", "delayed", "paused")
    if q is None:
        return {name: [] for name in names}
    found = {name: in_state(engine, q, (name,), 0, count, False) for name in names}
    return {name: [_brief(m) for m in page.take(jobs, _size)] for name, jobs in found.items()}


def _size(m: Message) -> int:
    return LINE + text_bytes(m.id)


def _brief(m: Message) -> dict[str, Any]:
    return {
        "id": m.id,
        "priority": m.priority,
        "createdAt": float(m.created),
        "runAt": float(m.due),
        "attempts": m.attempts,
        "progress": m.run.progress if m.run is not None else 0,
    }


def _crons(engine: Engine, page: Page) -> dict[str, Any]:
    found = page.take(islice(engine.schedules.values(), LISTED), cron.size)
    total = len(engine.schedules)
    return {"total": total, "list": list(map(cron.shown, found)), "truncated": total > len(found)}
