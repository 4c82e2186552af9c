"""What a broker tells of itself, in both spellings."""

from __future__ import annotations

import pytest

from tandemq.model.health import Figures, HealthStatus, Status, members

WELL = HealthStatus(
    is_healthy=True,
    status=Status.HEALTHY,
    active_connections=15,
    queue_count=5,
    in_flight_messages=42,
    total_messages_published=125_000,
    total_messages_delivered=124_850,
    memory_usage_mb=256,
    timestamp="2026-02-18T10:30:00Z",
)
OF_THE_SEED = {
    "isHealthy": True,
    "status": "healthy",
    "activeConnections": 15,
    "queueCount": 5,
    "inFlightMessages": 42,
    "totalMessagesPublished": 125_000,
    "totalMessagesDelivered": 124_850,
    "memoryUsageMb": 256,
    "timestamp": "2026-02-18T10:30:00Z",
}
FIGURES = Figures(
    **{name: n for n, name in enumerate(Figures.__struct_fields__[:-2])},
    timestamp="2026-02-18T10:30:00Z",
    uptime="1.02:03:04.5000000",
)


def test_a_healthy_broker_is_written_as_the_founding_document_has_it() -> None:
    assert members(WELL) == OF_THE_SEED
    assert list(members(WELL)) == list(OF_THE_SEED)


def test_the_reference_s_later_spelling_can_be_had() -> None:
    assert list(members(WELL, snake=True)) == [
        "is_healthy", "status", "active_connections", "queue_count", "in_flight_messages",
        "total_messages_published", "total_messages_delivered", "memory_usage_mb", "timestamp",
    ]  # fmt: skip


@pytest.mark.parametrize("report", [WELL, FIGURES])
def test_both_spellings_tell_the_same(report: HealthStatus | Figures) -> None:
    assert list(members(report).values()) == list(members(report, snake=True).values())


@pytest.mark.parametrize("snake", [False, True])
def test_reasons_are_written_where_there_are_some(snake: bool) -> None:
    told = members(HealthStatus(**{**members(WELL, snake=True), "reasons": ("full",)}), snake=snake)
    assert tuple(told["reasons"]) == ("full",)


def test_the_figures_have_the_names_of_the_reference() -> None:
    assert list(members(FIGURES, snake=True)) == [
        "total_messages_published", "total_messages_delivered", "total_messages_acknowledged",
        "total_retries", "total_dead_lettered", "total_errors", "total_connections_accepted",
        "total_connections_rejected", "active_connections", "active_queues", "in_flight_messages",
        "memory_usage_bytes", "average_delivery_latency_ms", "timestamp", "uptime",
    ]  # fmt: skip
    assert {"totalMessagesPublished", "averageDeliveryLatencyMs"} <= members(FIGURES).keys()
