"""Whether the server is well, and its figures, as they are at the moment of the question.

Nothing is counted here. Sources: VibeMQ semantics 12 and 13; ruling 19 for what is unhealthy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tandemq.engine.pressure import Level
from tandemq.model.health import Figures, HealthStatus, Status
from tandemq.server.census import Census, taken
from tandemq.wires.vibemq.queues import moment_text, span_text

if TYPE_CHECKING:
    from tandemq.server.runtime import Runtime

MIB = 2**20


def health(runtime: Runtime, now: int, census: Census | None = None) -> HealthStatus:
    """Return whether the server is well at a moment (ms)."""
    counters, census = runtime.engine.counters, census or taken(runtime.engine)
    status, reasons = condition(runtime)
    return HealthStatus(
        is_healthy=status is not Status.UNHEALTHY,
        status=status,
        active_connections=len(runtime.connections),
        queue_count=census.named,
        in_flight_messages=census.in_flight,
        total_messages_published=counters.published,
        total_messages_delivered=counters.delivered,
        memory_usage_mb=runtime.monitor.memory()["rss"] // MIB,
        timestamp=moment_text(now),
        reasons=reasons,
    )


def figures(runtime: Runtime, now: int, census: Census | None = None) -> Figures:
    """Return all figures of a moment (ms)."""
    counters, crowd = runtime.engine.counters, runtime.crowd
    census = census or taken(runtime.engine)
    return Figures(
        total_messages_published=counters.published,
        total_messages_delivered=counters.delivered,
        total_messages_acknowledged=counters.acknowledged,
        total_retries=counters.retried,
        total_dead_lettered=counters.dead_lettered + counters.failed,
        total_errors=counters.errors,
        total_connections_accepted=crowd.accepted,
        total_connections_rejected=crowd.rejected,
        active_connections=len(runtime.connections),
        active_queues=census.named,
        in_flight_messages=census.in_flight,
        memory_usage_bytes=runtime.monitor.memory()["rss"],
        average_delivery_latency_ms=round(counters.latency, 3),
        timestamp=moment_text(now),
        uptime=span_text(runtime.meter.uptime * 1_000),
    )


def condition(runtime: Runtime) -> tuple[Status, tuple[str, ...]]:
    """Return how the server is, and why it is not healthy."""
    pressure = runtime.engine.pressure
    reasons = []
    if runtime.winding_down:
        reasons.append("the server is about to stop")
    if runtime.outage:
        reasons.append(f"the store cannot be written: {runtime.outage.status()['error']}")
    if pressure.level >= Level.HELD:
        reasons.append(f"publishers wait: {pressure.share:.0%} of the memory is in use")
    if reasons:
        return Status.UNHEALTHY, tuple(reasons)
    if pressure.level:
        text = f"publishers are slowed down: {pressure.share:.0%} of the memory is in use"
        return Status.DEGRADED, (text,)
    return Status.HEALTHY, ()
