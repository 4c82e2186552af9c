"""One connection's protocol: requests and answers on each wire, and when it ends."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wires.vibemq.peers import EACH, FORMS, connected, framed, only, packed, said, sent

from tandemq.commands.broker import Ack, Nack
from tandemq.commands.call import QueueShown
from tandemq.commands.greeting import Ping
from tandemq.model import errors as e
from tandemq.model.broker import Policy
from tandemq.model.outcome import Late
from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq.compression import GZIP, deflate
from tandemq.wires.vibemq.frames import MAX_MESSAGE, Frame
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.queues import facts
from tandemq.wires.vibemq.requests import Refusal, Ticket
from tandemq.wires.vibemq.session import Session, delivery

LISTED = Ticket("m", Kind.LIST_QUEUES)
PING = Ping(req_id=Ticket("m", Kind.PONG))

# -- a session from end to end ---------------------------------------------------------------------


@EACH
def test_each_request_gets_its_answer(wire: Wire) -> None:
    session = Session(wire)
    connect = only(session, sent(wire, Kind.CONNECT, "c"))
    assert said(wire, session.answer(None, connect.req_id)) == Frame(Kind.CONNECT_ACK, "c")
    for kind, reply in (
        (Kind.PUBLISH, Kind.PUBLISH_ACK),
        (Kind.SUBSCRIBE, Kind.SUBSCRIBE_ACK),
        (Kind.UNSUBSCRIBE, Kind.UNSUBSCRIBE_ACK),
        (Kind.CREATE_QUEUE, Kind.CREATE_QUEUE),
        (Kind.DELETE_QUEUE, Kind.DELETE_QUEUE),
        (Kind.QUEUE_INFO, Kind.QUEUE_INFO),
    ):
        request = only(session, sent(wire, kind, queue="q"))
        assert said(wire, session.answer(None, request.req_id)) == Frame(reply, "m", "q")
    ping = only(session, sent(wire, Kind.PING, "k", queue="q"))
    assert said(wire, session.answer(None, ping.req_id)) == Frame(Kind.PONG, "k")


@EACH
@pytest.mark.parametrize("value", [[], ["a", "b"], {"username": "bob"}, False, 0, ""])
def test_an_answer_may_carry_any_value(wire: Wire, value: Any) -> None:
    answer = said(wire, connected(wire).answer(value, LISTED))
    assert answer.kind == Kind.LIST_QUEUES
    assert json.loads(answer.payload or b"null") == value


@EACH
def test_a_queue_is_told_of_as_the_reference_tells(wire: Wire) -> None:
    session, shown = connected(wire), QueueShown("q", 1, 2, Policy(max_size=7, ttl=1500))
    request = only(session, sent(wire, Kind.QUEUE_INFO, queue="q"))
    answer = said(wire, session.answer(shown, request.req_id))
    assert answer == Frame(Kind.QUEUE_INFO, "m", "q", msgspec.json.encode(facts(shown)))


@pytest.mark.parametrize("kind", [Kind.DISCONNECT, Kind.ACK])
def test_what_is_not_answered_has_no_answer(kind: Kind) -> None:
    session = connected(Wire.JSON)
    request = only(session, sent(Wire.JSON, kind))
    with pytest.raises(AssertionError):
        session.answer(None, request.req_id)


@EACH
def test_an_answer_that_no_peer_reads_is_refused(wire: Wire) -> None:
    session = connected(wire)
    names = ["x" * 250] * 5000
    with pytest.raises(e.TooLarge) as caught:
        session.answer(names, LISTED)
    error = said(wire, session.refuse(caught.value, Ticket("m")))
    assert (error.kind, error.id, error.code) == (Kind.ERROR, "m", "SERVER_ERROR")


def test_a_large_answer_that_compresses_well_is_sent() -> None:
    session = connected(Wire.BINARY, "gzip")
    answer = session.answer(["x" * 250] * 5000, LISTED)
    assert len(answer) < MAX_MESSAGE
    assert len(json.loads(said(Wire.BINARY, answer).payload or b"")) == 5000


@EACH
def test_a_message_is_handed_out_with_what_its_publisher_gave(wire: Wire) -> None:
    session = connected(wire)
    publish = only(session, sent(wire, Kind.PUBLISH, queue="q", payload=b"1.0", headers={"a": "b"}))
    message = delivery(publish.id, publish.queue, publish.payload, publish.headers)
    assert session.form.deliver(message) == sent(
        wire, Kind.DELIVER, queue="q", payload=b"1.0", headers={"a": "b"}
    )


@EACH
def test_the_server_says_why_it_goes(wire: Wire) -> None:
    frame = said(wire, Session(wire).goodbye("server_shutdown"))
    assert (frame.kind, frame.headers) == (Kind.DISCONNECT, {"reason": "server_shutdown"})
    assert len(frame.id) == 32


# -- what had waited -------------------------------------------------------------------------------


def came_late(wire: Wire, session: Session, ticket: Ticket, reply: Any) -> Frame:
    data, found = session.late(Late(1, ticket, reply))
    assert found is ticket
    return said(wire, data)


@EACH
@pytest.mark.parametrize("reply", [None, True])
def test_a_publish_that_waited_is_confirmed(wire: Wire, reply: Any) -> None:
    session = connected(wire)
    ticket = only(session, sent(wire, Kind.PUBLISH, queue="q")).req_id
    assert came_late(wire, session, ticket, reply) == Frame(Kind.PUBLISH_ACK, "m", "q")


@EACH
@pytest.mark.parametrize(
    "reply", [[], ["a"], {"username": "bob"}, False, 0, 1, "", QueueShown("q", 1, 2, Policy())]
)
def test_a_late_answer_is_that_of_a_request_that_did_not_wait(wire: Wire, reply: Any) -> None:
    session = connected(wire)
    answer = came_late(wire, session, LISTED, reply)
    assert answer == said(wire, session.answer(reply, LISTED))
    assert answer.payload is not None


@EACH
def test_a_late_refusal_is_told_to_who_had_waited(wire: Wire) -> None:
    session = connected(wire)
    ticket = only(session, sent(wire, Kind.PUBLISH, "p", queue="q")).req_id
    error = came_late(wire, session, ticket, e.MustWait("q"))
    assert error == Frame(Kind.ERROR, "p", code="QUEUE_FULL", text="Queue 'q' is full.")


@EACH
def test_a_connect_that_waited_is_welcomed_unless_it_is_refused(wire: Wire) -> None:
    session, ticket = Session(wire), Ticket("c", Kind.CONNECT_ACK, extensions="nack")
    assert came_late(wire, session, ticket, e.BadCredentials("no")).code == "AUTH_FAILED"
    assert (session.welcomed, session.nack) == (False, False)
    answer = came_late(wire, session, ticket, None)
    assert answer == Frame(Kind.CONNECT_ACK, "c", headers={"negotiated-extensions": "nack"})
    assert (session.welcomed, session.nack) == (True, True)


# -- errors ----------------------------------------------------------------------------------------


@EACH
def test_an_error_has_the_id_of_its_request(wire: Wire) -> None:
    frame = said(wire, Session(wire).refuse(e.Unauthenticated(), Ticket("m")))
    assert frame == Frame(
        Kind.ERROR, "m", code="NOT_AUTHENTICATED", text="Please send a Connect command first."
    )


@EACH
@pytest.mark.parametrize("id", [None, ""])
def test_an_error_without_one_has_an_id_of_its_own(wire: Wire, id: str | None) -> None:
    assert len(said(wire, Session(wire).refuse(e.RateLimited(), Ticket(id))).id) == 32


@EACH
@pytest.mark.parametrize("text", ["x" * 200_000, "\ud800", "🚀" * 70_000, "", "{id} %s {"])
def test_an_error_can_always_be_told(wire: Wire, text: str) -> None:
    frame = said(wire, Session(wire).refuse(e.BadRequest(text), Ticket("m")))
    assert frame.code == "INVALID_MESSAGE"
    assert len(frame.text or "") <= 1000


@EACH
def test_a_bug_says_nothing_of_itself(wire: Wire) -> None:
    frame = said(wire, Session(wire).refuse(KeyError("secret"), Ticket("m")))
    assert (frame.code, frame.text) == ("SERVER_ERROR", "Internal server error.")


# -- casing ----------------------------------------------------------------------------------------


def text_of(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data[4:])
    return found


@pytest.mark.parametrize(
    ("first", "answer", "error"),
    [
        ('"connect"', "connectAck", "error"),
        ('"Connect"', "ConnectAck", "Error"),
        ('"CONNECT"', "ConnectAck", "Error"),
        ('"cONNECT"', "connectAck", "error"),
        ("0", "ConnectAck", "Error"),
    ],
)
def test_types_are_written_in_the_casing_of_the_first_frame(first, answer, error) -> None:
    session = Session(Wire.JSON)
    body = f'{{"id":"c","type":{first}}}'.encode()
    connect = only(session, len(body).to_bytes(4, "big") + body)
    assert text_of(session.answer(None, connect.req_id))["type"] == answer
    assert text_of(session.refuse(e.RateLimited()))["type"] == error
    for other in (b'{"type":"Ping","id":"k"}', b'{"type":"ping","id":"k"}'):
        ping = only(session, len(other).to_bytes(4, "big") + other)
        pong = text_of(session.answer(None, ping.req_id))
        assert pong["type"] == ("pong" if answer[0] == "c" else "Pong")


@pytest.mark.parametrize(
    "body", [b'{"type":"teleport"}', b'{"type":"ping","id":5}', b'{"type":"publish","queue":"a b"}']
)
def test_a_first_frame_that_is_refused_sets_the_casing_too(body: bytes) -> None:
    session = Session(Wire.JSON)
    refusal = only(session, len(body).to_bytes(4, "big") + body)
    assert text_of(session.refuse(refusal.error, refusal.req_id))["type"] == "error"


def test_before_any_frame_types_are_written_as_the_reference_writes_them() -> None:
    assert text_of(Session(Wire.JSON).refuse(e.Overloaded("full")))["type"] == "Error"


# -- extensions ------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("offer", ["nack", " NACK , other", "x,nack"])
def test_nack_is_confirmed_to_who_offers_it(wire: Wire, offer: str) -> None:
    session = Session(wire)
    assert not session.nack
    connect = only(session, sent(wire, Kind.CONNECT, headers={"supported-extensions": offer}))
    answer = said(wire, session.answer(None, connect.req_id))
    assert answer.headers == {"negotiated-extensions": "nack"}
    assert session.nack
    assert only(session, sent(wire, Kind.NACK)) == Nack(message="m", req_id=Ticket("m"))


@EACH
@pytest.mark.parametrize("offer", [None, "", "nacks", "n,ack"])
def test_nobody_else_sees_it(wire: Wire, offer: str | None) -> None:
    session, ticket = Session(wire), Ticket("c", Kind.CONNECT_ACK, extensions=offer)
    assert said(wire, session.answer(None, ticket)).headers is None
    assert str(only(session, sent(wire, Kind.NACK)).error) == "Unknown command type: Nack"


# -- cuts ------------------------------------------------------------------------------------------


@EACH
@given(cuts=st.lists(st.integers(0, 400), max_size=6))
def test_a_stream_may_be_cut_anywhere(wire: Wire, cuts: list[int]) -> None:
    frames = [
        sent(wire, Kind.CONNECT, "c"),
        sent(wire, Kind.PUBLISH, "p", queue="q", payload=b'"x"', headers={"a": "b"}),
        sent(wire, Kind.PING, "k"),
        sent(wire, Kind.ACK, "p"),
    ]
    if wire is Wire.BINARY:
        frames.append(packed(1, deflate(GZIP, frames[2][5:])))
    stream, session, found = b"".join(frames), Session(wire), []
    at = 0
    for cut in [*sorted(cuts), len(stream)]:
        cut = min(cut, len(stream))
        found += session.receive(stream[at:cut])
        at = cut
    assert found == [item for frame in frames for item in Session(wire).receive(frame)]
    assert not session.mid_frame


@EACH
def test_bytes_may_come_one_by_one(wire: Wire) -> None:
    session, stream = Session(wire), sent(wire, Kind.PING) * 2
    found = []
    for at in range(len(stream)):
        found += session.receive(stream[at : at + 1])
        assert session.mid_frame == bool((at + 1) % (len(stream) // 2))
    assert found == [PING, PING]


# -- the end ---------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("size", [0, MAX_MESSAGE + 1, 2**31, 2**32 - 1])
def test_a_length_out_of_bounds_ends_the_connection_at_its_fourth_byte(wire, size) -> None:
    session, prefix = Session(wire), size.to_bytes(4, "big")
    ping = sent(wire, Kind.PING)
    assert session.receive(ping + prefix[:3]) == [PING]
    refusal = only(session, prefix[3:])
    assert refusal.error.fatal
    assert (refusal.req_id, refusal.formed) == (Ticket(None), False)
    frame = said(wire, session.refuse(refusal.error, refusal.req_id))
    assert frame.code == "INVALID_MESSAGE"
    assert str(size) in (frame.text or "")
    assert session.receive(ping) == []
    assert not session.mid_frame


def test_a_body_of_one_byte_is_too_small_for_the_binary_wire() -> None:
    for wire in (Wire.BINARY, Wire.BINARY_1_0):
        assert only(Session(wire), b"\0\0\0\x01").error.fatal


@EACH
def test_the_limit_is_the_servers_and_holds_for_the_body(wire: Wire) -> None:
    frame = sent(wire, Kind.PING, "m" * 100)
    size = len(frame) - FORMS[wire].head
    assert only(Session(wire, limit=size), frame) == Ping(req_id=Ticket("m" * 100, Kind.PONG))
    refusal = only(Session(wire, limit=size - 1), frame)
    assert type(refusal.error) is e.FrameTooLarge


@EACH
def test_frames_behind_one_that_is_lost_are_not_read(wire: Wire) -> None:
    session, ping = Session(wire), sent(wire, Kind.PING)
    junk = b"\0\0\0\x05" + (b"\0" if wire is Wire.BINARY else b"") + b"hello"
    items = session.receive(ping + junk + ping)
    assert items[0] == PING
    assert len(items) == 2
    assert isinstance(items[1], Refusal)
    assert type(items[1].error) is e.Undecodable
    assert session.receive(ping) == []


@pytest.mark.parametrize("flag", [3, 4, 0x7B, 0xFF])
def test_an_unknown_flag_ends_the_connection(flag: int) -> None:
    refusal = only(connected(), packed(flag, b"hello"))
    assert refusal.error.fatal
    assert str(refusal.error).endswith(f"0x{flag:02X}.")


def wrong_on(wire: Wire) -> list[tuple[bytes, str]]:
    return [
        (sent(wire, 77) if wire is not Wire.JSON else framed(b'{"id":"m","type":77}'), UNKNOWN),
        (sent(wire, Kind.PUBLISH), "INVALID_QUEUE"),
        (sent(wire, Kind.PUBLISH, queue="a b"), INVALID),
        (sent(wire, Kind.CREATE_QUEUE, queue="q", payload=b'"text"'), "INVALID_PAYLOAD"),
        (sent(wire, Kind.PUBLISH, queue="q", payload=b"[" * 65 + b"]" * 65), INVALID),
        (sent(wire, Kind.PUBLISH, queue="q", payload=b'"\xff"'), INVALID),
        (sent(wire, Kind.PUBLISH, queue="q", payload=b'"\\ud800"'), INVALID),
    ]


UNKNOWN, INVALID = "UNKNOWN_COMMAND", "INVALID_MESSAGE"
WRONG = {
    Wire.BINARY: wrong_on(Wire.BINARY),
    Wire.BINARY_1_0: wrong_on(Wire.BINARY_1_0),
    Wire.JSON: [
        *wrong_on(Wire.JSON),
        (framed(b'{"id":"m","type":"teleport"}'), UNKNOWN),
        (framed(b'{"id":"m"}'), INVALID),
        (framed(b'{"id":"m","type":"ping","headers":{"n":null}}'), INVALID),
    ],
}


@EACH
def test_what_is_merely_wrong_is_told_to_its_sender_and_nothing_ends(wire: Wire) -> None:
    session = Session(wire)
    for data, code in WRONG[wire]:
        refusal = only(session, data)
        error = said(wire, session.refuse(refusal.error, refusal.req_id))
        assert (error.kind, error.id, error.code) == (Kind.ERROR, "m", code)
        assert not refusal.error.fatal
    assert only(session, sent(wire, Kind.PING)) == PING


@pytest.mark.parametrize("wire", [Wire.JSON, Wire.BINARY])
def test_acks_that_follow_each_other_are_one_request_once_a_connect_was_accepted(
    wire: Wire,
) -> None:
    acks = b"".join(sent(wire, Kind.ACK, id=id) for id in "abc")
    data = acks + sent(wire, Kind.PING) + acks
    stranger, known = Session(wire), Session(wire)
    known.answer(None, Ticket("c", Kind.CONNECT_ACK))
    for session in (stranger, known):
        session.receive(sent(wire, Kind.CONNECT))
    settled = [item.messages for item in stranger.receive(data) if isinstance(item, Ack)]
    assert settled == [["a"], ["b"], ["c"]] * 2
    first, ping, second = known.receive(data)
    assert (first.messages, ping, second.messages) == (["a", "b", "c"], PING, ["a", "b", "c"])
