"""What the settings of a server mean for its engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

from tandemq.config import Settings
from tandemq.config.settings import DeliveryMode
from tandemq.engine.finished import Rules
from tandemq.model.broker import Mode, Policy

CGROUP = Path("/sys/fs/cgroup/memory.max")


def rules(settings: Settings, *, persistent: bool) -> Rules:
    """Return how much is kept of what is not work to be done, and how it is shown."""
    keep = settings.max_completed
    return Rules(
        keep_results=keep,
        keep_done=max(2 * keep, 1_000),
        keep_done_bytes=settings.max_completed_bytes,
        keep_ids=keep,
        retention=settings.completed_retention,
        max_memory=settings.max_memory or memory() // 2,
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


def memory() -> int:
    """Return the bytes of memory that this process may have: of its machine or of its group."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(machine, int(CGROUP.read_text("ascii")))
    except (OSError, ValueError):  # there are no groups, or no limit ("max")
        return machine


def policy(settings: Settings) -> Policy:
    """Return what a queue is that a VibeMQ client makes without saying more."""
    return Policy(
        mode=Mode(get_args(DeliveryMode).index(settings.default_mode)),
        max_size=settings.default_queue_size,
        ack_wait=round(settings.ack_timeout * 1_000),
        retry_base=round(settings.retry_delay * 1_000),
        retry_cap=round(settings.retry_delay_max * 1_000),
        full_wait=settings.full_ack_timeout,
    )
