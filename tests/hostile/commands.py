"""Every command of the job wire with every field it knows, for tests that send nonsense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgpack

JOB: dict[str, Any] = {
    "data": {"n": 1},
    "name": "task",
    "priority": 0,
    "delay": 0,
    "maxAttempts": 3,
    "backoff": 0,
    "ttl": 60_000,
    "timeout": 60_000,
    "uniqueKey": None,
    "dedup": None,
    "dependsOn": [],
    "parentId": None,
    "childrenIds": [],
    "tags": ["a"],
    "groupId": None,
    "groupMaxSize": None,
    "lifo": False,
    "removeOnComplete": False,
    "removeOnFail": False,
    "durable": False,
    "repeat": None,
    "failParentOnFailure": False,
    "removeDependencyOnFailure": False,
    "continueParentOnFailure": False,
    "ignoreDependencyOnFailure": False,
    "stallTimeout": 30_000,
    "stackTraceLimit": 10,
    "keepLogs": 10,
    "sizeLimit": 1_000_000,
    "cost": 1,
    "cascadeOnFailure": False,
    "failOnRemoval": False,
    "maxStalls": 3,
    "maxInterruptions": 10,
    "debounceId": None,
    "debounceTtl": None,
    "timestamp": 1_700_000_000_000.0,
}
"""Fields of a pushed job; None means that it is left out unless it is the field under test."""

INNER: dict[str, dict[str, Any]] = {
    "backoff": {"type": "fixed", "delay": 1},
    "dedup": {"ttl": 1_000, "extend": False, "replace": False, "policy": "drop", "keep": False},
    "repeat": {
        "every": 60_000,
        "limit": 3,
        "pattern": None,
        "tz": "UTC",
        "count": 0,
        "startDate": 1_700_000_000_000.0,
        "endDate": 1_900_000_000_000.0,
        "immediately": False,
        "prevMillis": 0,
        "offset": 0,
        "jobId": "r",
    },
    "group": {"affinity": "g", "concurrency": 1, "limit": {"max": 1, "duration": 1_000}},
    "filter": {
        "reason": "timeout",
        "olderThan": 1_700_000_000_000.0,
        "newerThan": 0,
        "retriable": True,
        "expired": False,
        "limit": 1,
        "offset": 0,
    },
    "config": {
        "autoRetry": False,
        "autoRetryInterval": 1_000,
        "maxAutoRetries": 3,
        "maxAge": 1_000_000,
        "maxEntries": 100,
        "enabled": True,
        "stallInterval": 30_000,
        "maxStalls": 3,
        "gracePeriod": 5_000,
    },
    "jobOptions": {
        "maxAttempts": 3,
        "backoff": 1_000,
        "timeout": 1_000,
        "stallTimeout": 1_000,
        "delay": 1_000,
        "removeOnComplete": False,
        "removeOnFail": False,
    },
    "input": {**JOB, "data": {"n": 1}},
}
"""Fields that hold further fields, wherever they stand."""

NO_LEASE = {"PUSH", "PUSHB", "PUSHF", "Cron", "PULL", "PULLB"}


@dataclass
class Lease:
    """An active job that a command can be aimed at."""

    id: str
    token: str


Fields = Callable[[str, Lease], dict[str, Any]]

GROUP_COMMANDS = (
    "GetGroupJobsCount", "GetGroupActiveCount", "GetGroupRateLimit", "RemoveGroupRateLimit",
    "GetGroupConcurrency", "RemoveGroupConcurrency", "PauseGroup", "ResumeGroup", "IsGroupPaused",
    "GetGroupWeight",
)  # fmt: skip
"""Commands that are told a group and nothing else."""

COMMANDS: dict[str, Fields] = {
    "Hello": lambda q, x: {"protocolVersion": 2, "capabilities": ["pipelining"]},
    "Auth": lambda q, x: {"token": None, "user": "u", "password": "p"},
    "Ping": lambda q, x: {},
    "PUSH": lambda q, x: {"queue": q, "jobId": None, **JOB},
    "PUSHB": lambda q, x: {"queue": q, "jobs": [{"data": 1}]},
    "PULL": lambda q, x: {
        "queue": q + "-empty",
        "timeout": 0,
        "owner": "w",
        "lockTtl": 1_000,
        "detach": False,
        "group": None,
    },
    "PUSHF": lambda q, x: {
        "jobs": [{"id": x.id + "-flow", "queue": q, "input": {"data": {"n": 1}}}],
        "onChildFailure": None,
    },
    "PULLB": lambda q, x: {
        "queue": q + "-empty",
        "count": 1,
        "timeout": 0,
        "owner": "w",
        "lockTtl": 1_000,
        "group": None,
    },
    "ACK": lambda q, x: {
        "id": x.id,
        "token": x.token,
        "result": {"r": 1},
        "removeOnComplete": False,
    },
    "ACKB": lambda q, x: {
        "ids": [x.id],
        "tokens": [x.token],
        "results": [1],
        "removeOnCompletes": [False],
    },
    "FAIL": lambda q, x: {
        "id": x.id,
        "token": x.token,
        "error": "e",
        "stack": ["line"],
        "unrecoverable": False,
        "removeOnFail": False,
        "retryAfter": None,
        "delay": None,
        "charge": True,
    },
    "ExtendLock": lambda q, x: {"id": x.id, "token": x.token, "duration": 30_000},
    "ExtendLocks": lambda q, x: {"ids": [x.id], "tokens": [x.token], "durations": [30_000]},
    "JobHeartbeat": lambda q, x: {"id": x.id, "token": x.token, "duration": 30_000},
    "JobHeartbeatB": lambda q, x: {"ids": [x.id], "tokens": [x.token], "nameLost": True},
    "Progress": lambda q, x: {"id": x.id, "progress": 50, "message": "half"},
    "GetJob": lambda q, x: {"id": x.id},
    "Explain": lambda q, x: {"id": x.id},
    "GetJobs": lambda q, x: {
        "queue": q,
        "state": "waiting",
        "offset": 0,
        "limit": 5,
        "asc": True,
    },
    "GetJobByCustomId": lambda q, x: {"customId": "c"},
    "GetState": lambda q, x: {"id": x.id},
    "GetResult": lambda q, x: {"id": x.id},
    "GetProgress": lambda q, x: {"id": x.id},
    "GetJobCounts": lambda q, x: {"queue": q},
    "Count": lambda q, x: {"queue": q},
    "Pause": lambda q, x: {"queue": q + "-control"},
    "Resume": lambda q, x: {"queue": q + "-control"},
    "IsPaused": lambda q, x: {"queue": q + "-control"},
    "ListQueues": lambda q, x: {"offset": 0, "limit": 5},
    "AddLog": lambda q, x: {"id": x.id, "message": "m", "level": "info"},
    "GetLogs": lambda q, x: {"id": x.id, "start": 0, "end": 10},
    "RegisterWorker": lambda q, x: {
        "name": "n",
        "queues": [q],
        "concurrency": 1,
        "workerId": "hostile",
        "hostname": "h",
        "pid": 1,
        "startedAt": 1_700_000_000_000.0,
    },
    "UnregisterWorker": lambda q, x: {"workerId": "hostile"},
    "Heartbeat": lambda q, x: {"id": "hostile", "activeJobs": 0, "processed": 0, "failed": 0},
    "ListWorkers": lambda q, x: {"offset": 0, "limit": 5},
    "Stats": lambda q, x: {"details": True},
    "StorageStatus": lambda q, x: {},
    "CompactMemory": lambda q, x: {},
    "DashboardOverview": lambda q, x: {},
    "DashboardQueues": lambda q, x: {"offset": 0, "limit": 5},
    "DashboardQueue": lambda q, x: {"queue": q, "includeJobs": True, "jobsLimit": 5},
    "WhoAmI": lambda q, x: {"queue": q},
    "Pulse": lambda q, x: {},
    "FindQueues": lambda q, x: {
        "text": "q",
        "sort": "waiting",
        "offset": 0,
        "limit": 5,
    },
    "ListSubscribers": lambda q, x: {"queue": q, "offset": 0, "limit": 5},
    "Search": lambda q, x: {
        "queue": q,
        "state": "waiting",
        "name": "n*",
        "id": x.id,
        "tag": "t",
        "text": "x",
        "after": 1,
        "before": 1_800_000_000_000,
        "limit": 5,
        "cursor": "7",
    },
    "Prometheus": lambda q, x: {},
    "WorkerStats": lambda q, x: {},
    "Metrics": lambda q, x: {"queue": q, "type": "completed", "start": 0, "end": 10},
    "TrimEvents": lambda q, x: {"queue": q, "maxLength": 10},
    "SubscribeEvents": lambda q, x: {"queue": q + "-silent"},
    "UnsubscribeEvents": lambda q, x: {},
    "Drain": lambda q, x: {"queue": q},
    "Clean": lambda q, x: {"queue": q, "grace": 0, "state": "completed", "limit": 5},
    "Obliterate": lambda q, x: {"queue": q},
    "PromoteJobs": lambda q, x: {"queue": q, "count": 1},
    "RetryCompleted": lambda q, x: {"queue": q, "id": None, "count": 1, "timestamp": 1.0},
    "Dlq": lambda q, x: {"queue": q, "count": 1, "filter": {}},
    "GetDlqStats": lambda q, x: {"queue": q},
    "RetryDlq": lambda q, x: {
        "queue": q,
        "jobId": None,
        "count": 1,
        "filter": {},
        "dryRun": False,
        "data": None,
    },
    "PurgeDlq": lambda q, x: {"queue": q, "filter": {}, "dryRun": True},
    "RemoveDlqJob": lambda q, x: {"queue": q, "jobId": x.id},
    "SetDlqConfig": lambda q, x: {"queue": q, "config": {"maxEntries": 100}},
    "GetDlqConfig": lambda q, x: {"queue": q},
    "SetStallConfig": lambda q, x: {"queue": q, "config": {"maxStalls": 3}},
    "GetStallConfig": lambda q, x: {"queue": q},
    "RateLimit": lambda q, x: {
        "queue": q + "-control",
        "limit": 10,
        "duration": 1_000,
        "ttl": 1_000,
    },
    "RateLimitClear": lambda q, x: {"queue": q + "-control"},
    "SetConcurrency": lambda q, x: {"queue": q + "-control", "limit": 10},
    "ClearConcurrency": lambda q, x: {"queue": q + "-control"},
    "GetQueueLimits": lambda q, x: {"queue": q + "-control", "maxJobs": 1},
    "GetCountsPerPriority": lambda q, x: {"queue": q},
    "GetDeduplicationJobId": lambda q, x: {"queue": q, "deduplicationId": "d"},
    "RemoveDeduplicationKey": lambda q, x: {"queue": q, "deduplicationId": "d"},
    "RemoveJobDeduplicationKey": lambda q, x: {"id": x.id},
    "ClearLogs": lambda q, x: {"id": x.id, "keepLogs": 1},
    "Cancel": lambda q, x: {"id": x.id},
    "Discard": lambda q, x: {"id": x.id, "token": x.token},
    "Promote": lambda q, x: {"id": x.id},
    "MoveToWait": lambda q, x: {"id": x.id, "token": x.token},
    "MoveToDelayed": lambda q, x: {"id": x.id, "delay": 1, "token": x.token},
    "MoveToWaitingChildren": lambda q, x: {"id": x.id, "token": x.token},
    "ChangeDelay": lambda q, x: {"id": x.id, "delay": 1, "token": x.token},
    "ChangePriority": lambda q, x: {"id": x.id, "priority": 1, "lifo": False},
    "Update": lambda q, x: {"id": x.id, "data": {"n": 2}},
    "WaitJob": lambda q, x: {"id": "missing", "timeout": 0, "anyEnd": False},
    "UpdateParent": lambda q, x: {"childId": x.id, "parentId": x.id},
    "GetChildrenValues": lambda q, x: {"id": x.id},
    "GetFailedChildrenValues": lambda q, x: {"id": x.id},
    "GetIgnoredChildrenFailures": lambda q, x: {"id": x.id},
    "RemoveChildDependency": lambda q, x: {"id": x.id},
    "RemoveUnprocessedChildren": lambda q, x: {"id": x.id},
    "GetGroupsJobsCount": lambda q, x: {"queue": q},
    **{name: lambda q, x: {"queue": q, "groupId": "g"} for name in GROUP_COMMANDS},
    "SetGroupRateLimit": lambda q, x: {
        "queue": q,
        "groupId": "g",
        "max": 10,
        "duration": 1_000,
    },
    "GetGroupRateLimitTtl": lambda q, x: {"queue": q, "groupId": "g", "maxJobs": 1},
    "SetGroupConcurrency": lambda q, x: {"queue": q, "groupId": "g", "concurrency": 1},
    "RateLimitGroup": lambda q, x: {"queue": q, "groupId": "g", "duration": 1},
    "SetGroupWeight": lambda q, x: {"queue": q, "groupId": "g", "weight": 1},
    "Cron": lambda q, x: {
        "name": q,
        "queue": q + "-cron",
        "data": {"n": 1},
        "jobName": "task",
        "schedule": None,
        "repeatEvery": 86_400_000,
        "priority": 0,
        "maxLimit": 1,
        "timezone": "UTC",
        "uniqueKey": None,
        "dedup": None,
        "skipMissedOnRestart": True,
        "skipIfNoWorker": True,
        "preventOverlap": True,
        "immediately": False,
        "jobOptions": {},
        "missed": None,
        "maxLateness": None,
    },
    "CronGet": lambda q, x: {"name": q, "preview": 1},
    "CronList": lambda q, x: {"offset": 0, "limit": 5, "queue": q},
    "CronDelete": lambda q, x: {"name": q},
    "AddWebhook": lambda q, x: {
        "url": "http://127.0.0.1:9/",  # refused, so that nobody is ever called
        "events": ["job.completed"],
        "queue": q,
        "secret": "s",
    },
    "RemoveWebhook": lambda q, x: {"webhookId": "w"},
    "ListWebhooks": lambda q, x: {},
    "SetWebhookEnabled": lambda q, x: {"id": "w", "enabled": True},
    "GetQueuePolicy": lambda q, x: {"queue": q + "-policy"},
    "SetQueuePolicy": lambda q, x: {"queue": q + "-policy", "policy": {"maxSize": 5}},
    "CreateUser": lambda q, x: {"name": q, "password": "p", "superuser": True},
    "DeleteUser": lambda q, x: {"name": q},
    "SetPassword": lambda q, x: {"name": q, "password": "p"},
    "GrantPermission": lambda q, x: {"name": q, "pattern": "*", "operations": ["Publish"]},
    "RevokePermission": lambda q, x: {"name": q, "pattern": "*"},
    "ListUsers": lambda q, x: {},
    "CreateToken": lambda q, x: {"name": q, "note": "of the build"},
    "ListTokens": lambda q, x: {"name": q},
    "RevokeToken": lambda q, x: {"name": q, "id": "t"},
}


def nested(depth: int) -> Any:
    """A list in a list in a list, or now and then in a map."""
    found: Any = 1
    for level in range(depth):
        found = {"k": found} if level % 7 == 6 else [found]
    return found


WRONG_VALUES: dict[str, Any] = {
    "nil": None,
    "true": True,
    "false": False,
    "zero": 0,
    "minus one": -1,
    "large": 2**31 - 1,
    "int64": 2**63 - 1,
    "negative int64": -(2**63),
    "fraction": 0.5,
    "nan": float("nan"),
    "infinity": float("inf"),
    "huge float": 1e308,
    "empty text": "",
    "text": "zoë ☃ \0",
    "number in text": "7",
    "long text": "x" * 5_000,
    "proto": "__proto__",
    "bytes": b"\xff\xfe",
    "empty list": [],
    "list of rubbish": [None, 1, "a", [], {}],
    "long list": [0] * 2_000,
    "empty map": {},
    "map of rubbish": {"a": None, "type": 5, "delay": "x", "id": [], "every": -1},
    "integer keys": {1: 2, -5: 6},
    "undefined": msgpack.ExtType(0, b"\x00"),
    "extension": msgpack.ExtType(77, b"abc"),
    "timestamp": msgpack.Timestamp(1_700_000_000, 5),
    "list of a list": [["x"]],
    "list of a map": [{"a": 1}],
    "map of a list": {"a": [1]},
    "largest integer": 2**64 - 1,
    "unlimited text": "y" * 200_000,
    "deep": nested(30),
    "deeper": nested(300),
    "deepest": nested(505),
}

LISTS = ("ids", "tokens", "results", "durations", "removeOnCompletes", "stack", "queues", "events",
         "tags", "dependsOn", "childrenIds", "state", "jobs", "capabilities",
         "operations")  # fmt: skip


def given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def wrong_values(name: str) -> Iterator[Any]:
    """What a field of this name may wrongly hold: by itself, in its list, in its own fields."""
    yield from WRONG_VALUES.values()
    if name in LISTS:
        yield from ([value] for value in WRONG_VALUES.values())
    inner = given(INNER.get(name, {}))
    for field in INNER.get(name, {}):
        yield {key: value for key, value in inner.items() if key != field}
        yield from ({**inner, field: value} for value in WRONG_VALUES.values())


def wrong_requests(cmd: str, queue: str, lease: Lease) -> Iterator[dict[str, Any]]:
    """Requests for `cmd`, each with one field missing or of a wrong kind."""
    right = COMMANDS[cmd](queue, lease)
    for name in right:
        yield {"cmd": cmd, **{key: value for key, value in given(right).items() if key != name}}
        for value in wrong_values(name):
            yield {"cmd": cmd, **given(right), name: value}
    yield {"cmd": cmd}
    yield {"cmd": cmd, **given(right), "surplus": 1, "": 2}


def wrong_batches(queue: str) -> Iterator[dict[str, Any]]:
    """PUSHB and PUSHF requests whose members are wrong as a whole or in one field."""
    for value in WRONG_VALUES.values():
        yield {"cmd": "PUSHB", "queue": queue, "jobs": [{"data": 1}, value]}
    for name in [*JOB, "customId"]:
        for value in wrong_values(name):
            yield {"cmd": "PUSHB", "queue": queue, "jobs": [{**given(JOB), name: value}]}
    planned = {"id": queue + "-flow", "queue": queue, "input": {"data": {"n": 1}}}
    for name in planned:
        for value in wrong_values(name):
            yield {"cmd": "PUSHF", "jobs": [{**planned, name: value}]}
