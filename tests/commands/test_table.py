"""The table: one typed request, one function, one permission a command."""

from __future__ import annotations

from typing import Any

import pytest

from tandemq.commands.all import BROKER, COMMANDS
from tandemq.commands.table import (
    ABSENT,
    BY_REQUEST,
    BrokerRequest,
    Command,
    Permission,
    Request,
    command,
)
from tandemq.model.errors import BadRequest
from tandemq.model.permission import Operation

EVERY = (*COMMANDS.values(), *BROKER.values())
ROWS = pytest.mark.parametrize("row", EVERY, ids=lambda row: row.name)

RULING = {
    Permission.ANYBODY: {"Auth", "Connect", "Ping"},
    Permission.OPEN: {
        "Hello", "Ping", "UnsubscribeEvents", "WhoAmI", "AdminChangePassword",
        "AdminGetUserPermissions",
        "Disconnect", "Unsubscribe", "Ack", "Nack",
    },
    Permission.PUBLISH: {"PUSH", "PUSHB", "PUSHF", "UpdateParent", "Cron", "Publish"},
    Permission.CREATE: {"CreateQueue"},
    Permission.SUBSCRIBE: {
        "Subscribe", "PULL", "PULLB", "ACK", "ACKB", "FAIL", "ExtendLock", "ExtendLocks",
        "JobHeartbeat", "JobHeartbeatB", "Progress", "AddLog", "RegisterWorker", "UnregisterWorker",
        "Heartbeat", "SubscribeEvents",
    },
    Permission.INSPECT: {
        "Count", "CronGet", "DashboardQueue", "Dlq", "Explain", "GetChildrenValues",
        "GetCountsPerPriority", "GetDeduplicationJobId", "GetDlqConfig", "GetDlqStats",
        "GetFailedChildrenValues", "GetGroupActiveCount", "GetGroupConcurrency",
        "GetGroupJobsCount", "GetGroupRateLimit", "GetGroupRateLimitTtl", "GetGroupWeight",
        "GetGroupsJobsCount", "GetIgnoredChildrenFailures", "GetJob", "GetJobByCustomId",
        "GetJobCounts", "GetJobs", "GetLogs", "GetProgress", "GetQueueLimits", "GetQueuePolicy",
        "GetResult",
        "GetStallConfig", "GetState", "IsGroupPaused", "IsPaused", "Metrics", "QueueInfo",
        "Search", "WaitJob",
    },
    Permission.LIST: {
        "ListQueues", "CronList", "DashboardQueues", "FindQueues", "ListSubscribers",
        "Pulse",
    },
    Permission.CONTROL: {
        "Cancel", "ChangeDelay", "ChangePriority", "Clean", "ClearConcurrency", "ClearLogs",
        "CronDelete", "Discard", "Drain", "MoveToDelayed", "MoveToWait", "MoveToWaitingChildren",
        "Pause", "PauseGroup", "Promote", "PromoteJobs", "PurgeDlq", "RateLimit",
        "RateLimitClear", "RateLimitGroup", "RemoveChildDependency", "RemoveDeduplicationKey",
        "RemoveDlqJob", "RemoveGroupConcurrency", "RemoveGroupRateLimit",
        "RemoveJobDeduplicationKey", "RemoveUnprocessedChildren", "Resume", "ResumeGroup",
        "RetryCompleted", "RetryDlq", "SetConcurrency", "SetDlqConfig", "SetGroupConcurrency",
        "SetGroupRateLimit", "SetGroupWeight", "SetQueuePolicy",
        "SetStallConfig", "TrimEvents", "Update",
    },
    Permission.DELETE: {"Obliterate", "DeleteQueue"},
    Permission.SUPERUSER: {
        "AddWebhook", "ListWebhooks", "RemoveWebhook", "SetWebhookEnabled", "CompactMemory",
        "DashboardOverview", "ListWorkers", "Prometheus", "Stats", "StorageStatus", "WorkerStats",
        "AdminCreateUser", "AdminDeleteUser", "AdminGrantPermission", "AdminRevokePermission",
        "AdminListUsers", "CreateUser", "DeleteUser", "SetPassword", "GrantPermission",
        "RevokePermission", "ListUsers", "CreateToken", "ListTokens", "RevokeToken",
    },
}  # fmt: skip


@ROWS
def test_a_row_has_a_permission_a_summary_and_a_described_request(row: Command) -> None:
    assert isinstance(row.permission, Permission)
    assert row.summary.endswith(".")
    assert row.request.__doc__


@ROWS
def test_a_row_is_found_by_its_name_and_by_its_request(row: Command) -> None:
    table = BROKER if issubclass(row.request, BrokerRequest) else COMMANDS
    assert table[row.name] is BY_REQUEST[row.request] is row
    assert row.request.__struct_config__.tag == row.name
    assert row.request.__struct_config__.tag_field == ("cmd" if table is COMMANDS else "type")


@ROWS
def test_every_request_may_carry_an_id_of_any_kind(row: Command) -> None:
    assert "req_id" in row.request.__struct_fields__
    assert bytes(ABSENT) == b"\xd4\x00\x00"


@ROWS
def test_the_permission_of_a_row_is_that_of_the_ruling(row: Command) -> None:
    assert row.name in RULING.get(row.permission, ()), "decide what it takes, and write it here"


def test_each_operation_is_what_one_permission_takes() -> None:
    taken = [permission.operation for permission in Permission if permission.operation]
    assert sorted(taken) == sorted(Operation)
    free = {permission for permission in Permission if permission.operation is None}
    assert free == {Permission.ANYBODY, Permission.OPEN, Permission.SUPERUSER}


@ROWS
def test_a_row_that_takes_an_operation_tells_which_queues_it_concerns(row: Command) -> None:
    if row.permission.operation is None or row.permission is Permission.LIST:
        return
    own = row.request.concerns is not Request.concerns
    assert own or {"queue", "id"} & set(row.request.__struct_fields__)


def test_other_shapes_of_a_request_concern_the_same_queues() -> None:
    for shape, row in BY_REQUEST.items():
        if row.permission.operation is not None and row.permission is not Permission.LIST:
            own = shape.concerns is not Request.concerns
            assert own or {"queue", "id"} & set(shape.__struct_fields__), shape


FIGURES = {
    "StorageStatus", "Stats", "Metrics", "Prometheus", "WorkerStats", "ListWorkers", "ListQueues",
    "FindQueues", "ListSubscribers", "Pulse", "WhoAmI",
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
