"""What those who look on are told from time to time: figures of the server, and that it lives."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from tandemq.commands.dashboard import collections_of
from tandemq.commands.workers import totals
from tandemq.engine.queue import Queue
from tandemq.model.message import State
from tandemq.server.census import Census, taken_in_slices
from tandemq.server.meter import now_ms
from tandemq.server.telling import as_message, as_sse

if TYPE_CHECKING:
    from tandemq.server.feed import Feed
    from tandemq.server.runtime import Runtime

BEAT: Final = 5.0  # s between two snapshots
HEALTH: Final = 2  # beats between two reports of health
LONG: Final = 6  # beats between two signs of life, and two reports of the store
HEARTBEAT: Final = b":heartbeat\n\n"


class Pulse:
    """Tells of the server as a whole, while somebody looks on."""

    def __init__(self, runtime: Runtime, feed: Feed) -> None:
        self._runtime, self._feed = runtime, feed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to tell."""
        self._task = self._runtime.loop.create_task(self._beat())

    def stop(self) -> None:
        """Tell no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _beat(self) -> None:
        beats = 0
        while True:
            await asyncio.sleep(BEAT)
            beats += 1
            await self.snapshot()
            if beats % HEALTH == 0:
                self.health()
            if beats % LONG == 0:
                self.storage()
                self._feed.comment(HEARTBEAT, as_sse)

    async def snapshot(self) -> None:
        """Tell the counts and rates."""
        runtime = self._runtime
        most = runtime.settings.metrics_max_queues
        census = await taken_in_slices(runtime.engine, most)
        self._feed.say("stats:snapshot", **snapshot(runtime, census))

    def health(self) -> None:
        """Tell that the server is well; each kind of client is told of its own kind."""
        runtime, feed = self._runtime, self._feed
        memory, links = megabytes(runtime), runtime.monitor.links()
        told = {
            "ok": not runtime.outage,
            "uptime": int(runtime.meter.uptime),
            "memory": {"rss": memory["rss"], "heapUsed": memory["heapUsed"]},
        }
        feed.say("health:status", as_sse, **told, connections={"sse": links["sse"]})
        feed.say("health:status", as_message, **told, connections={"ws": links["websocket"]})

    def storage(self) -> None:
        """Tell how much there is, and whether it can be kept."""
        runtime = self._runtime
        full = runtime.storage()["diskFull"]
        collections = collections_of(runtime.engine)
        self._feed.say("storage:status", collections=collections, diskFull=full)


def snapshot(runtime: Runtime, census: Census) -> dict[str, Any]:
    """Return the counts and rates of the server, with those of some queues."""
    engine = runtime.engine
    counters, rates = engine.counters, runtime.monitor.rates()
    workers = totals(engine.workers, now_ms())
    return {
        "waiting": census[State.READY],
        "active": census[State.LEASED],
        "delayed": census[State.DELAYED],
        "completed": census[State.DONE],
        "dlq": census[State.DEAD],
        "totalPushed": counters.pushed,
        "totalCompleted": counters.completed,
        "totalFailed": counters.failed,
        "pushPerSec": rates["pushPerSec"],
        "pullPerSec": rates["pullPerSec"],
        "uptime": int(runtime.meter.uptime * 1_000),
        "queues": {q.name: _brief(q) for q in census.shown},
        "workers": {"total": workers["total"], "active": workers["active"]},
        "cronJobs": len(engine.schedules),
    }


def _brief(q: Queue) -> dict[str, Any]:
    counts = q.counts
    return {
        "waiting": counts[State.READY],
        "active": counts[State.LEASED],
        "delayed": counts[State.DELAYED],
        "dlq": counts[State.DEAD],
        "paused": q.settings.paused,
    }


def counts_of(name: str, q: Queue | None) -> dict[str, Any]:
    """Return how a queue is after something has happened in it."""
    counts = q.counts if q is not None else [0] * len(State)
    prioritized = q.prioritized if q is not None else 0
    return {
        "queue": name,
        "waiting": counts[State.READY] - prioritized,
        "prioritized": prioritized,
        "active": counts[State.LEASED],
        "completed": counts[State.DONE],
        "failed": counts[State.DEAD],
        "delayed": counts[State.DELAYED],
    }


def megabytes(runtime: Runtime) -> dict[str, int]:
    """Return the memory of the process in MiB."""
    return {name: size >> 20 for name, size in runtime.monitor.memory().items()}
