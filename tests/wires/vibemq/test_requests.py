"""From fields to typed requests: each command, what it lacks, and who is told what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tandemq.model.errors import BadPayload, BadRequest, QueueRequired, UnknownCommand
from tandemq.wires.vibemq import requests as r
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import NAMES, Kind
from tandemq.wires.vibemq.queues import QueueOptions
from tandemq.wires.vibemq.requests import Refusal, read


def asked(kind: int | str, nack: bool = False, **fields: Any) -> Any:
    payload = fields.pop("payload", None)
    if payload is not None and not isinstance(payload, bytes):
        payload = json.dumps(payload).encode()
    return read(Frame(kind, fields.pop("id", "m"), payload=payload, **fields), nack=nack)


BOB = {"username": "bob"}
EVERY: list[tuple[dict[str, Any], r.Request]] = [
    ({}, r.Connect("m")),
    ({}, r.Disconnect("m")),
    ({}, r.Ping("m")),
    ({"queue": "q"}, r.Publish("m", "q")),
    ({"queue": "q"}, r.Subscribe("m", "q")),
    ({"queue": "q"}, r.Unsubscribe("m", "q")),
    ({}, r.Ack("m", "m")),
    ({}, r.Nack("m", "m")),
    ({"queue": "q"}, r.CreateQueue("m", "q")),
    ({"queue": "q"}, r.DeleteQueue("m", "q")),
    ({"queue": "q"}, r.QueueInfo("m", "q")),
    ({}, r.ListQueues("m")),
    ({"payload": {**BOB, "password": "p"}}, r.AdminCreateUser("m", "bob", "p")),
    ({"payload": BOB}, r.AdminDeleteUser("m", "bob")),
    ({"payload": {**BOB, "newPassword": "p"}}, r.AdminChangePassword("m", "bob", "p")),
    (
        {"payload": {**BOB, "queuePattern": "*", "operations": ["publish"]}},
        r.AdminGrantPermission("m", "bob", "*", ("Publish",)),
    ),
    ({"payload": {**BOB, "queuePattern": "*"}}, r.AdminRevokePermission("m", "bob", "*")),
    ({}, r.AdminListUsers("m")),
    ({"payload": BOB}, r.AdminGetUserPermissions("m", "bob")),
]
FROM_SERVERS = set(Kind) - {request.kind for _, request in EVERY}


def test_every_request_is_tried_here() -> None:
    assert {type(request) for _, request in EVERY} == set(r.BY_KIND.values())
    assert {NAMES[kind] for kind in FROM_SERVERS} == {
        "ConnectAck", "Pong", "PublishAck", "SubscribeAck", "UnsubscribeAck", "Deliver", "Error",
    }  # fmt: skip


@pytest.mark.parametrize(("fields", "request_"), EVERY, ids=lambda value: type(value).__name__)
def test_a_frame_becomes_its_request(fields, request_) -> None:
    assert asked(request_.kind, True, **fields) == request_
    assert r.BY_KIND[request_.kind] is type(request_)


@pytest.mark.parametrize(("fields", "request_"), EVERY, ids=lambda value: type(value).__name__)
def test_members_that_a_command_does_not_use_do_no_harm(fields, request_) -> None:
    more = {"queue": "other", "headers": {"x": "y"}, "code": "c", "text": "t", **fields}
    found = asked(request_.kind, True, **more)
    assert type(found) is type(request_)


# -- what is no request --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [77, 255, -1, 2**70, *sorted(FROM_SERVERS)])
def test_a_type_that_no_client_sends_is_unknown(kind: int) -> None:
    refusal = asked(kind)
    assert type(refusal.error) is UnknownCommand
    assert str(refusal.error) == f"Unknown command type: {NAMES.get(kind, kind)}"
    assert (refusal.id, refusal.formed, refusal.of) == ("m", True, None)


def test_an_unknown_name_is_told_to_anybody() -> None:
    refusal = asked("teleport")
    assert str(refusal.error) == "Unknown command type: teleport"
    assert (refusal.id, refusal.formed) == ("m", False)


def test_nack_is_unknown_unless_both_sides_know_it() -> None:
    assert str(asked(Kind.NACK).error) == "Unknown command type: Nack"
    assert asked(Kind.NACK, True) == r.Nack("m", "m")


WITHOUT_QUEUE = {
    Kind.PUBLISH: "publish",
    Kind.SUBSCRIBE: "subscribe",
    Kind.UNSUBSCRIBE: "unsubscribe",
    Kind.CREATE_QUEUE: "CreateQueue",
    Kind.DELETE_QUEUE: "DeleteQueue",
    Kind.QUEUE_INFO: "QueueInfo",
}


@pytest.mark.parametrize(("kind", "word"), WITHOUT_QUEUE.items())
def test_a_command_for_a_queue_needs_its_name(kind: Kind, word: str) -> None:
    refusal = asked(kind)
    assert type(refusal.error) is QueueRequired
    assert str(refusal.error) == f"Queue name is required for {word}."
    assert (refusal.id, refusal.formed, refusal.of) == ("m", True, r.BY_KIND[kind])


@pytest.mark.parametrize("kind", [*range(50, 55), 56, Kind.CREATE_QUEUE])
@pytest.mark.parametrize("payload", ["text", 5, [], [{}]], ids=str)
def test_a_bad_payload_names_the_request_it_would_have_been(kind: int, payload: Any) -> None:
    refusal = asked(kind, queue="q", payload=payload)
    assert type(refusal.error) is BadPayload
    assert (refusal.id, refusal.formed, refusal.of) == ("m", True, r.BY_KIND[kind])


@pytest.mark.parametrize("kind", [Kind.PING, Kind.PUBLISH, 77, "teleport", Kind.PUBLISH_ACK])
@pytest.mark.parametrize(
    ("fields", "id"),
    [({"id": ""}, None), ({"queue": "a b"}, "m"), ({"headers": {"": "v"}}, "m")],
)
def test_the_rules_come_before_everything_else(kind, fields, id) -> None:
    refusal = asked(kind, **fields)
    assert type(refusal.error) is BadRequest
    assert (refusal.id, refusal.formed, refusal.of) == (id, False, None)


# -- publish -------------------------------------------------------------------------------------


def test_a_message_keeps_payload_and_headers() -> None:
    headers = {"priority": "high", "correlationId": "c", "x": ""}
    found = asked(Kind.PUBLISH, queue="q", payload=b" 1.50 ", headers=headers)
    assert found == r.Publish("m", "q", b" 1.50 ", headers, r.HIGH)
    assert asked(Kind.PUBLISH, queue="q", headers={}).headers == {}


LEVELS = {"low": 0, "normal": 1, "high": 2, "critical": 3, "0": 0, "1": 1, "2": 2, "3": 3}


@pytest.mark.parametrize(("word", "level"), LEVELS.items())
@pytest.mark.parametrize("spell", [str, str.upper, str.title, " {} ".format])
def test_a_priority_is_a_name_or_a_number(word, level, spell) -> None:
    found = asked(Kind.PUBLISH, queue="q", headers={"priority": spell(word)})
    assert found.priority == level


@pytest.mark.parametrize("word", ["sideways", "", "9", "-1", "Low,High", "1.0", "4", "²"])
def test_any_other_priority_is_normal(word: str) -> None:
    assert asked(Kind.PUBLISH, queue="q", headers={"priority": word}).priority == r.NORMAL
    assert asked(Kind.PUBLISH, queue="q", headers={"Priority": "high"}).priority == r.NORMAL


# -- the other headers ---------------------------------------------------------------------------


def test_connect_says_who_is_asking_and_what_the_client_can_do() -> None:
    headers = {
        "authToken": "t",
        "authUsername": "u",
        "authPassword": "p",
        "supported-compression": "gzip",
        "supported-extensions": "nack",
    }
    assert asked(Kind.CONNECT, headers=headers) == r.Connect("m", "t", "u", "p", "gzip", "nack")


@pytest.mark.parametrize("header", ["authToken", "authUsername", "authPassword"])
def test_an_empty_credential_is_none(header: str) -> None:
    assert asked(Kind.CONNECT, headers={header: ""}) == r.Connect("m")
    assert asked(Kind.CONNECT, headers={header.lower(): "x"}) == r.Connect("m")


@pytest.mark.parametrize("kind", [Kind.ACK, Kind.NACK])
@pytest.mark.parametrize(
    ("headers", "message"), [(None, "m"), ({"messageId": "x"}, "x"), ({"messageId": ""}, "m")]
)
def test_a_message_is_settled_by_its_id_or_by_a_header(kind, headers, message) -> None:
    found = asked(kind, True, headers=headers)
    assert (found.id, found.message) == ("m", message)


def test_a_message_may_come_back_later() -> None:
    assert asked(Kind.NACK, True, headers={"delay": "1500"}).delay == 1500


@pytest.mark.parametrize("delay", ["", "-1", "1.5", "soon", "9" * 16, "\u0663"])
def test_a_delay_is_a_whole_number(delay: str) -> None:
    refusal = asked(Kind.NACK, True, headers={"delay": delay})
    assert isinstance(refusal, Refusal)
    assert (type(refusal.error), refusal.id, refusal.of) == (BadRequest, "m", r.Nack)


def test_a_queue_is_made_with_options_from_payload_or_headers() -> None:
    wanted = QueueOptions(max_queue_size=7)
    found = asked(Kind.CREATE_QUEUE, queue="q", payload={"maxQueueSize": 7})
    assert found == r.CreateQueue("m", "q", wanted)
    assert asked(Kind.CREATE_QUEUE, queue="q", headers={"maxQueueSize": "7"}).options == wanted
