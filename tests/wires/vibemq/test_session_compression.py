"""Compression as one session has it: what was agreed, when frames are opened, how far."""

from __future__ import annotations

import pytest
from tests.wires.vibemq.peers import connected, only, packed, said, sent

from tandemq.commands.broker import Publish
from tandemq.commands.greeting import Connect, Ping
from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq import binary_codec
from tandemq.wires.vibemq.compression import BROTLI, FLAGS, GZIP, deflate
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.requests import Refusal, Ticket
from tandemq.wires.vibemq.session import Packed, Session

LISTED = Ticket("m", Kind.LIST_QUEUES)
PING = Ping(req_id=Ticket("m", Kind.PONG))


@pytest.mark.parametrize(
    ("offer", "ours", "name"),
    [
        ("brotli,gzip", (GZIP, BROTLI), BROTLI),
        ("gzip,brotli", (GZIP, BROTLI), GZIP),
        ("brotli", (GZIP,), None),
        (None, (GZIP, BROTLI), None),
        ("brotli,gzip", (), None),
    ],
)
def test_the_answer_to_connect_names_what_was_agreed(offer, ours, name) -> None:
    session = Session(Wire.BINARY, compressions=ours, threshold=0)
    headers = None if offer is None else {"supported-compression": offer}
    connect = only(session, sent(Wire.BINARY, Kind.CONNECT, "c", headers=headers))
    answer = session.answer(None, connect.req_id)
    assert answer[4] == (0 if name is None else FLAGS[name])
    wanted = None if name is None else {"negotiated-compression": name}
    assert said(Wire.BINARY, answer) == Frame(Kind.CONNECT_ACK, "c", headers=wanted)


@pytest.mark.parametrize("wire", [Wire.JSON, Wire.BINARY_1_0])
def test_a_wire_without_flags_agrees_on_no_compression(wire: Wire) -> None:
    session = Session(wire, threshold=0)
    answer = session.answer(None, Ticket("c", Kind.CONNECT_ACK, compressions="gzip"))
    assert said(wire, answer) == Frame(Kind.CONNECT_ACK, "c")
    assert len(session.answer(["x" * 5000], LISTED)) > 5000


def test_a_second_connect_agrees_anew() -> None:
    session = connected(Wire.BINARY, "gzip", threshold=0)
    assert session.goodbye("x")[4] == 1
    session.answer(None, Ticket("c", Kind.CONNECT_ACK))
    assert session.goodbye("x")[4] == 0


def test_bodies_are_compressed_from_the_threshold_on() -> None:
    size = len(Session(Wire.BINARY).goodbye("x" * 200)) - 5
    for threshold, flag in ((size, 1), (size + 1, 0)):
        session = connected(Wire.BINARY, "gzip", threshold=threshold)
        assert session.goodbye("x" * 200)[4] == flag


@pytest.mark.parametrize("name", [GZIP, BROTLI])
def test_any_frame_may_be_compressed_once_a_connect_is_accepted(name: str) -> None:
    data = packed(FLAGS[name], deflate(name, sent(Wire.BINARY, Kind.PING)[5:]))
    assert only(connected(), data) == PING


@pytest.mark.parametrize("name", [GZIP, BROTLI])
def test_before_that_none_is_looked_into(name: str) -> None:
    ping = sent(Wire.BINARY, Kind.PING)
    session = Session(Wire.BINARY)
    refusal = only(session, packed(FLAGS[name], deflate(name, ping[5:])))
    assert isinstance(refusal, Refusal)
    assert refusal.error.fatal
    assert "before a Connect" in str(refusal.error)
    assert session.receive(ping) == []


def test_a_compressed_frame_right_behind_connect_is_read_when_its_turn_comes() -> None:
    session = Session(Wire.BINARY)
    ping = packed(1, deflate(GZIP, sent(Wire.BINARY, Kind.PING)[5:]))
    connect, item = session.receive(sent(Wire.BINARY, Kind.CONNECT) + ping)
    assert isinstance(connect, Connect)
    session.answer(None, connect.req_id)
    assert isinstance(item, Packed)
    assert session.unpack(item) == PING


@pytest.mark.parametrize("name", [GZIP, BROTLI])
def test_what_a_frame_is_compressed_from_obeys_the_limit_too(name: str) -> None:
    def publish(size: int) -> bytes:
        frame = Frame(Kind.PUBLISH, "m", "q", b'"%b"' % (b"x" * size))
        body = binary_codec.encode(frame)
        return packed(FLAGS[name], deflate(name, body))

    overhead = len(binary_codec.encode(Frame(Kind.PUBLISH, "m", "q", b'""')))
    fits = only(connected(limit=2000), publish(2000 - overhead))
    assert isinstance(fits, Publish)
    refusal = only(connected(limit=2000), publish(2001 - overhead))
    assert refusal.error.fatal
    assert "2000" in str(refusal.error)


@pytest.mark.parametrize("body", [b"", b"\x01", b"junk"])
def test_a_compressed_body_that_is_none_ends_the_connection(body: bytes) -> None:
    for data in (packed(1, deflate(GZIP, body)), packed(1, body + b"xx"), packed(2, body + b"xx")):
        session = connected()
        assert only(session, data).error.fatal
        assert session.receive(sent(Wire.BINARY, Kind.PING)) == []
