"""Where a route says something in another form than its command (http-api 3 to 5).

A form is given the fields that a request has made, or the answer that the command has given, and
returns what is to stand in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tandemq.engine import graves
from tandemq.model.permission import Operation

if TYPE_CHECKING:
    from tandemq.commands.call import Call

Fields = dict[str, Any]

PAGE: Final = 100  # queues that a page of the dashboard lists, unless another number is asked for
PAGE_LIMIT: Final = 500
# What a job may say for itself; a member of a batch may say everything that PUSHB knows.
JOB_FIELDS: Final = (
    "queue", "name", "data", "priority", "delay", "maxAttempts", "backoff", "timeout", "jobId",
    "removeOnComplete", "removeOnFail", "durable", "ttl", "uniqueKey", "groupId", "dependsOn",
    "tags", "lifo", "repeat", "cost", "maxStalls", "maxInterruptions",
)  # fmt: skip
# The fields of those commands that have others here.
TAKEN: Final = {
    "PUSH": JOB_FIELDS,
    "PULL": ("queue", "timeout"),
    "Dlq": ("queue", "limit", "offset"),
}


_JOB_FIELDS = frozenset(JOB_FIELDS)


def _push(fields: Fields) -> Fields:
    if "attempts" in fields:
        fields.setdefault("maxAttempts", fields["attempts"])
    if type(fields.get("name", "")) is not str:
        del fields["name"]
    if fields.keys() <= _JOB_FIELDS:  # nearly always
        return fields
    return {name: value for name, value in fields.items() if name in _JOB_FIELDS}


def _push_many(fields: Fields) -> Fields:
    return {"jobs": [], **fields}


def _pull(fields: Fields) -> Fields:
    return {name: fields[name] for name in TAKEN["PULL"] if name in fields}


def _jobs(fields: Fields) -> Fields:
    for name in ("state", "status", "states"):
        if isinstance(states := fields.pop(name, None), str):
            fields["state"] = states.split(",")
    return fields


def _clean(fields: Fields) -> Fields:
    grace = fields.get("grace")
    if isinstance(grace, bool) or not isinstance(grace, (int, float)):
        fields["grace"] = 0
    return fields


def _dlq(fields: Fields) -> Fields:
    asked = {name: fields.pop(name, None) for name in ("limit", "offset")}
    given = {name: value for name, value in asked.items() if isinstance(value, int)}
    return {**fields, "filter": given}


def _concurrency(fields: Fields) -> Fields:
    if "concurrency" in fields:
        fields["limit"] = fields.pop("concurrency")
    return fields


def _config(fields: Fields) -> Fields:
    queue = fields.pop("queue")
    config = fields.get("config")
    return {"queue": queue, "config": config if isinstance(config, dict) else fields}


def _dashboard_page(fields: Fields) -> Fields:
    limit, offset = fields.get("limit"), fields.get("offset")
    most = limit if isinstance(limit, int) and limit > 0 else PAGE
    first = offset if isinstance(offset, int) else 0
    return {"limit": min(most, PAGE_LIMIT), "offset": max(first, 0)}


BEFORE: Final[dict[str, Callable[[Fields], Fields]]] = {
    "PUSH": _push,
    "PUSHB": _push_many,
    "PULL": _pull,
    "GetJobs": _jobs,
    "Clean": _clean,
    "Dlq": _dlq,
    "SetConcurrency": _concurrency,
    "SetStallConfig": _config,
    "SetDlqConfig": _config,
    "DashboardQueues": _dashboard_page,
}


def _dead(told: Fields, fields: Fields, call: Call) -> Fields:
    total = sum(1 for _ in graves.listed(call.engine, fields["queue"]))
    entries = [] if fields["filter"].get("limit") == 0 else told["entries"]
    return {"ok": True, "entries": entries, "total": total}


def _unwrapped(told: Fields, fields: Fields, call: Call) -> Fields:
    return {"ok": True, **told["data"]}


def _dashboard(told: Fields, fields: Fields, call: Call) -> Fields:
    queues = call.engine.queues.values()
    total = sum(not q.blank and call.may(Operation.LIST_QUEUES, q.name) for q in queues)
    page = {"limit": fields["limit"], "offset": fields["offset"]}
    return {"ok": True, **told["data"], "total": total, **page}


AFTER: Final[dict[str, Callable[[Fields, Fields, Call], Fields]]] = {
    "Dlq": _dead,
    "GetDlqStats": _unwrapped,
    "DashboardOverview": _unwrapped,
    "DashboardQueues": _dashboard,
    "DashboardQueue": _unwrapped,
}
