"""What the settings of a server mean for its engine."""

from __future__ import annotations

from tandemq.config import Settings
from tandemq.engine.finished import Rules


def rules(settings: Settings, *, persistent: bool) -> Rules:
    """Return how much is kept of what is not work to be done, and how it is shown."""
    keep = settings.max_completed
    return Rules(
        keep_results=keep,
        keep_done=max(2 * keep, 1_000),
        keep_done_bytes=settings.max_completed_bytes,
        keep_ids=keep,
        retention=settings.completed_retention,
        done_progress=100 if persistent else None,
        keep_logs=settings.max_logs,
        keep_log_bytes=settings.max_log_bytes,
        keep_events=settings.max_queue_events,
        keep_all_events=settings.max_events,
        keep_tallies=settings.max_tallied_queues,
        most_webhooks=settings.max_webhooks,
        worker_timeout=settings.worker_timeout_ms,
        worker_bytes=settings.max_worker_bytes,
    )
