"""Every command, registered by importing its module."""

from __future__ import annotations

from tandemq.commands import (  # noqa: F401
    access,
    accounts,
    broker,
    bulk,
    control,
    cron,
    dashboard,
    deadletters,
    dedup,
    events,
    explain,
    finish,
    flows,
    greeting,
    groups,
    leases,
    limits,
    lookout,
    manage,
    metrics,
    observe,
    plain,
    policies,
    progress,
    pull,
    push,
    pushf,
    query,
    queues,
    search,
    users,
    webhooks,
    workers,
)
from tandemq.commands.table import BROKER, COMMANDS

__all__ = ["BROKER", "COMMANDS"]
