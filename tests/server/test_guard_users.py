"""What users may do who may not do everything: every command, with and without what it takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.commands.desk import NOW, Desk, packed
from tests.hostile.commands import WRONG_VALUES

from tandemq.commands.all import COMMANDS
from tandemq.commands.table import Command, Permission
from tandemq.engine import users
from tandemq.model.errors import NotAuthorized, TandemqError
from tandemq.model.permission import Operation
from tandemq.server.guard import permit
from tandemq.wires.bunqueue.session import Refusal

SECRET = "s3cr3t"
EVERYTHING = tuple(Operation)

GRANTED = [
    row
    for row in COMMANDS.values()
    if row.permission.operation is not None and row.permission is not Permission.LIST
]
each_granted = pytest.mark.parametrize("row", GRANTED, ids=lambda row: row.name)


NAMELESS = {"Pulse", "ListSubscribers"}
"""Lists that name no queue or go by other operations: tests/commands/test_lookout.py has them."""


def having(permission: Permission) -> pytest.MarkDecorator:
    rows = [r for r in COMMANDS.values() if r.permission is permission and r.name not in NAMELESS]
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


def scene(queue: str = "secret") -> Desk:
    """A queue with jobs in every state, a schedule and a worker; bob may do nothing with it."""
    desk = Desk()
    users.create(desk.engine, "root", "h", NOW, superuser=True)
    users.create(desk.engine, "bob", "h", NOW)
    for id in ("dead", "done", "job"):
        desk.push(queue, SECRET, jobId=id, maxAttempts=1, uniqueKey=f"key of {id}")
    dead, done = desk.pull(queue), desk.pull(queue)
    desk.do("FAIL", id="dead", token=dead["token"], error=SECRET)
    desk.do("ACK", id="done", token=done["token"], result=SECRET)
    desk.push(queue, SECRET, jobId="parent")
    desk.push(queue, SECRET, jobId="child")
    desk.do("UpdateParent", childId="child", parentId="parent")
    desk.push(queue, SECRET, jobId="later", delay=1000, groupId="g")
    desk.do("AddLog", id="job", message=SECRET)
    desk.do("Cron", name="every day", queue=queue, data=SECRET, schedule="0 0 * * *")
    desk.do("RegisterWorker", name=SECRET, queues=[queue], workerId="worker")
    desk.engine.take()
    return desk


def fields_of(row: Command, queue: Any = "secret") -> dict[str, Any]:
    """Fields with which a command concerns that queue."""
    job = {"data": 1}
    known: dict[str, Any] = {
        "queue": queue,
        "id": "job",
        "ids": ["job"],
        "tokens": ["token"],
        "durations": [1000],
        "customId": "job",
        "childId": "child",
        "parentId": "parent",
        "name": "every day",
        "schedule": "0 0 * * *",
        "workerId": "worker",
        "queues": [queue],
        "groupId": "g",
        "data": 1,
        "jobs": [job],
        "deduplicationId": "key of job",
        "priority": 1,
        "delay": 10,
        "limit": 1,
        "config": {},
        "max": 1,
        "duration": 1000,
        "concurrency": 1,
        "weight": 1,
        "maxLength": 0,
        "type": "completed",
        "progress": 1,
        "message": "m",
    }
    if row.name == "Heartbeat":
        known["id"] = "worker"
    if row.name == "PUSHF":
        known["jobs"] = [{"id": "new", "queue": queue, "input": job}]
    if row.permission is Permission.PUBLISH:
        del known["parentId"], known["customId"]
        known["parentId"] = "parent" if row.name == "UpdateParent" else None
    asked = {name: known.get(name) for name in row.request.__struct_encode_fields__}
    return {name: value for name, value in asked.items() if value is not None}


def error_of(
    desk: Desk, cmd: str, fields: dict[str, Any], user: str = "bob"
) -> TandemqError | None:
    """Ask as a user and return the refusal, if it is one; ``desk.said`` is the answer else."""
    body = packed(cmd, **fields)
    item = desk.read(body)
    if isinstance(item, Refusal):
        return item.error
    try:
        permit(desk.engine, user, COMMANDS[cmd], item)
    except NotAuthorized as refused:
        return refused
    caller = desk.caller(9)
    caller.trusted, caller.user = False, user
    desk.said = desk.hand_in(body, 9)
    return None


def state(desk: Desk) -> Any:
    """Everything that a command could have changed."""
    engine = desk.engine
    jobs = {
        m.id: (m.state, m.body, m.attempts, m.priority, m.due) for m in engine.messages.values()
    }
    queues = {name: (q.settings, len(q.ring)) for name, q in engine.queues.items()}
    return (
        jobs, queues, dict(engine.schedules), engine.logs.of("job"), desk.host.observers.queues,
        [(w.id, w.queues, w.seen) for w in engine.workers.listed(desk.now)], engine.quiet,
        engine.watched_by,
    )  # fmt: skip


def grant(desk: Desk, *held: Operation, pattern: str = "secret") -> None:
    users.grant(desk.engine, "bob", pattern, held)
    desk.engine.take()


@each_granted
def test_without_a_grant_nothing_is_done_and_the_operation_is_named(row: Command) -> None:
    desk = scene()
    before = state(desk)
    refused = error_of(desk, row.name, fields_of(row))
    assert str(refused) == "Access denied."
    assert refused.operation is row.permission.operation
    assert state(desk) == before


@each_granted
def test_every_other_operation_does_not_help_nor_does_this_one_elsewhere(row: Command) -> None:
    desk = scene()
    operation = row.permission.operation
    assert operation is not None
    grant(desk, *(other for other in Operation if other is not operation))
    for pattern in ("SECRET", "secret.*", "*secrets", "s", "", "cret"):
        grant(desk, *EVERYTHING, pattern=pattern)
    before = state(desk)
    assert str(error_of(desk, row.name, fields_of(row))) == "Access denied."
    assert state(desk) == before


@each_granted
def test_its_operation_is_enough(row: Command) -> None:
    desk = scene()
    operation = row.permission.operation
    assert operation is not None
    grant(desk, operation, pattern="s*t")
    assert not isinstance(error_of(desk, row.name, fields_of(row)), NotAuthorized)


@having(Permission.SUPERUSER)
def test_what_concerns_the_server_is_for_superusers(row: Command) -> None:
    desk = scene()
    grant(desk, *EVERYTHING, pattern="*")
    before = state(desk)
    fields = {**fields_of(row), "webhookId": "x", "url": "https://h.example/", "events": []}
    assert str(error_of(desk, row.name, fields)) == "Superuser access required."
    assert state(desk) == before


@having(Permission.OPEN)
def test_what_is_open_needs_no_grant(row: Command) -> None:
    assert error_of(scene(), row.name, {}) is None


@having(Permission.LIST)
def test_a_list_shows_only_what_may_be_listed(row: Command) -> None:
    desk = scene()
    desk.push("open.to.bob")
    desk.do("Cron", name="mine", queue="open.to.bob", data=1, schedule="0 0 * * *")
    grant(desk, *EVERYTHING, pattern="open.*")
    grant(desk, *(other for other in Operation if other is not Operation.LIST_QUEUES))
    assert error_of(desk, row.name, {}) is None
    assert b"open.to.bob" in desk.said
    assert b"secret" not in desk.said
    assert SECRET.encode() not in desk.said
    grant(desk, Operation.LIST_QUEUES)
    assert error_of(desk, row.name, {}) is None
    assert b"secret" in desk.said
    assert b"secret" in desk.hand_in(packed(row.name)), "a superuser sees everything"


@each_granted
def test_wrong_values_open_nothing(row: Command) -> None:
    """Whatever a field holds: nothing of what is not granted changes or is shown."""
    desk = scene()
    before = state(desk)
    right = fields_of(row)
    for name in right:
        for wrong in (*WRONG_VALUES.values(), ["secret"], {"secret": 1}, b"secret", ["job"]):
            fields = {**right, name: wrong}
            refused = error_of(desk, row.name, fields)
            shown = b"" if refused is not None else desk.said
            assert SECRET.encode() not in shown, fields
            now = state(desk)
            assert now[0].items() >= before[0].items(), fields
            assert {**now[1], **before[1]} == now[1], fields
            assert now[2:5] == before[2:5], fields
        without = {key: value for key, value in right.items() if key != name}
        if error_of(desk, row.name, without) is None:
            assert SECRET.encode() not in desk.said


@each_granted
@pytest.mark.parametrize("number", [5, 5.0])
def test_a_queue_cannot_be_reached_by_a_number(row: Command, number: float) -> None:
    """Names that are digits may be given as numbers, and are the same names then."""
    if "queue" not in row.request.__struct_fields__:
        return
    desk = scene("5")
    before = state(desk)
    fields = fields_of(row, number)
    assert error_of(desk, row.name, {**fields, "name": "new"}) is not None
    assert state(desk) == before
    grant(desk, *EVERYTHING, pattern="5")
    assert not isinstance(error_of(desk, row.name, fields), NotAuthorized)


# -- commands that concern more than one queue -----------------------------------------------------


def flow(*queues: str, **input: Any) -> dict[str, Any]:
    jobs = [
        {"id": f"f{i}", "queue": q, "input": {"data": {}, **input}} for i, q in enumerate(queues)
    ]
    return {"jobs": jobs}


PUBLISHING: dict[str, tuple[str, dict[str, Any]]] = {
    "an id that is taken elsewhere": ("PUSH", {"queue": "mine", "data": 1, "jobId": "done"}),
    "a custom id that is taken": ("PUSH", {"queue": "mine", "data": 1, "customId": "done"}),
    "a foreign parent": ("PUSH", {"queue": "mine", "data": 1, "parentId": "parent"}),
    "foreign children": ("PUSH", {"queue": "mine", "data": 1, "childrenIds": ["x", "job"]}),
    "a foreign dependency": ("PUSH", {"queue": "mine", "data": 1, "dependsOn": ["job"]}),
    "one of a batch": ("PUSHB", {"queue": "mine", "jobs": [{"data": 1}, {"customId": "done"}]}),
    "the family of one": ("PUSHB", {"queue": "mine", "jobs": [{"data": 1, "dependsOn": ["job"]}]}),
    "one job of a flow": ("PUSHF", flow("mine", "mine", "secret")),
    "the parent of a flow": ("PUSHF", flow("mine", parentId="parent")),
    "an id of a flow": ("PUSHF", {"jobs": [{"id": "job", "queue": "mine", "input": {"data": {}}}]}),
    "a foreign parent for mine": ("UpdateParent", {"childId": "mine", "parentId": "parent"}),
    "a foreign child for mine": ("UpdateParent", {"childId": "child", "parentId": "mine"}),
    "a schedule of another": (
        "Cron", {"name": "every day", "queue": "mine", "data": 1, "repeatEvery": 1000}
    ),
}  # fmt: skip
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "one of many acks": ("ACKB", {"ids": ["mine", "job"]}),
    "one of many locks": ("ExtendLocks", {"ids": ["mine", "job"], "tokens": [1], "durations": [1]}),
    "one of many heartbeats": ("JobHeartbeatB", {"ids": ["mine", "job"]}),
    "a queue of a worker": ("RegisterWorker", {"name": "w", "queues": ["mine", "secret"]}),
    "a worker of others": (
        "RegisterWorker", {"name": "w", "queues": ["mine"], "workerId": "worker"}
    ),
    "the children of mine": ("GetChildrenValues", {"id": "holder"}),
    "the waiting children of mine": ("RemoveUnprocessedChildren", {"id": "holder"}),
    "the parent of mine": ("RemoveChildDependency", {"id": "held"}),
}  # fmt: skip


def family(desk: Desk) -> None:
    """Jobs of bob's, with relatives in the secret queue that a superuser has given them."""
    desk.push("mine", 1, jobId="mine")
    desk.push("mine", 1, jobId="holder", childrenIds=["done"], dependsOn=["job"])
    desk.do("UpdateParent", childId="job", parentId="holder")
    desk.push("mine", 1, jobId="held")
    desk.do("UpdateParent", childId="held", parentId="parent")
    desk.engine.take()


@pytest.mark.parametrize("case", [*PUBLISHING, *OTHERS])
def test_one_queue_that_is_not_granted_spoils_the_whole_request(case: str) -> None:
    cmd, fields = {**PUBLISHING, **OTHERS}[case]
    operation = COMMANDS[cmd].permission.operation
    assert operation is not None
    desk = scene()
    family(desk)
    grant(desk, *EVERYTHING, pattern="mine")
    before = state(desk)
    assert str(error_of(desk, cmd, fields)) == "Access denied."
    assert state(desk) == before
    grant(desk, operation)
    assert not isinstance(error_of(desk, cmd, fields), NotAuthorized)


@pytest.mark.parametrize("cmd", ["GetLogs", "ClearLogs"])
def test_a_log_that_outlived_its_job_is_for_superusers(cmd: str) -> None:
    desk = scene()
    grant(desk, *EVERYTHING, pattern="*")
    desk.do("Cancel", id="job")
    desk.engine.logs.add(desk.engine, "job", msgspec.msgpack.encode({"message": SECRET}))
    assert str(error_of(desk, cmd, {"id": "job"})) == "Superuser access required."
    assert error_of(desk, cmd, {"id": "unknown"}) is None


WHOLE: list[tuple[str, dict[str, Any]]] = [
    ("Metrics", {}),
    ("RegisterWorker", {"name": "w"}),
    ("RegisterWorker", {"name": "w", "queues": "mine"}),
    ("Heartbeat", {"id": "everywhere"}),
    ("UnregisterWorker", {"workerId": "everywhere"}),
    ("RegisterWorker", {"name": "w", "queues": ["mine"], "workerId": "everywhere"}),
]


@pytest.mark.parametrize(("cmd", "fields"), WHOLE)
def test_what_names_no_queue_concerns_the_whole_server(cmd: str, fields: dict[str, Any]) -> None:
    desk = scene()
    desk.do("RegisterWorker", name="w", queues=None, workerId="everywhere")
    grant(desk, *EVERYTHING, pattern="*")
    assert str(error_of(desk, cmd, fields)) == "Superuser access required."


@pytest.mark.parametrize(
    ("cmd", "fields"),
    [
        ("GetJob", {"id": "nowhere"}),
        ("ACK", {"id": "nowhere"}),
        ("CronDelete", {"name": "nowhere"}),
        ("Heartbeat", {"id": "nowhere"}),
        ("GetJobByCustomId", {"customId": "nowhere"}),
    ],
)
def test_what_does_not_exist_is_told_as_to_anybody(cmd: str, fields: dict[str, Any]) -> None:
    desk = scene()
    assert error_of(desk, cmd, fields) is None
    assert b"not found" in desk.said


def test_a_user_who_was_deleted_may_do_nothing() -> None:
    desk = scene()
    grant(desk, *EVERYTHING, pattern="*")
    users.delete(desk.engine, "bob")
    assert str(error_of(desk, "Count", {"queue": "secret"})) == "Access denied."


def test_every_command_of_the_wire_but_auth_is_among_these() -> None:
    free = (Permission.SUPERUSER, Permission.OPEN, Permission.LIST)
    tried = {row.name for row in COMMANDS.values() if row in GRANTED or row.permission in free}
    assert tried | {"Auth"} == COMMANDS.keys()
