"""The client's side of a connection, spoken with the server's side."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wires.vibemq.peers import only

from tandemq.commands.broker import Ack, Nack, Publish, Subscribe
from tandemq.wires.sniff import Wire, sniff
from tandemq.wires.vibemq import binary_codec, compression, json_codec
from tandemq.wires.vibemq.caller import UNREADABLE, Caller
from tandemq.wires.vibemq.frames import Frame, Unsendable
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.session import Session, delivery

BOTH = pytest.mark.parametrize("wire", [Wire.JSON, Wire.BINARY], ids=lambda wire: wire.value)
LONG = b'"' + b"x" * 5000 + b'"'


def pair(wire: Wire, *, session: Session | None = None, **options: Any) -> tuple[Caller, Session]:
    """Both sides of a connection that was welcomed."""
    caller = Caller(binary=wire is Wire.BINARY, **options)
    session = session or Session(wire)
    id, said = caller.connect()
    request = only(session, said)
    (answer,) = caller.receive(session.answer(None, request.req_id))
    assert (answer.kind, answer.id) == (Kind.CONNECT_ACK, id)
    caller.welcome(answer)
    return caller, session


@BOTH
def test_its_first_frame_is_recognised_as_its_wire(wire: Wire) -> None:
    _, said = Caller(binary=wire is Wire.BINARY).connect()
    assert sniff(said[:6]) is wire


@BOTH
def test_what_it_asks_is_understood_and_answers_have_the_same_id(wire: Wire) -> None:
    caller, session = pair(wire)
    id, said = caller.ask(Kind.PUBLISH, "q", b'{"a":1}', {"priority": "high"})
    request = only(session, said)
    assert isinstance(request, Publish)
    assert (request.id, request.queue, request.payload, request.level) == (id, "q", b'{"a":1}', 2)
    (answer,) = caller.receive(session.answer(None, request.req_id))
    assert answer == Frame(Kind.PUBLISH_ACK, id, "q")
    assert isinstance(only(session, caller.ask(Kind.SUBSCRIBE, "q")[1]), Subscribe)
    assert caller.ask(Kind.PUBLISH, "q", id="mine")[0] == "mine"


@BOTH
def test_messages_are_settled_by_their_id(wire: Wire) -> None:
    caller, session = pair(wire)
    (message,) = caller.receive(session.form.deliver(delivery("m", "q", b"1", {"k": "v"})))
    assert message == Frame(Kind.DELIVER, "m", "q", b"1", {"k": "v"})
    ack = only(session, caller.ack(message.id))
    assert isinstance(ack, Ack)
    assert ack.messages == ["m"]
    nack = only(session, caller.give_back(message.id, 250))
    assert isinstance(nack, Nack)
    assert (nack.message, nack.delay) == ("m", 250)


@BOTH
@pytest.mark.parametrize("offers", [True, False])
def test_giving_back_is_agreed_on_only_where_it_was_offered(wire: Wire, offers: bool) -> None:
    caller, session = pair(wire, nack=offers)
    assert caller.nack is session.nack is offers


def test_a_server_that_confirms_nothing_is_not_given_back_to() -> None:
    caller = Caller()
    caller.welcome(Frame(Kind.CONNECT_ACK, "x"))
    assert not caller.nack


@BOTH
@pytest.mark.parametrize(
    ("login", "headers"),
    [
        ({}, None),
        ({"token": "t"}, {"authToken": "t"}),
        ({"username": "u", "password": "p"}, {"authUsername": "u", "authPassword": "p"}),
    ],
)
def test_it_says_who_it_is(
    wire: Wire, login: dict[str, str], headers: dict[str, str] | None
) -> None:
    binary = wire is Wire.BINARY
    _, said = Caller(binary=binary, nack=False, compressions=()).connect(**login)
    decode = binary_codec.decode if binary else json_codec.decode
    assert decode(said[5 if binary else 4 :]).headers == headers


@pytest.mark.parametrize("algorithm", compression.AVAILABLE)
def test_long_frames_are_compressed_both_ways_as_agreed(algorithm: str) -> None:
    caller, session = pair(Wire.BINARY, compressions=("none", algorithm))
    assert caller.compressed == algorithm
    id, said = caller.ask(Kind.PUBLISH, "q", LONG)
    assert len(said) < 1000
    assert only(session, said).payload == LONG
    answer = session.form.deliver(delivery(id, "q", LONG))
    assert len(answer) < 1000
    assert caller.receive(answer)[0].payload == LONG
    short = caller.ask(Kind.PUBLISH, "q", b"1")[1]
    assert short[4] == 0


def test_without_a_common_algorithm_nothing_is_compressed() -> None:
    caller, _ = pair(Wire.BINARY, session=Session(Wire.BINARY, compressions=()))
    assert caller.compressed is None
    assert caller.ask(Kind.PUBLISH, "q", LONG)[1][4] == 0


def test_an_algorithm_that_was_not_offered_is_not_used() -> None:
    caller = Caller(binary=True, compressions=("gzip",))
    caller.welcome(Frame(Kind.CONNECT_ACK, "x", headers={"negotiated-compression": "brotli"}))
    assert caller.compressed is None


@BOTH
def test_a_frame_without_sense_is_told_to_who_waits_for_it(wire: Wire) -> None:
    caller, session = pair(wire)
    deep = b"[" * 70 + b"]" * 70
    bad = session.form.write(Frame(Kind.LIST_QUEUES, "l", payload=deep))
    found = caller.receive(bad + session.form.write(Frame(Kind.PONG, "p")))
    assert [(f.kind, f.id, f.code) for f in found] == [
        (Kind.ERROR, "l", UNREADABLE),
        (Kind.PONG, "p", None),
    ]
    assert caller.broken is None


@BOTH
@pytest.mark.parametrize("size", [0, 2_000_000, 0xFFFF_FFFF])
def test_a_stream_that_makes_no_sense_is_given_up(wire: Wire, size: int) -> None:
    caller, session = pair(wire)
    good = session.form.write(Frame(Kind.PONG, "p"))
    assert [f.id for f in caller.receive(good + size.to_bytes(4, "big") + b"\0")] == ["p"]
    assert caller.broken is not None
    assert str(size) in caller.broken
    assert caller.receive(good) == []


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (Wire.JSON, b"\0\0\0\3abc"),
        (Wire.BINARY, b"\0\0\0\4\0\1\1\0\5"),
        (Wire.BINARY, b"\0\0\0\4\7\1\1\0\1"),
        (Wire.BINARY, b"\0\0\0\4\1nope"),
    ],
)
def test_a_frame_that_cannot_be_taken_apart_ends_it(wire: Wire, body: bytes) -> None:
    caller, _ = pair(wire)
    assert caller.receive(body) == []
    assert caller.broken is not None


def test_a_small_frame_cannot_grow_without_end() -> None:
    caller, session = pair(Wire.BINARY, compressions=("gzip",), limit=2000)
    caller.receive(session.form.write(Frame(Kind.DELIVER, "m", "q", LONG)))
    assert caller.broken is not None
    assert "2000" in caller.broken


@BOTH
def test_what_the_wire_cannot_say_is_refused(wire: Wire) -> None:
    caller, _ = pair(wire)
    with pytest.raises(Unsendable):
        caller.ask(Kind.PUBLISH, "q", b"1", {"half": "\ud800"})


@BOTH
@settings(deadline=None)
@given(data=st.data())
def test_frames_arrive_in_whatever_pieces_the_network_makes(wire: Wire, data: Any) -> None:
    caller, session = pair(wire)
    frames = [Frame(Kind.DELIVER, f"m{n}", "q", str(n).encode()) for n in range(5)]
    stream = b"".join(session.form.deliver(frame) for frame in frames)
    found: list[Frame] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += caller.receive(stream[:size])
        stream = stream[size:]
    assert found == frames
