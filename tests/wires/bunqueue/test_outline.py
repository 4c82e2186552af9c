"""The quick way of reading an odd command finds what the slow way finds."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.msgpack import Ext
from tests.hostile.commands import COMMANDS, WRONG_VALUES, Lease, wrong_batches, wrong_requests
from tests.wires.bunqueue.test_lenient import ENCODED, KEYS, RECORDED, TEXTS, listed, mapped

from tandemq.wires.bunqueue import lenient, outline
from tandemq.wires.bunqueue.lenient import Malformed, TooMany

NAMES = st.sampled_from(
    ["cmd", "data", "result", "results", "jobs", "input", "id", "reqId", "__proto__"]
).map(msgpack.packb)
ENTRIES = st.lists(st.tuples(NAMES | NAMES | TEXTS | KEYS, ENCODED), max_size=6)
JOBS = st.lists(ENTRIES.flatmap(mapped) | ENCODED, max_size=4).flatmap(listed)
FRAMES = st.lists(st.tuples(NAMES, ENCODED | JOBS | ENTRIES.flatmap(mapped)), max_size=6).flatmap(
    mapped
)


def flat(value: Any) -> list[Any]:
    """What a value holds, in a form that compares by type and bytes, however deep it is."""
    found: list[Any] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            found.append(("map", sorted(item)))
            todo += [item[key] for key in sorted(item)]
        elif isinstance(item, list):
            found.append(("list", len(item)))
            todo += item
        elif isinstance(item, Raw):
            found.append(("raw", bytes(item)))
        elif isinstance(item, Ext):
            found.append(("ext", item.code, bytes(item.data)))
        else:
            found.append((type(item), repr(item)))
    return found


def both_ways(frame: bytes) -> list[Any]:
    read = []
    for way in (outline, lenient):
        try:
            read.append(flat(way.read_command(frame)))
        except Malformed:
            read.append(Malformed)
    return read


@settings(max_examples=60, deadline=None)
@given(FRAMES | ENCODED)
@example(b"\x81\xa4data\xd4\x00\x00")
@example(b"\x82\xa4data\x01\xa4data\xd4\x00\x07")
@example(b"\x81\xa4data\xc7\x03\x00abc")
@example(b"\x81\xa4jobs\x91\x81\xa5input\x81\xa4data\xc1")
def test_a_frame_is_read_alike_on_either_way(frame: bytes) -> None:
    quick, slow = both_ways(frame)
    assert quick == slow


@given(st.sampled_from(RECORDED), st.binary(min_size=1, max_size=4), st.data())
def test_a_spoilt_frame_is_read_alike_on_either_way(
    frame: bytes, spoilt: bytes, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(frame)))
    quick, slow = both_ways(frame[:at] + spoilt + frame[at + data.draw(st.integers(0, 3)) :])
    assert quick == slow


@pytest.mark.parametrize("cmd", sorted(COMMANDS))
def test_wrong_requests_are_read_alike_on_either_way(cmd: str) -> None:
    for request in wrong_requests(cmd, "q", Lease("j", "t")):
        quick, slow = both_ways(msgpack.packb(request))
        assert quick == slow


def test_wrong_batches_are_read_alike_on_either_way() -> None:
    for request in wrong_batches("q"):
        quick, slow = both_ways(msgpack.packb(request))
        assert quick == slow
    for value in WRONG_VALUES.values():
        quick, slow = both_ways(msgpack.packb({"cmd": "ACKB", "results": [value, value]}))
        assert quick == slow


def test_nothing_of_an_ordinary_frame_is_read_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lenient, "read_command", None)
    for value in WRONG_VALUES.values():
        outline.read_command(msgpack.packb({"cmd": "PUSH", "data": value, "delay": None}))


def many(count: int, member: bytes) -> bytes:
    return b"\xdd" + count.to_bytes(4, "big") + member * count


@pytest.mark.parametrize(
    "fields",
    [
        b"\x81\xa1a" + many(262_143, b"\x90"),
        b"\x82\xa1a" + many(140_000, b"\x01") + b"\xa1b" + many(140_000, b"\x01"),
        b"\x81\xa4jobs" + many(100_001, b"\x80"),
        b"\x81\xa4jobs" + many(90_000, b"\x81\xa1a\x9a" + b"\x01" * 10),
        b"\x81\xa7results" + many(100_001, b"\x01"),
        b"\xde\x27\x11" + b"\xa1a\x01" * 10_001,
        b"\x81\xa4jobs\x91\xde\x27\x11" + b"\xa1a\x01" * 10_001,
    ],
)
def test_too_many_values_are_refused_before_they_fill_the_memory(fields: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TooMany):
            outline.read_command(fields)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 << 20


def test_users_data_is_not_counted() -> None:
    data = many(2_000_000, b"\x01")
    found = outline.read_command(b"\x81\xa4data" + data)
    assert isinstance(found, dict)
    assert bytes(found["data"]) == data
