"""The client's codec: what it writes others can read, and what arrives in pieces is whole."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tandemq.wires.bunqueue import caller
from tandemq.wires.bunqueue.caller import Caller, Garbled, Unwritable
from tandemq.wires.framing import frame

numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
plain = st.recursive(
    st.none() | st.booleans() | numbers | st.text() | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=20,
)


def unpacked(written: bytes) -> Any:
    return msgpack.unpackb(written, raw=False)


def integers(value: Any) -> list[int]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in integers(item)]
    return [value] if type(value) is int else []


@given(plain)
def test_what_is_written_reads_as_the_same(value: Any) -> None:
    assert unpacked(caller.encode(value)) == value


@given(plain)
def test_no_integer_is_wider_than_what_a_javascript_peer_reads(value: Any) -> None:
    assert all(-(2**31) <= n < 2**32 for n in integers(unpacked(caller.encode(value))))


@given(plain, plain)
def test_a_request_is_one_frame_with_its_fields(data: Any, other: Any) -> None:
    written = caller.request("PUSH", {"queue": "q", "data": data, "result": other}, "7")
    fields = unpacked(written[4:])
    assert int.from_bytes(written[:4], "big") == len(written) - 4
    given_fields = {k: v for k, v in (("data", data), ("result", other)) if v is not None}
    assert fields == {"cmd": "PUSH", "queue": "q", **given_fields, "reqId": "7"}


@given(st.lists(plain, min_size=1, max_size=40), st.text(max_size=300))
def test_a_batch_is_one_frame_with_its_jobs(jobs: list[Any], queue: str) -> None:
    written = caller.push_many(queue, [caller.encode(job) for job in jobs], "8")
    assert unpacked(written[4:]) == {"cmd": "PUSHB", "queue": queue, "jobs": jobs, "reqId": "8"}


@given(st.lists(st.tuples(st.text(), plain), max_size=6), st.data())
def test_answers_are_whole_however_they_arrive(
    answers: list[tuple[str, Any]], data: st.DataObject
) -> None:
    stream = b"".join(
        frame(msgpack.packb({"ok": True, "value": value, "reqId": id})) for id, value in answers
    )
    reader, found = Caller(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.receive(stream[:size])
        stream = stream[size:]
    assert found == [(id, {"ok": True, "value": value}) for id, value in answers]


@given(st.binary(max_size=200))
def test_whatever_arrives_is_read_or_refused(data: bytes) -> None:
    try:
        answers = Caller().receive(data)
    except Garbled:
        return
    assert all(id is None or isinstance(id, str) for id, _ in answers)
    assert all(isinstance(fields, dict) for _, fields in answers)


@dataclass
class Address:
    city: str
    since: datetime


class Order(msgspec.Struct):
    number: int
    to: Address


class Model(BaseModel):
    name: str
    at: datetime


class Colour(enum.Enum):
    RED = "red"


WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (Address("Rome", WHEN), {"city": "Rome", "since": "2026-03-01T12:00:00Z"}),
        (
            Order(2**40, Address("Rome", WHEN)),
            {"number": 2.0**40, "to": {"city": "Rome", "since": "2026-03-01T12:00:00Z"}},
        ),
        (Model(name="a", at=WHEN), {"name": "a", "at": "2026-03-01T12:00:00Z"}),
        ([Model(name="a", at=WHEN), 2**40], [{"name": "a", "at": "2026-03-01T12:00:00Z"}, 2**40]),
        (Colour.RED, "red"),
        ({1, 2}, [1, 2]),
        ((1, b"\xcf"), [1, b"\xcf"]),
    ],
)
def test_models_travel_as_what_they_hold(value: object, read: object) -> None:
    assert unpacked(caller.encode(value)) == read


def test_a_moment_is_text() -> None:
    assert unpacked(caller.encode({"at": WHEN})) == {"at": "2026-03-01T12:00:00Z"}


def test_undefined_is_read_as_nothing() -> None:
    body = msgpack.packb({"ok": True, "a": msgpack.ExtType(0, b"\0"), "reqId": "1"})
    assert Caller().receive(frame(body)) == [("1", {"ok": True, "a": None})]


def circle() -> dict[str, Any]:
    inner: dict[str, Any] = {"name": "x"}
    inner["parent"] = [inner]
    return {"tree": inner}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"items": [1, {"price": object()}]}, "data.items[1].price is of type object"),
        (circle(), "data.tree.parent[0] contains itself"),
        ({"n": 2**53 + 1}, "data.n is 9007199254740993"),
        ({"n": [2**70]}, "data.n[0] is beyond 64 bits"),
        ({"d": deep(5000)}, "nested too deeply"),
        ({"order": Order(1, object())}, "data.order.to is of type object"),  # type: ignore[arg-type]
        (Colour, "data is of type EnumType"),
        ({"at": [datetime(2026, 1, 1)]}, "data.at[0] is a moment without a zone"),
        (datetime(2026, 1, 1, 0, 0, 0, 1), "data is a moment without a zone"),
        (Order(1, datetime(2026, 1, 1)), "data.to is a moment without a zone"),  # type: ignore[arg-type]
        ({"name": "\ud800"}, "data.name is text that UTF-8 cannot write"),
        ({"\ud800": 1}, "data is a map with a key that UTF-8 cannot write"),
    ],
)
def test_what_cannot_be_written_is_named(value: object, words: str) -> None:
    with pytest.raises(Unwritable) as caught:
        caller.request("PUSH", {"queue": "q", "data": value}, "1")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 200  # however deep the place is


@pytest.mark.parametrize("text", ["2026-01-01T00:00:00", "2026-01-01T00:00:00.000001"])
def test_text_that_looks_like_a_moment_is_text(text: str) -> None:
    assert unpacked(caller.encode({"at": text})) == {"at": text}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "6789"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
        (b"\x15\x03\x03\x00\x02\x02\x0a", "tls=1"),
        (b"-ERR unknown command\r\n", "Redis"),
        (b"\xff\xff\xff\xff", "no server of this wire"),
        (frame(b"\xc1"), "no MessagePack"),
        (frame(b"\x01"), "no map"),
    ],
)
def test_a_peer_of_another_kind_is_recognised(data: bytes, words: str) -> None:
    with pytest.raises(Garbled) as caught:
        Caller().receive(data)
    assert words in str(caught.value)


def test_not_a_number_travels_as_it_is() -> None:
    assert math.isnan(unpacked(caller.encode(math.nan)))
