"""Jobs that ask for nothing become the same messages, whichever shape they were read as."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import msgpack
import msgspec
import pytest
from tests.commands.desk import Desk, packed

from tandemq.commands import fields as check
from tandemq.commands.plain import PlainFlow, PlainPush, PlainPushMany
from tandemq.commands.push import BATCH_LIMIT, Push, PushMany
from tandemq.commands.pushf import PushFlow
from tandemq.model.message import Message

JOBS: list[dict[str, Any]] = [
    {},
    {"data": {"x": 1}},
    {"name": "n"},
    {"data": {"x": [1.5, "\xcf"]}, "name": "n"},
    {"data": {"name": "inside", "x": 1}},
    {"data": {"name": "inside"}, "name": "outside"},
    {"data": {"name": 5}},
]
PLAIN = {"PUSH": PlainPush, "PUSHB": PlainPushMany, "PUSHF": PlainFlow}
SHAPES = {"typed": PLAIN, "tolerant": {"PUSH": Push, "PUSHB": PushMany, "PUSHF": PushFlow}}


def alike(cmd: str, **fields: Any) -> list[Message]:
    """What a request makes in either shape, which must be the same."""
    found = []
    for way, shapes in SHAPES.items():
        desk = Desk(way)
        assert type(desk.read(packed(cmd, **fields))) is shapes[cmd]
        desk.do(cmd, **fields)
        found.append(list(desk.engine.messages.values()))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_the_same_message_in_either_shape(job: dict[str, Any]) -> None:
    (m,) = alike("PUSH", queue="q", **job)
    assert m.name == job.get("name", "inside" if b"inside" in msgpack.packb(job) else "default")


def test_a_batch_is_the_same_messages_in_either_shape() -> None:
    assert len(alike("PUSHB", queue="q", jobs=JOBS)) == len(JOBS)


def planned(id: str, queue: str = "q", **said: Any) -> dict[str, Any]:
    return {"id": id, "queue": queue, "input": {"data": {}, "name": "n", **said}}


OF_P = {"__parentId": "p", "__parentQueue": "q"}
FLOWS: list[list[dict[str, Any]]] = [
    [],
    [planned("a"), planned("b", queue="other")],
    [planned("a"), planned("b", dependsOn=["a"]), planned("c", dependsOn=["a", "b"])],
    [
        planned("p", data={"__childrenIds": ["a"]}, dependsOn=["a"], childrenIds=["a"]),
        planned("a", data=OF_P, parentId="p"),
    ],
    [planned("a", dependsOn=[], childrenIds=None, parentId=None)],
    [{"id": "a", "queue": "q", "input": {"data": {}}}],
]
BAD_FLOWS: list[list[dict[str, Any]]] = [
    [planned("a"), planned("a")],
    [planned("a"), planned("b:c")],
    [planned("")],
    [planned("a"), planned("b", queue="no good")],
    [planned("a", data=5)],
    [planned("a", data=None)],
    [{"id": "a", "queue": "q", "input": {}}],
    [planned("a", parentId="")],
    [planned("a", dependsOn=[""])],
    [planned("a", childrenIds=["b", ""])],
    [planned("a", parentId="b"), planned("b")],
    [planned("a", dependsOn=["b"])],
    [planned("a", dependsOn=["b", "b"]), planned("b")],
    [planned("a", dependsOn=["b"]), planned("b", dependsOn=["a"])],
]


@pytest.mark.parametrize("jobs", FLOWS)
def test_a_flow_is_the_same_messages_in_either_shape(jobs: list[dict[str, Any]]) -> None:
    assert len(alike("PUSHF", jobs=jobs)) == len(jobs)


@pytest.mark.parametrize("jobs", BAD_FLOWS)
def test_a_flow_is_refused_in_the_same_words_in_either_shape(jobs: list[dict[str, Any]]) -> None:
    words = set()
    for way, shapes in SHAPES.items():
        desk = Desk(way)
        if way == "typed":
            assert type(desk.read(packed("PUSHF", jobs=jobs))) is shapes["PUSHF"]
        words.add(desk.refused("PUSHF", jobs=jobs))
        assert not desk.engine.messages
    assert len(words) == 1


@pytest.mark.parametrize("queue", ["", "a b", "x" * (check.QUEUE_LENGTH + 1)])
@pytest.mark.parametrize(("cmd", "fields"), [("PUSH", {}), ("PUSHB", {"jobs": [{}]})])
def test_the_name_of_a_queue_is_checked(queue: str, cmd: str, fields: dict[str, Any]) -> None:
    desk = Desk()
    assert type(desk.read(packed(cmd, queue=queue, **fields))) is PLAIN[cmd]
    assert desk.refused(cmd, queue=queue, **fields).startswith("Queue name")
    assert not desk.engine.queues


@pytest.mark.parametrize("name", ["", "n" * (check.NAME_LENGTH + 1)])
def test_a_name_in_the_data_is_checked_and_its_place_is_told(name: str) -> None:
    desk = Desk()
    job = {"data": {"name": name}}
    assert type(desk.read(packed("PUSHB", queue="q", jobs=[{}, job]))) is PlainPushMany
    assert desk.refused("PUSH", queue="q", **job) == check.BAD_NAME
    assert desk.refused("PUSHB", queue="q", jobs=[{}, job]) == f"jobs[1]: {check.BAD_NAME}"
    assert not desk.engine.messages


def test_an_empty_batch_leaves_no_queue_behind() -> None:
    desk = Desk()
    assert desk.do("PUSHB", queue="q", jobs=[]) == {"ids": []}
    assert not desk.engine.queues


def test_a_batch_beyond_the_limit_is_not_read_as_plain() -> None:
    for size, fits in ((BATCH_LIMIT, True), (BATCH_LIMIT + 1, False)):
        body = packed("PUSHB", queue="q", jobs=[{}] * size)
        with nullcontext() if fits else pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(body, type=PlainPushMany)


def test_who_waits_is_served_from_a_plain_batch() -> None:
    desk = Desk()
    assert desk.waits("PULL", queue="q", timeout=1000)
    ids = desk.do("PUSHB", queue="q", jobs=[{"data": 1}, {"data": 2}])["ids"]
    ((_, answer),) = desk.told()
    assert answer["job"]["id"] == ids[0]
