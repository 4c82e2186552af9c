"""Data that crosses wires, and what cannot."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.model.crossing import (
    Uncarriable,
    body_for,
    data_of,
    name_of,
    payload_of,
    to_json,
    to_msgpack,
)
from tandemq.model.message import Letter, Message

pack, unpack = msgspec.msgpack.encode, msgspec.msgpack.decode

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**32 - 1) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@given(PLAIN)
def test_what_both_can_say_comes_back_as_it_was(value: Any) -> None:
    text = to_json(pack(value))
    assert msgspec.json.decode(text or b"null") == value
    assert unpack(to_msgpack(text)) == value


@given(st.binary())
def test_any_bytes_become_json_or_a_reason(odd: bytes) -> None:
    with suppress(Uncarriable):
        msgspec.json.decode(to_json(odd) or b"null")


@pytest.mark.parametrize("nothing", [b"", b"\xc0", b"\xd4\x00\x00"])
def test_no_data_is_no_payload(nothing: bytes) -> None:
    assert to_json(nothing) == b""
    assert to_msgpack(b"") == b"\xc0"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"bytes", "binary data"),
        ([{"a": b"x"}], "binary data"),
        ({1: "a"}, "the key 1, which is no text"),
        ([math.nan], "the number nan"),
        ({"a": -math.inf}, "the number -inf"),
        (msgspec.msgpack.Ext(5, b"x"), "an extension of type 5"),
    ],
)
def test_what_json_cannot_say_is_named(value: Any, why: str) -> None:
    with pytest.raises(Uncarriable, match=why):
        to_json(pack(value))


def test_timestamps_cannot_be_carried() -> None:
    with pytest.raises(Uncarriable, match="a timestamp"):
        to_json(b"\xd6\xff\x00\x00\x00\x00")


def test_what_is_undefined_inside_is_null() -> None:
    assert to_json(b"\x91\xd4\x00\x00") == b"[null]"


def test_deep_data_is_refused_not_followed() -> None:
    with pytest.raises(Uncarriable):
        to_json(b"\x91" * 100_000 + b"\xc0")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"4294967295", 4294967295),
        (b"4294967296", 4294967296.0),
        (b"-2147483649", -2147483649.0),
        (b"1" + b"0" * 30, 1e30),
        (b'[{"a": 12345678901}]', [{"a": 12345678901.0}]),
    ],
)
def test_wide_integers_are_doubles_as_everywhere_on_that_wire(text: bytes, value: Any) -> None:
    found = unpack(to_msgpack(text))
    assert found == value
    assert msgspec.msgpack.encode(found) == msgspec.msgpack.encode(value)


def test_an_integer_beyond_all_doubles_is_infinite() -> None:
    assert unpack(to_msgpack(b"-1" + b"0" * 400)) == -math.inf


def test_a_job_is_known_by_its_id_and_a_letter_by_its_publishers() -> None:
    m = Message("id", "q", "n", b"\x01", 1, 0, 0)
    assert (name_of(m), payload_of(m)) == ("id", b"1")
    m.letter, m.body = Letter("mine"), b"{}"
    assert (name_of(m), payload_of(m)) == ("mine", b"{}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"[1e999, 7]", [math.inf, 7]),
        (b"-1e999", -math.inf),
        (b'{"a": 1e999, "b": 5000000000}', {"a": math.inf, "b": 5e9}),
        (b"[1e999, 1" + b"0" * 5_000 + b"]", [math.inf, math.inf]),
    ],
)
def test_a_number_beyond_all_doubles_is_infinite_as_it_is_to_javascript(
    text: bytes, value: Any
) -> None:
    assert unpack(to_msgpack(text)) == value


def test_the_data_of_a_letter_is_messagepack_and_its_body_json() -> None:
    m = Message("id", "q", "n", b"\x91\x01", 1, 0, 0)
    assert (data_of(m), body_for(m, b"\x02")) == (b"\x91\x01", b"\x02")
    m.letter, m.body = Letter("mine"), b"[1]"
    assert (data_of(m), body_for(m, b"\x02")) == (b"\x91\x01", b"2")
    assert body_for(m, b"\xc0") == b""
    with pytest.raises(Uncarriable, match="binary data"):
        body_for(m, b"\xc4\x01x")
