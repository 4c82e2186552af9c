"""Which wire a connection speaks, told from its first bytes however they arrive."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.wires.vibemq import corpus

from tandemq.wires.sniff import LONGEST_FRAME, NEEDED, Wire, http_answer, sniff

ONE = b"\0\0\0\x2c"  # a length


def told(wire: Wire | None) -> str:
    return "need-more" if wire is None else wire.value


def decided(data: bytes) -> Wire | None:
    """What was decided first, when the bytes came one by one."""
    found = (sniff(data[:size]) for size in range(len(data) + 1))
    return next((wire for wire in found if wire is not None), None)


# -- golden beginnings ---------------------------------------------------------------------------


@corpus.needed
def test_the_golden_beginnings_are_there() -> None:
    assert len(corpus.lines("vectors/detect_vectors.jsonl")) >= 24


@corpus.each(corpus.lines("vectors/detect_vectors.jsonl"))
def test_a_golden_beginning_is_told(vector) -> None:
    data = bytes.fromhex(vector["hex"])
    assert told(sniff(data)) == vector["expect"]
    assert told(decided(data)) == vector["expect"]


FIRST_FRAMES = {"binary": Wire.BINARY, "json": Wire.JSON}


@corpus.each(vector for name in FIRST_FRAMES for vector in corpus.valid(name))
def test_every_golden_frame_is_told_for_its_wire(vector) -> None:
    assert sniff(corpus.data(vector)[:NEEDED]) is FIRST_FRAMES[vector["wire"].split("-")[1]]


@pytest.mark.parametrize(
    ("header", "events"),
    [pytest.param(*session, id=session[0]["session"]) for session in corpus.sessions()],
)
def test_every_recorded_client_is_told(header, events) -> None:
    seen = set()
    for event in events:
        if event["dir"] == "c2s" and event["conn"] not in seen:
            seen.add(event["conn"])
            first = bytes.fromhex(event["hex"])
            assert decided(first) is FIRST_FRAMES[header["wire"].split("-")[1]]


# -- the table -----------------------------------------------------------------------------------

BY_FOURTH = {
    **dict.fromkeys(range(256), Wire.BUNQUEUE),
    **dict.fromkeys(b"{ \t\r\n", Wire.JSON),
    0x00: Wire.BINARY,
    0x01: None,
    0x02: Wire.BINARY,
}


@pytest.mark.parametrize("length", [1, 0x2C, 0x123456, LONGEST_FRAME])
def test_the_byte_behind_the_length_decides(length: int) -> None:
    prefix = length.to_bytes(4, "big")
    assert [sniff(prefix + bytes((byte,))) for byte in range(256)] == list(BY_FOURTH.values())


def test_one_byte_more_tells_gzip_from_an_old_version() -> None:
    found = [sniff(ONE + bytes((1, byte))) for byte in range(256)]
    assert found == [Wire.BINARY if byte == 0x1F else Wire.BINARY_1_0 for byte in range(256)]


@pytest.mark.parametrize("length", [0, LONGEST_FRAME + 1, 0x04FFFFFF])
def test_a_length_of_no_frame_is_nobodys_at_once(length: int) -> None:
    prefix = length.to_bytes(4, "big")
    assert [sniff(prefix[:size]) for size in range(4)] == [None] * 4
    assert sniff(prefix) is Wire.BUNQUEUE


VERBS = ["GET /", "PUT /", "POST /", "HEAD /", "PATCH /", "DELETE /", "OPTIONS *", "CONNECT a:1"]


@pytest.mark.parametrize("request_", [*VERBS, "TRACE /", "PRI * HTTP/2.0"])
def test_an_http_request_is_told_by_its_verb(request_: str) -> None:
    data = f"{request_} HTTP/1.1\r\n".encode()
    assert [sniff(data[:size]) for size in range(5)] == [None] * 5
    assert {sniff(data[:size]) for size in range(5, len(data))} == {Wire.HTTP}


@pytest.mark.parametrize(
    "text",
    [
        "PROXY TCP4 ",
        "PING\r\n",
        "SSH-2.0-x\r\n",
        "*1\r\n$4",
        '{"cmd":"PING"}\n',
        "get / http",
        "GETX",
    ],
)
def test_other_talkers_are_nobodys(text: str) -> None:
    assert decided(text.encode()) is Wire.BUNQUEUE


@pytest.mark.parametrize("byte", [0x05, 0x06, 0x0D, 0x15, 0x17, 0x7B, 0x80, 0xFF])
def test_a_first_byte_that_begins_nothing_is_nobodys_at_once(byte: int) -> None:
    assert sniff(bytes((byte,))) is Wire.BUNQUEUE


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("length", [b"\x01\x00", b"\x02\x00", b"\x00\x05", b"\xff\xff"])
def test_a_client_hello_is_told_in_any_version(version: int, length: bytes) -> None:
    data = b"\x16\x03" + bytes((version,)) + length + b"\x01\x00\x01\xfc\x03\x03"
    assert [sniff(data[:size]) for size in range(NEEDED)] == [None] * NEEDED
    assert sniff(data[:NEEDED]) is sniff(data) is Wire.TLS


@pytest.mark.parametrize(
    ("data", "size"),
    [(b"\x16\x02\x01", 2), (b"\x16\x03\x05", 3), (b"\x16\x03\x01\x01\x00\x02", 6)],
)
def test_a_record_that_is_no_client_hello_is_nobodys(data: bytes, size: int) -> None:
    assert sniff(data[: size - 1]) is None
    assert sniff(data[:size]) is Wire.BUNQUEUE


# -- properties ----------------------------------------------------------------------------------


@given(st.binary(min_size=NEEDED, max_size=12))
@example(b"\x16\x03\x01\x02\x00\x01")
def test_six_bytes_always_suffice(data) -> None:
    assert sniff(data[:NEEDED]) is sniff(data) is not None


STARTS = st.sampled_from(
    [
        b"",
        b"\0\0",
        b"\0\0\0\x05",
        b"\0\0\0\x05\x01",
        b"GET",
        b"DELE",
        b"\x16\x03",
        b"\x16\x03\x01\0",
        b"P",
    ]
)


@given(STARTS, st.binary(max_size=8))
def test_what_is_decided_of_a_beginning_is_decided_of_the_whole(start, rest) -> None:
    data = start + rest
    wires = [sniff(data[:size]) for size in range(len(data) + 1)]
    first = next((at for at, wire in enumerate(wires) if wire is not None), len(wires))
    assert len(set(wires[first:])) <= 1


# -- HTTP on a port for frames -------------------------------------------------------------------


def test_an_http_client_is_told_where_http_is() -> None:
    head, _, body = http_answer(6790).decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    assert lines[0] == "HTTP/1.1 400 Bad Request"
    assert f"Content-Length: {len(body)}" in lines
    assert "Connection: close" in lines
    assert "port 6790" in body


@pytest.mark.parametrize("port", [None, 0])
def test_or_that_it_is_nowhere(port: int | None) -> None:
    assert b"not served" in http_answer(port)
