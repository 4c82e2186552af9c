"""All figures as Prometheus families: the reference's names, then ours.

Nothing is counted here: a scrape reads the engine's integers. The number of label values is
bounded, since every queue would otherwise add a time series to somebody's database.
"""

from __future__ import annotations

import re
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from tandemq.commands.access import COMPATIBLE_WITH
from tandemq.commands.workers import totals
from tandemq.model.body import well_formed
from tandemq.model.message import State
from tandemq.server.census import Census, taken, taken_in_slices
from tandemq.server.health import figures
from tandemq.server.meter import now_ms
from tandemq.server.monitor import BOUNDS, Histogram

if TYPE_CHECKING:
    from tandemq.engine.queue import Queue
    from tandemq.server.runtime import Runtime

BACKUP_COUNTERS = ("attempts", "failures", "overlap_rejections", "successes")
BACKUP_GAUGES = (
    "consecutive_failures", "enabled", "in_progress", "interval_seconds", "last_duration_seconds",
    "last_failure_timestamp_seconds", "last_size_bytes", "last_success_timestamp_seconds",
    "retention", "scheduler_running",
)  # fmt: skip
QUEUE_STATES = ("waiting", "prioritized", "delayed", "active", "dlq")
STARTED = time.time()
# The reference writes whole numbers without a fraction, and its users' scripts match that.
_WHOLE = re.compile(r"(?<=\d)\.0$", re.MULTILINE)


def exposition(runtime: Runtime) -> str:
    """Return the text of a scrape."""
    return _written(runtime, taken(runtime.engine, runtime.settings.metrics_max_queues))


async def scraped(runtime: Runtime) -> str:
    """Return the same, and let others have their turns while many queues are counted."""
    most = runtime.settings.metrics_max_queues
    return _written(runtime, await taken_in_slices(runtime.engine, most))


def _written(runtime: Runtime, census: Census) -> str:
    return _WHOLE.sub("", generate_latest(Families(runtime, census)).decode())


class Families(Collector):
    """Reads the figures at the moment of a scrape."""

    def __init__(self, runtime: Runtime, census: Census) -> None:
        self._runtime, self._census = runtime, census
        self._engine = runtime.engine

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        yield from self._jobs()
        yield from self._queues()
        yield from self._durations()
        yield from self._workers()
        yield from self._server()
        yield from self._process()
        yield from _backups()
        yield from self._broker()
        yield from self._ours()

    def _jobs(self) -> Iterator[Metric]:
        counters, census = self._engine.counters, self._census
        totals = {
            "waiting": census[State.READY] - census.prioritized,
            "prioritized": census.prioritized,
            "delayed": census[State.DELAYED],
            "active": census[State.LEASED],
            "dlq": census[State.DEAD],
            "completed": census[State.DONE],
        }
        for name, count in totals.items():
            yield _gauge(f"bunqueue_jobs_{name}", f"Jobs that are {name}.", count)
        for name in ("pushed", "pulled", "completed", "failed"):
            count = getattr(counters, name)
            yield _counter(f"bunqueue_jobs_{name}", f"Jobs {name} since the start.", count)

    def _queues(self) -> Iterator[Metric]:
        """Yield the counts of so many queues, by name, and how many were left out."""
        shown = self._census.shown
        counts = {q.name: _counts(q) for q in shown}
        for state in QUEUE_STATES:
            family = GaugeMetricFamily(
                f"bunqueue_queue_jobs_{state}",
                f"Jobs of a queue that are {state}.",
                labels=["queue"],
            )
            for name, by_state in counts.items():
                family.add_metric([well_formed(name)], by_state[state])
            yield family
        exported, omitted = len(shown), self._census.queues - len(shown)
        yield _gauge("bunqueue_queue_metrics_exported", "Queues with figures here.", exported)
        yield _gauge("bunqueue_queue_metrics_omitted", "Queues without figures here.", omitted)

    def _durations(self) -> Iterator[Metric]:
        for kind, seen in self._runtime.meter.durations.of.items():
            name = f"bunqueue_{kind}_duration_seconds"
            yield HistogramMetricFamily(
                name, f"Time the server spent on a {kind}.", _buckets(seen), seen.sum
            )

    def _workers(self) -> Iterator[Metric]:
        sums = totals(self._engine.workers, now_ms())
        for name, doc, key in (
            ("bunqueue_workers_registered", "Workers that are registered.", "total"),
            ("bunqueue_workers_active", "Workers that were heard of lately.", "active"),
            ("bunqueue_worker_active_jobs", "Jobs that workers say they run.", "activeJobs"),
            ("bunqueue_worker_concurrency_slots", "Jobs they could run.", "concurrencySlots"),
        ):
            yield _gauge(name, doc, sums[key])
        processed, failed = sums["totalProcessed"], sums["totalFailed"]
        yield _counter("bunqueue_workers_processed", "Jobs that workers say they did.", processed)
        yield _counter("bunqueue_workers_failed", "Jobs that workers say failed.", failed)

    def _server(self) -> Iterator[Metric]:
        hooks, storage = self._engine.webhooks, self._runtime.storage()
        info = GaugeMetricFamily(
            "bunqueue_build_info", "Versions.", labels=["bun_version", "version"]
        )
        info.add_metric([f"python-{sys.version.split()[0]}", COMPATIBLE_WITH], 1)
        yield info
        links = GaugeMetricFamily("bunqueue_connections", "Open connections.", labels=["transport"])
        for transport, count in self._runtime.monitor.links().items():
            links.add_metric([transport], count)
        yield links
        yield _gauge("bunqueue_uptime_seconds", "Time since the start.", time.time() - STARTED)
        yield _gauge("bunqueue_cron_jobs_registered", "Schedules.", len(self._engine.schedules))
        yield _gauge("bunqueue_webhooks_registered", "Webhooks.", len(hooks))
        yield _gauge("bunqueue_webhooks_enabled", "Webhooks that are on.", hooks.enabled)
        degraded = int(storage["error"] is not None)
        yield _gauge("bunqueue_storage_degraded", "1 while writing does not work.", degraded)
        full = int(storage["diskFull"])
        yield _gauge("bunqueue_storage_disk_full", "1 while the disk is full.", full)
        if self._runtime.store.persistent:
            size = self._runtime.store.size_bytes()
            yield _gauge("bunqueue_sqlite_database_size_bytes", "Size of the data file.", size)

    def _process(self) -> Iterator[Metric]:
        memory = self._runtime.monitor.memory()
        for name, key in (
            ("bunqueue_process_heap_used_bytes", "heapUsed"),
            ("bunqueue_process_heap_total_bytes", "heapTotal"),
            ("bunqueue_process_resident_memory_bytes", "rss"),
            ("process_heap_bytes", "heapUsed"),
            ("process_resident_memory_bytes", "rss"),
        ):
            yield _gauge(name, "Memory of the process.", memory[key])
        usage = resource.getrusage(resource.RUSAGE_SELF)
        yield _gauge("process_start_time_seconds", "When the process started.", STARTED)
        yield _counter("process_cpu_seconds", "CPU time.", usage.ru_utime + usage.ru_stime)

    def _broker(self) -> Iterator[Metric]:
        """Yield what the second founding document names, under the names of its reference."""
        seen = figures(self._runtime, now_ms(), self._census)
        for name in seen.__struct_fields__:
            value, doc = getattr(seen, name), name.replace("_", " ").capitalize() + "."
            if name.startswith("total_"):
                yield _counter(f"vibemq_{name.removeprefix('total_')}", doc, value)
            elif not isinstance(value, str):
                yield _gauge(f"vibemq_{name}", doc, value)
        pressure = self._engine.pressure
        yield _gauge("tandemq_memory_used_bytes", "Bytes of all messages.", pressure.used)
        yield _gauge("tandemq_memory_limit_bytes", "Bytes that they may have.", pressure.limit)
        level = "Per cent of it from which on publishers feel what they feel now; 0 is nothing."
        yield _gauge("tandemq_memory_level", level, pressure.level)
        changes = "How often that has changed."
        yield _counter("tandemq_memory_level_changes", changes, pressure.changes)
        dropped = self._engine.counters.dropped
        yield _counter("tandemq_messages_dropped", "Lost by a rule of their queue.", dropped)

    def _ours(self) -> Iterator[Metric]:
        counters, observers = self._engine.counters, self._runtime.observers
        for name in ("retried", "expired", "stalled", "interrupted"):
            count = getattr(counters, name)
            yield _counter(f"tandemq_jobs_{name}", f"Jobs {name} since the start.", count)
        out = len(self._engine.fanouts)
        yield _gauge("tandemq_messages_fanned_out", "Messages whose copies are out.", out)
        yield _gauge("tandemq_event_observers", "Who is told of events.", len(observers))
        deliveries = observers.deliveries
        waiting = deliveries.waiting
        yield _gauge("tandemq_webhook_deliveries_waiting", "Deliveries to come.", waiting)
        dropped = deliveries.dropped
        yield _counter("tandemq_webhook_deliveries_dropped", "Deliveries given up.", dropped)


def _backups() -> Iterable[Metric]:
    """Yield the family of backups, which this server leaves to other tools: all is nought."""
    for name in BACKUP_GAUGES:
        yield _gauge(f"bunqueue_backup_{name}", "Backups by the server itself: none.", 0)
    for name in BACKUP_COUNTERS:
        yield _counter(f"bunqueue_backup_{name}", "Backups by the server itself: none.", 0)


def _counts(q: Queue) -> dict[str, int]:
    counts = q.counts
    return {
        "waiting": counts[State.READY] - q.prioritized,
        "prioritized": q.prioritized,
        "delayed": counts[State.DELAYED],
        "active": counts[State.LEASED],
        "dlq": counts[State.DEAD],
    }


def _buckets(seen: Histogram) -> list[tuple[str, float]]:
    total, buckets = 0, []
    for bound, times in zip((*map(str, BOUNDS), "+Inf"), seen.buckets, strict=True):
        total += times
        buckets.append((bound, float(total)))
    return buckets


def _gauge(name: str, doc: str, value: float) -> Metric:
    return GaugeMetricFamily(name, doc, value)


def _counter(name: str, doc: str, value: float) -> Metric:
    return CounterMetricFamily(name, doc, value)
