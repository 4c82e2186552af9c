"""The binary wire: golden frames in both directions, its lengths, and what is no body."""

from __future__ import annotations

import contextlib
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wires.vibemq import corpus

from tandemq.wires.vibemq import compression
from tandemq.wires.vibemq.binary_codec import LONGEST_TEXT, decode, encode, form
from tandemq.wires.vibemq.frames import MAX_MESSAGE, Frame, Unreadable, Unsendable
from tandemq.wires.vibemq.kinds import NAMES, Kind

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SOME = TEXTS.filter(bool)
FRAMES = st.builds(
    Frame,
    st.integers(0, 255).filter(lambda kind: kind != Kind.ERROR),
    SOME,
    st.none() | SOME,
    st.none() | TEXTS.map(lambda text: json.dumps(text).encode()),
    st.none() | st.dictionaries(SOME, SOME, min_size=1, max_size=4),
    version=st.integers(0, 255),
)
ERRORS = st.builds(Frame, st.just(Kind.ERROR), SOME, code=st.none() | SOME, text=st.none() | SOME)

PLAIN = form()


def refused(body: bytes) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        decode(body)
    return caught.value


def body_of(vector, limit: int = 4 << 20) -> bytes:
    data = corpus.data(vector)
    return compression.inflate(data[4], data[5:], limit) if data[4] else data[5:]


def wanted(vector) -> Frame:
    said = vector["message"]
    payload = said["payload"]
    if "payloadRepeat" in said:
        before, part, times, after = said["payloadRepeat"]
        payload = before + part * times + after
    id, times = said.get("idRepeat", (said.get("id"), 1))
    return Frame(
        said["type"],
        id * times,
        said["queue"],
        None if payload is None else payload.encode(),
        None if said["headers"] is None else dict(said["headers"]),
        said["errorCode"],
        said["errorMessage"],
        said["version"],
    )


# -- golden frames -------------------------------------------------------------------------------


@corpus.needed
def test_the_golden_frames_are_there() -> None:
    assert len(corpus.valid("binary")) + len(corpus.malformed("binary")) >= 110


@corpus.each(corpus.valid("binary"))
def test_a_golden_frame_says_what_it_says(vector) -> None:
    assert decode(body_of(vector)) == wanted(vector)
    assert vector["message"]["typeName"] == NAMES.get(vector["message"]["type"])


@corpus.each(vector for vector in corpus.valid("binary") if vector["canonical"])
def test_a_golden_frame_is_written_byte_for_byte(vector) -> None:
    assert PLAIN.write(wanted(vector)) == corpus.data(vector)


@corpus.each(vector for vector in corpus.valid("binary") if "encoder" in vector)
def test_a_body_is_compressed_from_the_threshold_on(vector) -> None:
    rule = vector["encoder"]
    said = form(True, rule["algorithm"], rule["threshold"]).write(wanted(vector))
    assert len(body_of(vector)) == rule["bodyLength"]
    assert said[4] == rule["expectFlag"]


@corpus.each(
    vector
    for vector in corpus.malformed("binary")
    if vector["error"]["stage"] in ("codec", "payload")
)
def test_a_golden_body_that_is_none_is_refused_in_the_words_of_the_reference(vector) -> None:
    problem = refused(body_of(vector))
    if vector["error"]["stage"] == "codec" and vector["error"]["kind"] == "invalid":
        assert vector["error"]["dotnetMessageContains"] in str(problem)
    assert problem.lost == (vector["error"]["stage"] == "codec")


# -- both directions -----------------------------------------------------------------------------


@given(FRAMES | ERRORS)
def test_what_is_written_is_read(frame) -> None:
    assert decode(encode(frame)) == frame


@given(FRAMES | ERRORS, st.binary(max_size=9))
def test_bytes_after_the_last_field_are_ignored(frame, rest) -> None:
    assert decode(encode(frame) + rest) == frame


@given(FRAMES | ERRORS, st.booleans(), st.sampled_from([None, "gzip"]), st.integers(0, 200))
def test_length_and_flag_stand_before_the_body(frame, flagged, algorithm, threshold) -> None:
    if not flagged:
        algorithm = None
    said = form(flagged, algorithm, threshold).write(frame)
    body = encode(frame)
    if algorithm is None or len(body) < threshold:
        assert said == len(body).to_bytes(4, "big") + (b"\0" if flagged else b"") + body
    else:
        assert said[4] == 1
        assert int.from_bytes(said[:4], "big") == len(said) - 5
        assert compression.inflate(1, said[5:], 1 << 20) == body


def test_a_body_that_compression_would_lift_above_what_peers_read_goes_plain(monkeypatch) -> None:
    frame = Frame(Kind.DELIVER, "m", "q", b'"%b"' % (b"x" * 2000))
    form = compressing()
    assert form.write(frame)[4] == 1
    monkeypatch.setattr(compression, "deflate", lambda name, body: bytes(MAX_MESSAGE + 1))
    assert form.write(frame)[4] == 0


def compressing():
    return form(True, "gzip", 1024)


@given(FRAMES)
def test_empty_and_absent_are_the_same(frame) -> None:
    bare = Frame(frame.kind, frame.id, None, None, None)
    assert encode(Frame(frame.kind, frame.id, "", b"", {})) == encode(bare)


def test_headers_with_an_empty_half_are_left_out() -> None:
    headers = {"": "v", "k": "", "a": "b"}
    assert decode(encode(Frame(Kind.PUBLISH, "m", headers=headers))).headers == {"a": "b"}


def test_headers_that_are_all_void_are_headers() -> None:
    body = b"\x01\x14\0\x01m\0\0\0\0\0\0\0\x02\0\0\0\x01v\0\x01k\0\0"
    assert decode(body).headers == {}


# -- lengths -------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["id", "queue", "key", "value", "code", "text"])
def test_a_text_of_the_largest_size_travels_and_one_byte_more_does_not(where: str) -> None:
    def frame(text: str) -> Frame:
        if where in ("key", "value"):
            return Frame(Kind.PUBLISH, "m", headers={text: "v"} if where == "key" else {"k": text})
        frame = Frame(Kind.ERROR, "m")
        setattr(frame, where, text)
        return frame

    assert decode(encode(frame("x" * LONGEST_TEXT))) == frame("x" * LONGEST_TEXT)
    assert decode(encode(frame("é" * 32_767))) == frame("é" * 32_767)
    for text in ("x" * 65_536, "é" * 32_768):
        with pytest.raises(Unsendable, match="65536 bytes is longer than 65535"):
            encode(frame(text))


def test_more_headers_than_a_count_can_say_are_not_written() -> None:
    headers = {str(number): "v" for number in range(65_536)}
    with pytest.raises(Unsendable, match="65536 headers"):
        encode(Frame(Kind.PUBLISH, "m", headers=headers))
    del headers["0"]
    assert len(decode(encode(Frame(Kind.PUBLISH, "m", headers=headers))).headers or ()) == 65_535


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xe2\x82\xff", "\ufffd\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xf0\x9f\x9a", "\ufffd"),
        (b"\xc0\xaf", "\ufffd\ufffd"),
    ],
)
def test_what_is_no_utf8_in_a_text_is_replaced_piece_by_piece(raw: bytes, text: str) -> None:
    body = b"\x01\x0a" + len(raw).to_bytes(2, "big") + raw + bytes(8)
    assert decode(body).id == text


def test_a_text_that_we_could_not_say_again_is_refused() -> None:
    size = LONGEST_TEXT // 3
    for raw, fits in ((b"\xff" * size, True), (b"\xff" * (size + 1), False)):
        body = b"\x01\x0a" + len(raw).to_bytes(2, "big") + raw + bytes(8)
        if fits:
            assert decode(encode(decode(body))) == decode(body)
        else:
            assert refused(body).lost


# -- what is no body -----------------------------------------------------------------------------


@given(FRAMES | ERRORS, st.integers(0, 300))
def test_a_body_that_is_cut_is_none(frame, size) -> None:
    body = encode(frame)
    problem = refused(body[: min(size, len(body) - 1)])
    assert problem.lost
    assert problem.id in (None, frame.id)


@given(st.binary(max_size=80))
def test_random_bytes_are_a_frame_or_none(body) -> None:
    try:
        frame = decode(body)
    except Unreadable:
        return
    assert isinstance(frame, Frame)


@given(FRAMES | ERRORS, st.lists(st.tuples(st.integers(0, 99), st.binary(max_size=3)), max_size=3))
def test_a_spoilt_body_is_a_frame_or_none(frame, changes) -> None:
    body = bytearray(encode(frame))
    for at, piece in changes:
        body[at : at + 1] = piece
    with contextlib.suppress(Unreadable):
        decode(bytes(body))


@pytest.mark.parametrize(
    "payload",
    [b"hello", b" ", b"NaN", b"[1,]", b"{} x", b'"\xff"', b'"\\ud800"', b"[" * 65 + b"]" * 65],
    ids=lambda payload: str(payload)[:20],
)
def test_a_payload_that_is_no_json_is_told_to_its_sender(payload: bytes) -> None:
    problem = refused(encode(Frame(Kind.PUBLISH, "m", "q", payload)))
    assert (problem.id, problem.lost) == ("m", False)


@pytest.mark.parametrize("payload", [b"null", b" { } ", b"[" * 64 + b"]" * 64, b"1e400"])
def test_any_json_is_kept_byte_for_byte(payload: bytes) -> None:
    assert decode(encode(Frame(Kind.PUBLISH, "m", "q", payload))).payload == payload


def test_a_body_of_nothing_but_headers_is_read_in_little_memory() -> None:
    body = b"\x01\x0a\0\x01m\0\0\0\0\0\0\xff\xff" + b"\0\x02kk\0\x01v" * 65_535
    tracemalloc.start()
    try:
        assert decode(body).headers == {"kk": "v"}
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
