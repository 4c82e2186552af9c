"""RegisterWorker, UnregisterWorker, Heartbeat and ListWorkers: the registry of workers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tandemq.commands import fields as check
from tandemq.commands.answers import part
from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command
from tandemq.engine.workers import ACTIVE, Worker, Workers, weight
from tandemq.model.errors import BadRequest, NotFound

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

TEXT_LENGTH = 256  # characters of a worker's id, name and host, and of each of its queues
QUEUES = 1_000  # names of queues that a worker may work on
ODD_WEIGHT = 32 << 10  # bytes of memory of names that are no text: nobody checks what they are


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

    offset: Any = None  # ours, as is limit: part of a long list
    limit: Any = None


@command(Permission.SUBSCRIBE, http="POST /workers body")
def register_worker(req: RegisterWorker, call: Call) -> Data:
    """Add a worker to the registry, or update the one with this id."""
    now, started = call.now, check.whole(req.started_at)
    worker = call.engine.workers.register(
        Worker(
            id=check.text(_short(req.worker_id, "workerId")) or call.engine.new_id(now),
            name=_short(req.name, "name"),
            queues=_queues(req.queues),
            concurrency=check.whole(req.concurrency) or 1,
            hostname=check.text(_short(req.hostname, "hostname")) or "unknown",
            pid=check.whole(req.pid) or 0,
            conn=call.caller.id,
            registered=now if started is None else started,
            seen=now,
        )
    )
    fields = shown(worker, call)
    told = {name: fields[name] for name in ("name", "queues", "hostname", "pid")}
    call.remark("worker:connected", None, workerId=worker.id, **told)
    return Data({"workerId": fields.pop("id"), **fields})


@command(Permission.SUBSCRIBE, http="DELETE /workers/{workerId} 404")
def unregister_worker(req: UnregisterWorker, call: Call) -> Data:
    """Remove a worker from the registry."""
    if not call.engine.workers.unregister(req.worker_id):
        raise NotFound("Worker not found")
    call.remark("worker:disconnected", None, workerId=req.worker_id)
    return Data({"removed": True})


@command(Permission.SUBSCRIBE, http="POST /workers/{id}/heartbeat 200")
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
    call.remark("worker:heartbeat", None, workerId=worker.id)
    return Data({"ok": True})


@command(Permission.SUPERUSER, keeps=False, http="GET /workers")
def list_workers(req: ListWorkers, call: Call) -> Data:
    """Return the registered workers and their totals."""
    found = call.engine.workers.listed(call.now)
    workers = part(found, lambda w: w.size_bytes, req.offset, req.limit)
    listed = [{**shown(w, call), "uptime": float(call.now - w.registered)} for w in workers]
    return Data({"workers": listed, "stats": totals(call.engine.workers, call.now)})


def _queues_of(engine: Engine, id: Any) -> Iterable[Any] | None:
    """Return what a worker says it works on; None is one that does not say it in a list."""
    worker = engine.workers.get(id)
    if worker is None:
        return ()
    return worker.queues if isinstance(worker.queues, (list, tuple)) else None


def _short(value: Any, field: str) -> Any:
    """Take what nobody checks but for its size."""
    if _long(value) or weight(value) > ODD_WEIGHT:
        raise BadRequest(f"{field} must be a text of at most {TEXT_LENGTH} characters")
    return value


def _queues(value: Any) -> Any:
    """Take the queues of a worker, which nobody checks but for their size."""
    listed = value if isinstance(value, list) else [value]
    odd = [name for name in listed if not isinstance(name, str)]
    if len(listed) > QUEUES or any(map(_long, listed)) or weight(odd) > ODD_WEIGHT:
        text = f"queues must be at most {QUEUES} names of at most {TEXT_LENGTH} characters"
        raise BadRequest(text)
    return value


def _long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > TEXT_LENGTH


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
