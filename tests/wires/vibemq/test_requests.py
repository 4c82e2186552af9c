"""From fields to typed requests: each command, what it lacks, and who is told what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.wires.vibemq.peers import ADMIN, REQUESTS

from tandemq.commands.broker import Ack, Nack, Publish, Subscribe, Unsubscribe
from tandemq.commands.greeting import Connect, Disconnect, Ping
from tandemq.commands.queues import CreateQueue, DeleteQueue, ListQueues, QueueInfo
from tandemq.commands.table import BROKER
from tandemq.model.broker import Policy
from tandemq.model.errors import BadPayload, BadRequest, QueueRequired, UnknownCommand
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import NAMES, Kind
from tandemq.wires.vibemq.levels import HIGH, NORMAL
from tandemq.wires.vibemq.requests import Refusal, Ticket, read


def asked(kind: int | str, nack: bool = False, **fields: Any) -> Any:
    payload = fields.pop("payload", None)
    if payload is not None and not isinstance(payload, bytes):
        payload = json.dumps(payload).encode()
    return read(Frame(kind, fields.pop("id", "m"), payload=payload, **fields), nack=nack)


def about_q(make: Any, reply: Kind, **more: Any) -> Any:
    """A request about the queue named ``q``."""
    return make(queue="q", req_id=Ticket("m", reply, "q"), **more)


IN_Q = {"queue": "q"}
BOB = {"username": "bob"}
EVERY: dict[Kind, tuple[dict[str, Any], Any]] = {
    Kind.CONNECT: ({}, Connect(req_id=Ticket("m", Kind.CONNECT_ACK))),
    Kind.DISCONNECT: ({}, Disconnect(req_id=Ticket("m"))),
    Kind.PING: ({}, Ping(req_id=Ticket("m", Kind.PONG))),
    Kind.PUBLISH: (IN_Q, about_q(Publish, Kind.PUBLISH_ACK, id="m")),
    Kind.SUBSCRIBE: (IN_Q, about_q(Subscribe, Kind.SUBSCRIBE_ACK)),
    Kind.UNSUBSCRIBE: (IN_Q, about_q(Unsubscribe, Kind.UNSUBSCRIBE_ACK)),
    Kind.ACK: ({}, Ack(messages=["m"], req_id=Ticket("m"))),
    Kind.NACK: ({}, Nack(message="m", req_id=Ticket("m"))),
    Kind.CREATE_QUEUE: (IN_Q, about_q(CreateQueue, Kind.CREATE_QUEUE)),
    Kind.DELETE_QUEUE: (IN_Q, about_q(DeleteQueue, Kind.DELETE_QUEUE)),
    Kind.QUEUE_INFO: (IN_Q, about_q(QueueInfo, Kind.QUEUE_INFO)),
    Kind.LIST_QUEUES: ({}, ListQueues(req_id=Ticket("m", Kind.LIST_QUEUES))),
    **{
        kind: ({"payload": BOB}, REQUESTS[kind](payload=BOB, req_id=Ticket("m", kind)))
        for kind in ADMIN
        if kind in REQUESTS
    },
}
EACH = pytest.mark.parametrize(
    ("kind", "fields", "request_"),
    [pytest.param(kind, *case, id=NAMES[kind]) for kind, case in EVERY.items()],
)
FROM_SERVERS = set(Kind) - set(EVERY) - set(ADMIN)


def test_every_request_is_tried_here() -> None:
    assert {NAMES[kind] for kind in EVERY} == set(BROKER)
    assert {NAMES[kind] for kind in FROM_SERVERS} == {
        "ConnectAck", "Pong", "PublishAck", "SubscribeAck", "UnsubscribeAck", "Deliver", "Error",
    }  # fmt: skip


@EACH
def test_a_frame_becomes_its_request(kind, fields, request_) -> None:
    assert asked(kind, True, **fields) == request_
    assert REQUESTS[kind] is type(request_)


@EACH
def test_members_that_a_command_does_not_use_do_no_harm(kind, fields, request_) -> None:
    more = {"queue": "other", "headers": {"x": "y"}, "code": "c", "text": "t", **fields}
    assert type(asked(kind, True, **more)) is type(request_)


# -- what is no request --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [77, 255, -1, 2**70, *sorted(FROM_SERVERS)])
def test_a_type_that_no_client_sends_is_unknown(kind: int) -> None:
    refusal = asked(kind)
    assert type(refusal.error) is UnknownCommand
    assert str(refusal.error) == f"Unknown command type: {NAMES.get(kind, kind)}"
    assert (refusal.req_id, refusal.formed, refusal.row) == (Ticket("m"), True, None)


def test_an_unknown_name_is_told_to_anybody() -> None:
    refusal = asked("teleport")
    assert str(refusal.error) == "Unknown command type: teleport"
    assert (refusal.req_id, refusal.formed) == (Ticket("m"), False)


def test_nack_is_unknown_unless_both_sides_know_it() -> None:
    assert str(asked(Kind.NACK).error) == "Unknown command type: Nack"
    assert asked(Kind.NACK, True) == Nack(message="m", req_id=Ticket("m"))


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
    assert (refusal.req_id, refusal.formed, refusal.row) == (Ticket("m"), True, BROKER[NAMES[kind]])


@pytest.mark.parametrize("payload", ["text", 5, [], [{}]], ids=str)
def test_a_bad_payload_names_the_request_it_would_have_been(payload: Any) -> None:
    refusal = asked(Kind.CREATE_QUEUE, queue="q", payload=payload)
    assert type(refusal.error) is BadPayload
    row = BROKER["CreateQueue"]
    assert (refusal.req_id, refusal.formed, refusal.row) == (Ticket("m"), True, row)


@pytest.mark.parametrize("kind", [Kind.PING, Kind.PUBLISH, 77, "teleport", Kind.PUBLISH_ACK])
@pytest.mark.parametrize(
    ("fields", "id"),
    [({"id": ""}, None), ({"queue": "a b"}, "m"), ({"headers": {"": "v"}}, "m")],
)
def test_the_rules_come_before_everything_else(kind, fields, id) -> None:
    refusal = asked(kind, **fields)
    assert type(refusal.error) is BadRequest
    assert (refusal.req_id, refusal.formed, refusal.row) == (Ticket(id), False, None)


# -- publish -------------------------------------------------------------------------------------


def test_a_message_keeps_payload_and_headers() -> None:
    headers = {"priority": "high", "correlationId": "c", "x": ""}
    found = asked(Kind.PUBLISH, queue="q", payload=b" 1.50 ", headers=headers)
    assert found == about_q(
        Publish, Kind.PUBLISH_ACK, id="m", payload=b" 1.50 ", headers=headers, level=HIGH
    )
    assert asked(Kind.PUBLISH, queue="q", headers={}).headers == {}


LEVELS = {"low": 0, "normal": 1, "high": 2, "critical": 3, "0": 0, "1": 1, "2": 2, "3": 3}


@pytest.mark.parametrize(("word", "level"), LEVELS.items())
@pytest.mark.parametrize("spell", [str, str.upper, str.title, " {} ".format])
def test_a_priority_is_a_name_or_a_number(word, level, spell) -> None:
    found = asked(Kind.PUBLISH, queue="q", headers={"priority": spell(word)})
    assert found.level == level


@pytest.mark.parametrize("word", ["sideways", "", "9", "-1", "Low,High", "1.0", "4", "²"])
def test_any_other_priority_is_normal(word: str) -> None:
    assert asked(Kind.PUBLISH, queue="q", headers={"priority": word}).level == NORMAL
    assert asked(Kind.PUBLISH, queue="q", headers={"Priority": "high"}).level == NORMAL


# -- the other headers ---------------------------------------------------------------------------


def test_connect_says_who_is_asking_and_what_the_client_can_do() -> None:
    headers = {
        "authToken": "t",
        "authUsername": "u",
        "authPassword": "p",
        "supported-compression": "gzip",
        "supported-extensions": "nack",
    }
    assert asked(Kind.CONNECT, headers=headers) == Connect(
        token="t",
        username="u",
        password="p",
        req_id=Ticket("m", Kind.CONNECT_ACK, None, "gzip", "nack"),
    )


@pytest.mark.parametrize("header", ["authToken", "authUsername", "authPassword"])
def test_an_empty_credential_is_none(header: str) -> None:
    nobody = Connect(req_id=Ticket("m", Kind.CONNECT_ACK))
    assert asked(Kind.CONNECT, headers={header: ""}) == nobody
    assert asked(Kind.CONNECT, headers={header.lower(): "x"}) == nobody


@pytest.mark.parametrize("kind", [Kind.ACK, Kind.NACK])
@pytest.mark.parametrize(
    ("headers", "message"), [(None, "m"), ({"messageId": "x"}, "x"), ({"messageId": ""}, "m")]
)
def test_a_message_is_settled_by_its_id_or_by_a_header(kind, headers, message) -> None:
    found = asked(kind, True, headers=headers)
    named = found.messages if kind is Kind.ACK else [found.message]
    assert (found.req_id, named) == (Ticket("m"), [message])


def test_a_message_may_come_back_later() -> None:
    assert asked(Kind.NACK, True, headers={"delay": "1500"}).delay == 1500


@pytest.mark.parametrize("delay", ["", "-1", "1.5", "soon", "9" * 16, "\u0663"])
def test_a_delay_is_a_whole_number(delay: str) -> None:
    refusal = asked(Kind.NACK, True, headers={"delay": delay})
    assert isinstance(refusal, Refusal)
    assert type(refusal.error) is BadRequest
    assert (refusal.req_id, refusal.row) == (Ticket("m"), BROKER["Nack"])


def test_a_queue_is_made_with_options_from_payload_or_headers() -> None:
    wanted = about_q(CreateQueue, Kind.CREATE_QUEUE, policy=Policy(max_size=7))
    assert asked(Kind.CREATE_QUEUE, queue="q", payload={"maxQueueSize": 7}) == wanted
    assert asked(Kind.CREATE_QUEUE, queue="q", headers={"maxQueueSize": "7"}) == wanted


@pytest.mark.parametrize(("said", "window"), [("1", 1), ("1000", 1000), ("5000", 1000)])
def test_a_subscriber_says_how_much_it_takes_at_a_time(said: str, window: int) -> None:
    request = asked(Kind.SUBSCRIBE, queue="q", headers={"prefetch": said})
    assert request.window == window


@pytest.mark.parametrize("said", ["0", "-1", "1.5", "many", "", "1" * 10, "\u0661"])
def test_a_prefetch_that_makes_no_sense_is_refused(said: str) -> None:
    refusal = asked(Kind.SUBSCRIBE, queue="q", headers={"prefetch": said})
    assert isinstance(refusal, Refusal)
    assert str(refusal.error) == "prefetch must be a whole number, 1 or more."
