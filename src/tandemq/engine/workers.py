"""Who says that it is working. A registry only: it has no influence on delivery.

A worker is active while it is heard of within ``timeout`` ms, then stale, and forgotten after
three times that; it goes with the connection that registered it (bunqueue semantics 15). What all
workers say of themselves has a bound in bytes, so that made-up ones fill no memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tandemq.model.errors import BadRequest

ACTIVE, STALE = "active", "stale"
BARE = 1_024  # bytes that a worker takes, whatever it says of itself


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

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        return BARE + sum(map(weight, (self.id, self.name, self.hostname, self.queues)))


def weight(value: object) -> int:
    """Return about how many bytes of memory a client's value takes, whatever it is."""
    total, line = 0, [value]
    while line:
        item = line.pop()
        total += 64
        if isinstance(item, (str, bytes)):
            total += len(item)
        elif isinstance(item, dict):
            line += (*item.keys(), *item.values())
        elif isinstance(item, (list, tuple)):
            line += item
    return total


class Workers:
    """The registered workers, by id; ``room`` is how many bytes they may take together."""

    def __init__(self, timeout: int = 30_000, room: int = 16 << 20) -> None:
        self.timeout, self.room = timeout, room  # ms, bytes
        self.size_bytes = 0
        self._workers: dict[str, Worker] = {}
        self._of: dict[int | None, dict[str, Worker]] = {}  # by connection

    def __len__(self) -> int:
        return len(self._workers)

    def register(self, worker: Worker) -> Worker:
        """Add a worker; one with a known id is updated and keeps its name and its figures.

        Raises:
            BadRequest: there is no room for it, even when the silent ones are forgotten.
        """
        if not self._fits(worker):
            self.listed(worker.seen)
            if not self._fits(worker):
                raise BadRequest(
                    f"There is no room for more than {len(self)} such workers;"
                    " unregister some first"
                )
        known = self._workers.get(worker.id)
        if known is None:
            known = self._workers[worker.id] = worker
        else:
            self._take_out(known)
            for field in ("queues", "concurrency", "hostname", "pid", "conn", "seen"):
                setattr(known, field, getattr(worker, field))
        self._of.setdefault(known.conn, {})[known.id] = known
        self.size_bytes += known.size_bytes
        return known

    def get(self, id: object) -> Worker | None:
        return self._workers.get(id) if isinstance(id, str) else None

    def unregister(self, id: object) -> bool:
        """Remove a worker; False when there is none."""
        known = self.get(id)
        if known is not None:
            self._forget([known])
        return known is not None

    def keep(self, conn: int) -> None:
        """Let the workers that a connection registered outlive it."""
        for worker in self._of.pop(conn, {}).values():
            worker.conn = None
            self._of.setdefault(None, {})[worker.id] = worker

    def disconnected(self, conn: int) -> list[Worker]:
        """Remove the workers that a connection registered, and return them."""
        gone = self.of(conn)
        self._forget(gone)
        return gone

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
        return list(self._of.get(conn, {}).values()) if conn is not None else []

    def listed(self, now: int) -> list[Worker]:
        """Return all workers, after forgetting those that have been silent for too long."""
        self._forget([w for w in self._workers.values() if now - w.seen > 3 * self.timeout])
        return list(self._workers.values())

    def _fits(self, worker: Worker) -> bool:
        known = self._workers.get(worker.id)
        before = 0 if known is None else known.size_bytes
        return self.size_bytes - before + worker.size_bytes <= self.room

    def _forget(self, workers: Iterable[Worker]) -> None:
        for worker in workers:
            self._take_out(worker)
            del self._workers[worker.id]

    def _take_out(self, worker: Worker) -> None:
        self.size_bytes -= worker.size_bytes
        mates = self._of[worker.conn]
        del mates[worker.id]
        if not mates:
            del self._of[worker.conn]
