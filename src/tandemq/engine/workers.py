"""Who says that it is working. A registry only: it has no influence on delivery.

A worker is active while it is heard of within ``timeout`` ms, then stale, and forgotten after
three times that; it goes with the connection that registered it (bunqueue semantics 15).
"""

from __future__ import annotations

from dataclasses import dataclass

ACTIVE, STALE = "active", "stale"


@dataclass(slots=True)
class Worker:
    """One registered worker."""

    id: str
    name: object  # as the client sent it: names and queues are not validated
    queues: object
    concurrency: int
    hostname: str
    pid: int
    conn: int | None
    registered: int
    seen: int
    active: int = 0
    processed: int = 0
    failed: int = 0
    current: str | None = None


class Workers:
    """The registered workers, by id."""

    def __init__(self, timeout: int = 30_000) -> None:
        self.timeout = timeout
        self._workers: dict[str, Worker] = {}

    def __len__(self) -> int:
        return len(self._workers)

    def register(self, worker: Worker) -> Worker:
        """Add a worker; one with a known id is updated and keeps its name and its figures."""
        known = self._workers.get(worker.id)
        if known is None:
            self._workers[worker.id] = worker
            return worker
        for field in ("queues", "concurrency", "hostname", "pid", "conn", "seen"):
            setattr(known, field, getattr(worker, field))
        return known

    def get(self, id: object) -> Worker | None:
        return self._workers.get(id) if isinstance(id, str) else None

    def unregister(self, id: object) -> bool:
        """Remove a worker; False when there is none."""
        return isinstance(id, str) and self._workers.pop(id, None) is not None

    def disconnected(self, conn: int) -> None:
        """Remove the workers that a connection registered."""
        for id in [w.id for w in self._workers.values() if w.conn == conn]:
            del self._workers[id]

    def status(self, worker: Worker, now: int) -> str:
        return ACTIVE if now - worker.seen <= self.timeout else STALE

    def on(self, queue: str, now: int) -> list[Worker]:
        """Return the active workers that have said that they work on a queue."""
        return [
            w
            for w in self._workers.values()
            if isinstance(w.queues, (list, tuple))
            and queue in w.queues
            and self.status(w, now) == ACTIVE
        ]

    def of(self, conn: int | None) -> list[Worker]:
        """Return the workers that a connection registered."""
        return [w for w in self._workers.values() if w.conn == conn] if conn is not None else []

    def listed(self, now: int) -> list[Worker]:
        """Return all workers, after forgetting those that have been silent for too long."""
        for id in [w.id for w in self._workers.values() if now - w.seen > 3 * self.timeout]:
            del self._workers[id]
        return list(self._workers.values())
