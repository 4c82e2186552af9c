"""Every command, registered by importing its module."""

from __future__ import annotations

from tandemq.commands import (  # noqa: F401
    access,
    control,
    finish,
    leases,
    observe,
    progress,
    pull,
    push,
    query,
    workers,
)
from tandemq.commands.table import COMMANDS

__all__ = ["COMMANDS"]
