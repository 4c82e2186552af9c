"""JSON in and out: nothing changes on the way without a word."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.model import body
from tandemq.model.errors import BadRequest, Malformed
from tandemq.server.http import jsontext

EXACT = 2**53
leaves = (
    st.none()
    | st.booleans()
    | st.text()
    | st.integers(-EXACT, EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


def there_and_back(value: Any) -> Any:
    packed = jsontext.packed([jsontext.read(msgspec.json.encode(value))])
    return jsontext.unpacked(packed)[0]


@given(values)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert there_and_back(value) == value


@given(st.lists(values))
def test_both_ways_to_narrow_numbers_are_one(value: Any) -> None:
    rewritten = jsontext.rewritten(msgspec.msgpack.encode(value))
    assert rewritten == jsontext.packed(value)


@given(values)
def test_no_wide_integer_reaches_the_wire(value: Any) -> None:
    packed = jsontext.packed([value])
    assert not body.holds_wide_integer(packed)
    assert msgspec.msgpack.decode(packed) == [value]


@pytest.mark.parametrize("whole", [EXACT, -EXACT, EXACT + 2, 2**60, 2**63, -(2**63), 1700000000000])
def test_a_number_that_doubles_hold_is_taken(whole: int) -> None:
    assert there_and_back({"a": [whole]}) == {"a": [whole]}


@pytest.mark.parametrize("whole", [EXACT + 1, -EXACT - 1, 2**64 - 1, 2**64, 10**30, -(10**30)])
def test_a_number_that_would_change_is_refused(whole: int) -> None:
    with pytest.raises(BadRequest, match="send it as text"):
        there_and_back({"name": "ΟΣ" * 50, "a": [1.5, whole]})


def test_whole_numbers_have_no_point() -> None:
    packed = msgspec.msgpack.encode({"a": 5.0, "b": [1e15, 1e300], "c": 0.5})
    assert (
        jsontext.written(jsontext.unpacked(packed))
        == b'{"a":5,"b":[1000000000000000,1e300],"c":0.5}'
    )


@pytest.mark.parametrize("text", [b"", b"{", b"nul", b"NaN", b'"\xff"', b"[" * 100_000, b"1 2"])
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(Malformed, match="Invalid JSON body"):
        jsontext.read(text)


def test_what_is_undefined_is_left_out() -> None:
    undefined = msgspec.msgpack.Ext(0, b"\0")
    packed = msgspec.msgpack.encode({"a": undefined, "b": [undefined], "c": {"d": undefined}})
    assert jsontext.unpacked(packed) == {"b": [None], "c": {}}


def test_what_json_has_no_word_for_is_written_all_the_same() -> None:
    packed = msgspec.msgpack.encode({1: b"\0\1", "n": math.nan, "i": math.inf})
    shown = json.loads(jsontext.written(jsontext.unpacked(packed)))
    assert shown == {"1": "AAE=", "n": None, "i": None}
