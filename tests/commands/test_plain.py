"""Jobs that ask for nothing become the same messages, whichever shape they were read as."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import msgpack
import msgspec
import pytest
from tests.commands.desk import Desk, packed

from tandemq.commands import fields as check
from tandemq.commands.plain import PlainPush, PlainPushMany
from tandemq.commands.push import BATCH_LIMIT, Push, PushMany
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
PLAIN = PlainPush, PlainPushMany
SHAPES = {"typed": PLAIN, "tolerant": (Push, PushMany)}


def alike(cmd: str, **fields: Any) -> list[Message]:
    """What a request makes in either shape, which must be the same."""
    found = []
    for way, shapes in SHAPES.items():
        desk = Desk(way)
        assert type(desk.read(packed(cmd, **fields))) is shapes[cmd == "PUSHB"]
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


@pytest.mark.parametrize("queue", ["", "a b", "x" * (check.QUEUE_LENGTH + 1)])
@pytest.mark.parametrize(("cmd", "fields"), [("PUSH", {}), ("PUSHB", {"jobs": [{}]})])
def test_the_name_of_a_queue_is_checked(queue: str, cmd: str, fields: dict[str, Any]) -> None:
    desk = Desk()
    assert type(desk.read(packed(cmd, queue=queue, **fields))) in PLAIN
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
