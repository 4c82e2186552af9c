"""The list of all commands."""

from __future__ import annotations

from pathlib import Path

import tandemq.commands
from tandemq.commands import all as everything
from tandemq.commands.table import BROKER, COMMANDS

FOUNDATION = [
    "Hello",
    "Auth",
    "Ping",
    "PUSH",
    "PUSHB",
    "PULL",
    "PULLB",
    "ACK",
    "ACKB",
    "FAIL",
    "ExtendLock",
    "ExtendLocks",
    "JobHeartbeat",
    "JobHeartbeatB",
    "Progress",
    "GetJob",
    "GetJobs",
    "GetJobByCustomId",
    "GetState",
    "GetResult",
    "GetProgress",
    "GetJobCounts",
    "Count",
    "Pause",
    "Resume",
    "IsPaused",
    "ListQueues",
    "AddLog",
    "GetLogs",
    "RegisterWorker",
    "UnregisterWorker",
    "Heartbeat",
    "ListWorkers",
    "Stats",
    "StorageStatus",
]


def test_every_command_of_the_foundation_is_there() -> None:
    assert set(FOUNDATION) <= set(COMMANDS)


def test_it_hands_out_the_table_itself() -> None:
    assert everything.COMMANDS is COMMANDS
    assert everything.BROKER is BROKER


def test_every_module_that_defines_commands_is_imported() -> None:
    modules = {
        row.run.__module__.rpartition(".")[2] for row in (*COMMANDS.values(), *BROKER.values())
    }
    folder = Path(tandemq.commands.__path__[0])
    assert modules == {m.stem for m in folder.glob("*.py") if "\n@command(" in m.read_text()}
