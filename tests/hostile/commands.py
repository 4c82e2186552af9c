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
    "maxStalls": 3,
    "maxInterruptions": 10,
    "debounceId": None,
    "debounceTtl": None,
    "timestamp": 1_700_000_000_000.0,
}
"""Fields of a pushed job; None means that it is left out unless it is the field under test."""

NO_LEASE = {"PUSH", "PUSHB", "PULL", "PULLB"}


@dataclass
class Lease:
    """An active job that a command can be aimed at."""

    id: str
    token: str


Fields = Callable[[str, Lease], dict[str, Any]]

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
    },
    "ExtendLock": lambda q, x: {"id": x.id, "token": x.token, "duration": 30_000},
    "ExtendLocks": lambda q, x: {"ids": [x.id], "tokens": [x.token], "durations": [30_000]},
    "JobHeartbeat": lambda q, x: {"id": x.id, "token": x.token, "duration": 30_000},
    "JobHeartbeatB": lambda q, x: {"ids": [x.id], "tokens": [x.token]},
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
    "ListQueues": lambda q, x: {},
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
    "ListWorkers": lambda q, x: {},
    "Stats": lambda q, x: {},
    "StorageStatus": lambda q, x: {},
}

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
    "deep": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],
}

MAY_WAIT = {("PULL", "timeout"), ("PULLB", "timeout")}


def given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def wrong_requests(cmd: str, queue: str, lease: Lease) -> Iterator[dict[str, Any]]:
    """Requests for `cmd`, each with one field missing or of a wrong kind."""
    right = COMMANDS[cmd](queue, lease)
    for name in right:
        yield {"cmd": cmd, **{key: value for key, value in given(right).items() if key != name}}
        for value in WRONG_VALUES.values():
            yield {"cmd": cmd, **given(right), name: value}
    yield {"cmd": cmd}
    yield {"cmd": cmd, **given(right), "surplus": 1, "": 2}


def wrong_batches(queue: str) -> Iterator[dict[str, Any]]:
    """PUSHB requests whose members are wrong as a whole or in one field."""
    for value in WRONG_VALUES.values():
        yield {"cmd": "PUSHB", "queue": queue, "jobs": [{"data": 1}, value]}
    for name in [*JOB, "customId"]:
        for value in WRONG_VALUES.values():
            yield {"cmd": "PUSHB", "queue": queue, "jobs": [{**given(JOB), name: value}]}
