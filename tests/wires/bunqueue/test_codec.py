"""MessagePack as every client of the job wire can read it."""

from __future__ import annotations

import math
import struct
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from tandemq.model.values import WideInteger
from tandemq.wires.bunqueue import codec
from tandemq.wires.bunqueue.lenient import NEVER_USED

FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
FIXED |= {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
HEADS = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


def first_bytes(raw: bytes) -> list[int]:
    """The byte that begins each value, in order; a scanner that shares nothing with ours."""
    found, at = [], 0
    while at < len(raw):
        first = raw[at]
        found.append(first)
        at += 1
        if 0xA0 <= first <= 0xBF:
            at += first & 31
        elif first in FIXED:
            at += FIXED[first]
        elif first in HEADS:
            at += HEADS[first]
        elif first in SIZED:
            width = SIZED[first]
            extra = 1 if 0xC7 <= first <= 0xC9 else 0
            at += width + extra + int.from_bytes(raw[at : at + width], "big")
    assert at == len(raw)
    return found


def body(frame: bytes) -> bytes:
    assert struct.unpack(">I", frame[:4]) == (len(frame) - 4,)
    return frame[4:]


def decoded(raw: bytes) -> Any:
    return msgpack.unpackb(raw, strict_map_key=False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40)
    | st.sampled_from([2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**64, WideInteger(7)]),
    lambda inner: st.lists(inner, max_size=20)
    | st.dictionaries(st.text(max_size=5), inner, max_size=20)
    | st.tuples(inner),
    max_leaves=30,
)  # fmt: skip


def equal(value: Any, seen: Any) -> bool:
    """Equal, where a wide integer may have become the nearest float."""
    if isinstance(value, (list, tuple)):
        return len(value) == len(seen) and all(map(equal, value, seen))
    if isinstance(value, dict):
        return set(value) == set(seen) and all(equal(value[key], seen[key]) for key in value)
    if isinstance(value, int) and isinstance(seen, float):
        return float(value) == seen and abs(value) > 2**31 - 1
    return type(value) in (type(seen), WideInteger) and value == seen


@given(st.dictionaries(st.text(max_size=5).filter(lambda k: k not in ("ok", "reqId")), VALUES))
def test_no_answer_holds_an_integer_of_64_bits(values: dict[str, Any]) -> None:
    raw = body(codec.fields(values, Raw(b"\x01")))
    assert not {0xCF, 0xD3} & set(first_bytes(raw))
    answer = decoded(raw)
    assert (answer.pop("ok"), answer.pop("reqId")) == (True, 1)
    assert equal(values, answer)


@given(st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_narrow_and_keeps_its_value(value: float) -> None:
    raw = codec.number(value)
    assert first_bytes(raw)[0] not in (0xCF, 0xD3)
    assert decoded(raw) == float(value)
    whole = float(value).is_integer() and -(2**31) <= value < 2**31
    assert isinstance(decoded(raw), int) == whole


@pytest.mark.parametrize("value", [0, 1, 127, 128, 1023, 1024, 2**31 - 1, -1, -32, -33, -(2**31)])
def test_a_whole_number_of_32_bits_is_an_integer(value: int) -> None:
    assert codec.number(value) == codec.number(float(value)) == msgpack.packb(value)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**32, 1e300, 0.5, -0.25, 2**53])
def test_other_numbers_are_floats(value: float) -> None:
    assert codec.number(value) == msgpack.packb(float(value))


@given(st.integers(-(2**53), 2**53))
def test_a_moment_is_always_a_float(ms: int) -> None:
    assert codec.moment(ms) == b"\xcb" + struct.pack(">d", ms)
    assert codec.moment_or_null(ms) == (codec.moment(ms) if ms else b"\xc0")


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 255, 256, 257, 65_535, 65_536, 65_537])
@pytest.mark.parametrize("letter", ["x", "é", "☃"])
def test_a_text_has_the_head_for_its_size_in_bytes(size: int, letter: str) -> None:
    value = letter * (size // len(letter.encode())) + "x" * (size % len(letter.encode()))
    assert len(value.encode()) == size
    assert codec.text(value) == msgpack.packb(value)


@given(st.text(max_size=300))
def test_a_text_comes_back(value: str) -> None:
    assert decoded(codec.text(value)) == value


def test_half_a_surrogate_pair_is_no_accident() -> None:
    assert codec.text("a\ud800") == b"\xa4a\xed\xa0\x80"


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 65_535, 65_536, 65_537])
def test_an_array_has_the_head_for_its_size(size: int) -> None:
    assert codec.array(size) == msgpack.Packer().pack_array_header(size)


@pytest.mark.parametrize("parts", [(), (b"",), (b"a", b"bc"), (b"x" * 70_000,)])
def test_a_frame_has_its_length_in_front(parts: tuple[bytes, ...]) -> None:
    assert body(codec.framed(*parts)) == b"".join(parts)


def test_a_refusal_repeats_the_request_id_or_says_that_there_was_none() -> None:
    undefined = msgpack.ExtType(0, b"\0")
    for req, seen in ((b"\xa1r", "r"), (b"", undefined), (b"\xd4\0\0", undefined)):
        answer = decoded(body(codec.refusal("no", req)))
        assert answer == {"ok": False, "error": "no", "reqId": seen}


def test_an_answer_may_have_more_fields_than_fit_a_small_map() -> None:
    values = {f"k{n}": n for n in range(40)}
    answer = decoded(body(codec.fields(values, Raw(b"\xc0"))))
    assert answer == {"ok": True, **values, "reqId": None}


def test_the_beginnings_that_are_encoded_once_are_right() -> None:
    assert decoded(codec.OK_REQ + b"\x01") == {"ok": True, "reqId": 1}
    both = bytes(codec.OK_ID) + b"\x02" + bytes(codec.REQ) + b"\x01"
    assert decoded(both) == {"ok": True, "id": 2, "reqId": 1}
    assert decoded(codec.NOT_OK + b"\xa1e" + codec.REQ + b"\x01")["error"] == "e"


def test_what_only_the_tolerant_reader_knows_is_written_as_javascript_would() -> None:
    raw = body(codec.fields({"a": [UNSET], "b": NEVER_USED, "c": WideInteger(5)}, Raw(b"\xc0")))
    seen = decoded(raw)
    assert (seen["a"], seen["b"], seen["c"]) == ([msgpack.ExtType(0, b"\0")], {}, 5)


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"k": v}, lambda v: (v,)])
def test_what_is_nested_too_deeply_is_cut_off(wrap: Any) -> None:
    value: Any = "bottom"
    for _ in range(5000):
        value = wrap(value)
    assert b"bottom" not in codec.fields({"v": value}, Raw(b"\xc0"))
    value = "bottom"
    for _ in range(codec.DEEPEST - 1):
        value = wrap(value)
    assert b"bottom" in codec.fields({"v": value}, Raw(b"\xc0"))


def test_numbers_that_are_none_stay_so() -> None:
    seen = decoded(body(codec.fields({"n": math.nan, "i": math.inf}, Raw(b"\xc0"))))
    assert math.isnan(seen["n"])
    assert seen["i"] == math.inf


PIECES = (
    st.none()
    | st.integers(-9, 2**31)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300).map(Raw)
    | st.lists(st.text(max_size=9), max_size=20)
)


@given(st.lists(PIECES, max_size=40))
def test_values_are_spliced_one_behind_the_other(values: list[Any]) -> None:
    single = [bytes(v) if isinstance(v, Raw) else codec.encode(v) for v in values]
    assert body(codec.spliced(values)) == b"".join(single)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 65_535])
def test_any_number_of_values_is_spliced(size: int) -> None:
    assert body(codec.spliced([Raw(b"\x07\x08")] * size)) == b"\x07\x08" * size


@pytest.mark.parametrize("others", [0, 20])
def test_a_lone_surrogate_is_spliced_as_it_came(others: int) -> None:
    spliced = body(codec.spliced(["\ud800", ["a\udfff"], *[1] * others]))
    assert spliced == b"\xa3\xed\xa0\x80\x91\xa4a\xed\xbf\xbf" + b"\x01" * others
