"""The table: one typed request, one function, one permission a command."""

from __future__ import annotations

from typing import Any

import pytest

from tandemq.commands.all import COMMANDS
from tandemq.commands.table import ABSENT, BY_REQUEST, Command, Permission, Request, command
from tandemq.model.errors import BadRequest

ROWS = pytest.mark.parametrize("row", COMMANDS.values(), ids=lambda row: row.name)


@ROWS
def test_a_row_has_a_permission_a_summary_and_a_described_request(row: Command) -> None:
    assert isinstance(row.permission, Permission)
    assert row.summary.endswith(".")
    assert row.request.__doc__


@ROWS
def test_a_row_is_found_by_its_name_and_by_its_request(row: Command) -> None:
    assert COMMANDS[row.name] is BY_REQUEST[row.request] is row
    assert row.request.__struct_config__.tag == row.name
    assert row.request.__struct_config__.tag_field == "cmd"


@ROWS
def test_every_request_may_carry_an_id_of_any_kind(row: Command) -> None:
    assert "req_id" in row.request.__struct_fields__
    assert bytes(ABSENT) == b"\xd4\x00\x00"


def test_the_permissions_are_those_of_the_ruling() -> None:
    named: dict[Permission, set[str]] = {}
    for row in COMMANDS.values():
        named.setdefault(row.permission, set()).add(row.name)
    assert named[Permission.OPEN] == {"Hello", "Auth", "Ping"}
    assert {"PUSH", "PUSHB"} <= named[Permission.PUBLISH]
    assert {"PULL", "ACK", "FAIL", "Progress", "AddLog", "Heartbeat"} < named[Permission.SUBSCRIBE]
    assert {"GetJob", "GetJobs", "Count", "GetLogs", "IsPaused"} < named[Permission.INSPECT]
    assert {"Pause", "Resume"} <= named[Permission.CONTROL]


FIGURES = {
    "StorageStatus", "Stats", "Metrics", "Prometheus", "WorkerStats", "ListWorkers", "ListQueues",
    "DashboardOverview", "DashboardQueues",
}  # fmt: skip


def test_only_answers_that_promise_nothing_leave_before_they_are_kept() -> None:
    early = {row.name for row in COMMANDS.values() if not row.keeps}
    assert early == {"Hello", "Auth", "Ping", "PULL", "PULLB"} | FIGURES


def test_a_name_is_registered_once() -> None:
    class Again(Request, tag="Ping"):
        pass

    def again(req: Request, call: Any) -> None:
        """Do nothing."""

    again.__annotations__["req"] = Again
    with pytest.raises(AssertionError, match="Ping is registered twice"):
        command(Permission.OPEN)(again)


def test_a_request_that_does_not_fit_names_its_command_and_its_field() -> None:
    class Odd(Request, tag="Odd"):
        size: int = 0

    with pytest.raises(BadRequest, match=r"^Odd: Expected `int`.*size"):
        Odd.read({"cmd": "Odd", "size": []})
    assert Odd.read({"cmd": "Odd", "size": 5}).size == 5
