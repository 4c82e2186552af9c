"""Frames come out whole, however the network cuts the stream."""

from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tandemq.wires.framing import FrameDecoder, frame

LIMIT = 67_108_864


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(c for c in cuts if c < len(stream))})
    return [stream[a:b] for a, b in pairwise(edges)]


@given(bodies=st.lists(st.binary(max_size=40)), cuts=st.lists(st.integers(0, 400)))
def test_frames_survive_any_way_the_network_cuts_the_stream(bodies, cuts):
    decoder = FrameDecoder(limit=40)
    got = [f for part in cut(b"".join(map(frame, bodies)), cuts) for f in decoder.feed(part)]
    assert got == bodies
    assert all(type(f) is bytes for f in got)
    assert (decoder.mid_frame, decoder.pending_bytes, decoder.refused) == (False, 0, None)


@given(
    bodies=st.lists(st.binary(max_size=20), max_size=6),
    size=st.integers(21, 2**32 - 1),
    tail=st.binary(max_size=40),
    cuts=st.lists(st.integers(0, 200)),
)
def test_good_frames_before_an_oversized_header_come_out_and_nothing_after_it(
    bodies, size, tail, cuts
):
    decoder = FrameDecoder(limit=20)
    stream = b"".join(map(frame, bodies)) + size.to_bytes(4, "big") + tail
    got = [f for part in cut(stream, cuts) for f in decoder.feed(part)]
    assert (got, decoder.refused) == (bodies, size)
    assert not decoder.mid_frame
    assert decoder.feed(frame(b"x")) == []


@given(body=st.binary(min_size=1, max_size=60), cuts=st.lists(st.integers(0, 64)))
def test_an_unfinished_frame_is_counted_to_the_byte(body, cuts):
    decoder, sent = FrameDecoder(limit=60), 0
    for part in cut(frame(body)[:-1], cuts):
        assert decoder.feed(part) == []
        sent += len(part)
        assert (decoder.pending_bytes, decoder.mid_frame) == (sent, True)


@given(
    bodies=st.lists(st.binary(min_size=2, max_size=40)),
    flags=st.binary(min_size=30, max_size=30),
    cuts=st.lists(st.integers(0, 400)),
)
def test_bytes_that_the_length_does_not_count_come_with_their_body(bodies, flags, cuts):
    decoder, wanted, stream = FrameDecoder(40, least=2, uncounted=1), [], b""
    for flag, body in zip(flags, bodies, strict=False):
        wanted.append(bytes((flag,)) + body)
        stream += len(body).to_bytes(4, "big") + wanted[-1]
    got, sent = [], 0
    for part in cut(stream, cuts):
        got += decoder.feed(part)
        sent += len(part)
        assert decoder.pending_bytes == sent - sum(len(frame) + 4 for frame in got)
    assert (got, decoder.refused) == (wanted, None)


def test_a_length_below_the_least_is_refused_with_its_fourth_byte():
    for uncounted in (0, 1):
        decoder = FrameDecoder(9, least=2, uncounted=uncounted)
        assert decoder.feed(b"\0\0\0") == []
        assert decoder.refused is None
        assert decoder.feed(b"\x01") == []
        assert decoder.refused == 1
        assert decoder.feed(frame(b"abc")) == []


def test_an_oversized_length_is_refused_with_its_fourth_byte():
    decoder = FrameDecoder(limit=LIMIT)
    assert decoder.feed(b"GET") == []
    assert decoder.refused is None
    assert decoder.feed(b" ") == []
    assert decoder.refused == 1_195_725_856


def test_the_limit_itself_is_accepted_and_one_more_is_not():
    decoder = FrameDecoder(limit=3)
    assert decoder.feed(frame(b"abc")) == [b"abc"]
    assert decoder.feed(frame(b"abcd")) == []
    assert decoder.refused == 4


def test_an_empty_frame_is_an_empty_body():
    decoder = FrameDecoder(limit=9)
    assert decoder.feed(b"\0\0\0\0" * 3) == [b"", b"", b""]
    assert decoder.feed(b"") == []


def test_bytes_come_one_by_one():
    decoder = FrameDecoder(limit=9)
    got = [f for byte in frame(b"one") + frame(b"") for f in decoder.feed(bytes((byte,)))]
    assert got == [b"one", b""]


def seconds_for(mebibytes: int) -> float:
    stream = frame(bytes((mebibytes << 20) - 4))
    parts = [stream[i : i + 65_536] for i in range(0, len(stream), 65_536)]
    decoder = FrameDecoder(limit=LIMIT)
    started = time.process_time()
    got = [f for part in parts for f in decoder.feed(part)]
    spent = time.process_time() - started
    assert [len(f) for f in got] == [(mebibytes << 20) - 4]
    return spent


def test_a_large_frame_in_small_reads_costs_linear_time():
    # Eight times the bytes: a quadratic buffer would need some sixty-four times as long.
    small = min(seconds_for(4) for _ in range(3))
    large = min(seconds_for(32) for _ in range(3))
    assert large < 40 * small + 0.2


def test_a_dripping_peer_holds_no_more_memory_than_it_sent():
    decoder = FrameDecoder(limit=LIMIT)
    decoder.feed((1 << 20).to_bytes(4, "big"))
    tracemalloc.start()
    try:
        for _ in range(50_000):
            decoder.feed(b"ab")
        assert tracemalloc.get_traced_memory()[0] < 300_000
    finally:
        tracemalloc.stop()
    assert decoder.pending_bytes == 100_004


def test_an_announced_length_alone_reserves_nothing():
    decoder = FrameDecoder(limit=LIMIT)
    tracemalloc.start()
    try:
        decoder.feed(LIMIT.to_bytes(4, "big") + b"x")
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()
