"""Figures as Prometheus reads them."""

from __future__ import annotations

import re

from prometheus_client.parser import text_string_to_metric_families
from tests.server.offline import GatedStore, Peer, serving

FAMILIES = """
bunqueue_ack_duration_seconds bunqueue_backup_attempts_total bunqueue_backup_enabled
bunqueue_build_info bunqueue_connections bunqueue_cron_jobs_registered bunqueue_jobs_active
bunqueue_jobs_completed bunqueue_jobs_completed_total bunqueue_jobs_delayed bunqueue_jobs_dlq
bunqueue_jobs_failed_total bunqueue_jobs_prioritized bunqueue_jobs_pulled_total
bunqueue_jobs_pushed_total bunqueue_jobs_waiting bunqueue_process_heap_used_bytes
bunqueue_pull_duration_seconds bunqueue_push_duration_seconds bunqueue_queue_jobs_waiting
bunqueue_queue_metrics_exported bunqueue_queue_metrics_omitted bunqueue_sqlite_database_size_bytes
bunqueue_storage_degraded bunqueue_uptime_seconds bunqueue_webhooks_enabled
bunqueue_workers_processed_total process_cpu_seconds_total process_start_time_seconds
tandemq_event_observers tandemq_jobs_retried_total tandemq_webhook_deliveries_waiting
tandemq_memory_level tandemq_memory_level_changes_total tandemq_memory_limit_bytes
tandemq_memory_used_bytes tandemq_messages_dropped_total vibemq_active_connections
vibemq_active_queues vibemq_average_delivery_latency_ms vibemq_connections_accepted_total
vibemq_connections_rejected_total vibemq_dead_lettered_total vibemq_errors_total
vibemq_in_flight_messages vibemq_memory_usage_bytes vibemq_messages_acknowledged_total
vibemq_messages_delivered_total vibemq_messages_published_total vibemq_retries_total
tandemq_messages_fanned_out
"""


async def scrape(peer: Peer) -> str:
    return str((await peer.do("Prometheus"))["data"]["metrics"])


async def test_every_family_is_there_under_its_name() -> None:
    async with serving(GatedStore()) as runtime:
        text = await scrape(Peer(runtime))
    for name in FAMILIES.split():
        assert re.search(rf"^# TYPE {name} (gauge|counter|histogram)$", text, re.MULTILINE), name


async def test_a_scrape_can_be_read_back() -> None:
    async with serving() as runtime:
        peer = Peer(runtime)
        await peer.push(priority=2)
        await peer.push(delay=60_000)
        await peer.pull()
        samples = {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(await scrape(peer))
            for sample in family.samples
        }
    assert samples["bunqueue_jobs_pushed_total",] == 2
    assert samples["bunqueue_queue_jobs_active", "q"] == 1
    assert samples["bunqueue_queue_jobs_delayed", "q"] == 1
    assert samples["bunqueue_push_duration_seconds_count",] == 2
    assert samples["bunqueue_connections", "tcp"] == 1


async def test_queues_beyond_the_bound_are_only_counted() -> None:
    async with serving(metrics_max_queues=2) as runtime:
        peer = Peer(runtime)
        for queue in ("c", "a", "b"):
            await peer.push(queue)
        text = await scrape(peer)
    assert re.findall(r'bunqueue_queue_jobs_waiting\{queue="(\w)"\}', text) == ["a", "b"]
    assert "\nbunqueue_queue_metrics_exported 2\n" in text
    assert "\nbunqueue_queue_metrics_omitted 1\n" in text


async def test_queues_with_long_names_are_only_counted() -> None:
    async with serving() as runtime:
        peer = Peer(runtime)
        for queue in ("x" * 257, "y" * 256):
            await peer.do("Pause", queue=queue)
        text = await scrape(peer)
    assert f'bunqueue_queue_jobs_waiting{{queue="{"y" * 256}"}}' in text
    assert "x" * 257 not in text
    assert "\nbunqueue_queue_metrics_exported 1\n" in text
    assert "\nbunqueue_queue_metrics_omitted 1\n" in text
