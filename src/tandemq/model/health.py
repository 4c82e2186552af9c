"""What a broker tells of itself: whether it is well, and its figures.

Members are written in camel case, as the founding document has them, or in snake case, as the
reference's later releases do. Sources: VibeMQ semantics 12 and 13.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct


class Status(StrEnum):
    """How a broker is."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"  # it slows publishers down, and is well otherwise
    UNHEALTHY = "unhealthy"


class HealthStatus(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Whether a broker is well, and its most important figures."""

    is_healthy: bool  # a degraded one is
    status: Status
    active_connections: int
    queue_count: int
    in_flight_messages: int
    total_messages_published: int
    total_messages_delivered: int
    memory_usage_mb: int  # MiB of the process
    timestamp: str
    reasons: tuple[str, ...] = ()  # why it is not healthy; ours, not written when there is none


class Figures(Struct, frozen=True, kw_only=True, rename="camel"):
    """All figures of one moment; totals count since the start."""

    total_messages_published: int  # letters, of subscribers' wires, that were accepted
    total_messages_delivered: int  # each copy, but not what is sent again
    total_messages_acknowledged: int  # each copy
    total_retries: int  # of letters and jobs
    total_dead_lettered: int  # letters and jobs, each once
    total_errors: int  # requests that were refused, messages that could not be sent
    total_connections_accepted: int
    total_connections_rejected: int
    active_connections: int
    active_queues: int
    in_flight_messages: int  # letters, copies of letters, and jobs that somebody holds
    memory_usage_bytes: int  # of the process
    average_delivery_latency_ms: float  # from acceptance to the first delivery
    timestamp: str
    uptime: str  # [d.]hh:mm:ss[.fffffff]


def members(report: HealthStatus | Figures, *, snake: bool = False) -> dict[str, Any]:
    """Return a report as the object that is written of it, its members named in either way."""
    camel: dict[str, Any] = msgspec.to_builtins(report)
    if not snake:
        return camel
    fields = msgspec.structs.fields(report)
    return {f.name: camel[f.encode_name] for f in fields if f.encode_name in camel}
