"""The list of all commands."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgpack
import pytest
from tests.commands.desk import WAYS, Desk
from tests.hostile.commands import (
    COMMANDS as HOSTILE,
)
from tests.hostile.commands import (
    LISTS,
    NO_LEASE,
    Lease,
    given,
    wrong_batches,
    wrong_requests,
)

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


def test_the_table_of_wrong_requests_holds_every_command_with_every_field() -> None:
    assert set(HOSTILE) == set(COMMANDS)
    lease = Lease("j", "t")
    for name, row in COMMANDS.items():
        known = set(row.request.__struct_encode_fields__) - {"reqId", "customId", "backoffType"}
        assert known <= set(HOSTILE[name]("q", lease)), name
        for field, right in given(HOSTILE[name]("q", lease)).items():
            assert not isinstance(right, list) or field in LISTS, f"{name}.{field}"


def busy(way: str) -> Desk:
    """A desk whose queue `q` has a job in every state, a dead letter, a schedule and a log."""
    desk = Desk(way)
    desk.do("PUSHB", queue="q", jobs=[{"data": n, "priority": n} for n in range(3)])
    desk.push(delay=60_000)
    desk.push(dependsOn=[desk.push(groupId="g")])
    for cmd, extra in (("ACK", {"result": 1}), ("FAIL", {"unrecoverable": True})):
        id, token = desk.active("ended", jobId=cmd)
        desk.do(cmd, id=id, token=token, **extra)
    desk.do("AddLog", id=desk.push(jobId="logged"), message="m")
    return desk


def asked(cmd: str, queue: str, desk: Desk) -> Iterator[dict[str, Any]]:
    """Wrong requests for a command, each about a job of its own that is active."""
    if cmd in NO_LEASE:
        yield from wrong_requests(cmd, queue, Lease("j", "t"))
        return
    for n in range(sum(1 for _ in wrong_requests(cmd, queue, Lease("", "")))):
        id, token = desk.active(f"{queue}-lease-{n}")
        yield next(islice(wrong_requests(cmd, queue, Lease(id, token)), n, None))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cmd", sorted(COMMANDS))
def test_whatever_stands_in_a_field_is_answered_and_is_no_bug(cmd: str, way: str) -> None:
    """A bug would be raised here; a live server says `Internal server error`."""
    desk = busy(way)
    for queue in ("q", "ended"):
        for request in asked(cmd, queue, desk):
            answer(desk, request)


@pytest.mark.parametrize("way", WAYS)
def test_whatever_stands_in_a_batch_is_answered_and_is_no_bug(way: str) -> None:
    desk = busy(way)
    for request in wrong_batches("q"):
        answer(desk, request)


def answer(desk: Desk, request: dict[str, Any]) -> None:
    try:
        said = desk.hand_in(msgpack.packb({**request, "reqId": "r"}))
    except Exception as bug:
        raise AssertionError(f"a bug in {str(request)[:500]}") from bug
    for leak in (b"Internal server error", b"object at 0x"):
        assert leak not in said, str(request)[:500]
    list(desk.told())
