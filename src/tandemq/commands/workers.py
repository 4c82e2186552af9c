"""RegisterWorker, UnregisterWorker, Heartbeat and ListWorkers: the registry of workers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command
from tandemq.engine.workers import ACTIVE, Worker, Workers
from tandemq.model.errors import BadRequest, NotFound

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

LIMIT = 100_000  # workers; a client could otherwise fill the memory with made-up ones


class RegisterWorker(Request, tag="RegisterWorker"):
    """Say that a worker works."""

    name: Any = None
    queues: Any = None
    concurrency: Any = 1
    worker_id: Any = None
    hostname: Any = None
    pid: Any = None
    started_at: Any = None

    def concerns(self, engine: Engine) -> Iterable[Any] | None:
        known = _queues_of(engine, self.worker_id)
        if known is None or not isinstance(self.queues, (list, tuple)):
            return None
        return (*self.queues, *known)


class UnregisterWorker(Request, tag="UnregisterWorker"):
    """Say that a worker is gone."""

    worker_id: Any = None

    def concerns(self, engine: Engine) -> Iterable[Any] | None:
        return _queues_of(engine, self.worker_id)


class Heartbeat(Request, tag="Heartbeat"):
    """Say that a worker is there, with its figures."""

    id: Any = None
    active_jobs: Any = None
    processed: Any = None
    failed: Any = None

    def concerns(self, engine: Engine) -> Iterable[Any] | None:
        return _queues_of(engine, self.id)


class ListWorkers(Request, tag="ListWorkers"):
    """Ask who works."""


@command(Permission.SUBSCRIBE)
def register_worker(req: RegisterWorker, call: Call) -> Data:
    """Add a worker to the registry, or update the one with this id."""
    now, started = call.now, check.whole(req.started_at)
    workers = call.engine.workers
    if len(workers) >= LIMIT and workers.get(req.worker_id) is None:
        raise BadRequest(f"There are {LIMIT} workers already; unregister some first")
    worker = workers.register(
        Worker(
            id=check.text(req.worker_id) or call.engine.new_id(now),
            name=req.name,
            queues=req.queues,
            concurrency=check.whole(req.concurrency) or 1,
            hostname=check.text(req.hostname) or "unknown",
            pid=check.whole(req.pid) or 0,
            conn=call.caller.id,
            registered=now if started is None else started,
            seen=now,
        )
    )
    fields = shown(worker, call)
    return Data({"workerId": fields.pop("id"), **fields})


@command(Permission.SUBSCRIBE)
def unregister_worker(req: UnregisterWorker, call: Call) -> Data:
    """Remove a worker from the registry."""
    if not call.engine.workers.unregister(req.worker_id):
        raise NotFound("Worker not found")
    return Data({"removed": True})


@command(Permission.SUBSCRIBE)
def heartbeat(req: Heartbeat, call: Call) -> Data:
    """Say that a worker is there; figures are absolute, and absent ones stay."""
    worker = call.engine.workers.get(req.id)
    if worker is None:
        raise NotFound("Worker not found")
    worker.seen = call.now
    for name, value in (
        ("active", req.active_jobs),
        ("processed", req.processed),
        ("failed", req.failed),
    ):
        figure = check.whole(value)
        if figure is not None:
            setattr(worker, name, figure)
    return Data({"ok": True})


@command(Permission.SUPERUSER, keeps=False)
def list_workers(req: ListWorkers, call: Call) -> Data:
    """Return the registered workers and their totals."""
    workers = call.engine.workers.listed(call.now)
    listed = [{**shown(w, call), "uptime": float(call.now - w.registered)} for w in workers]
    return Data({"workers": listed, "stats": totals(call.engine.workers, call.now)})


def _queues_of(engine: Engine, id: Any) -> Iterable[Any] | None:
    """Return what a worker says it works on; None is one that does not say it in a list."""
    worker = engine.workers.get(id)
    if worker is None:
        return ()
    return worker.queues if isinstance(worker.queues, (list, tuple)) else None


def totals(registry: Workers, now: int) -> dict[str, int]:
    """Return how many workers there are, and the sums of what they say of themselves.

    A stale worker offers no slots.
    """
    workers = registry.listed(now)
    active = [w for w in workers if registry.status(w, now) == ACTIVE]
    return {
        "total": len(workers),
        "active": len(active),
        "totalProcessed": sum(w.processed for w in workers),
        "totalFailed": sum(w.failed for w in workers),
        "activeJobs": sum(w.active for w in workers),
        "concurrencySlots": sum(w.concurrency for w in active),
    }


def shown(w: Worker, call: Call) -> dict[str, Any]:
    return {
        "id": w.id,
        "name": w.name,
        "queues": w.queues,
        "concurrency": w.concurrency,
        "hostname": w.hostname,
        "pid": w.pid,
        "status": call.engine.workers.status(w, call.now),
        "registeredAt": float(w.registered),
        "lastSeen": float(w.seen),
        "activeJobs": w.active,
        "processedJobs": w.processed,
        "failedJobs": w.failed,
        "currentJob": w.current,
    }
