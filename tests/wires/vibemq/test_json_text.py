"""JSON looked at without being read: strict, in UTF-8, and not too deep."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandemq.wires.vibemq.json_text import DEPTH, is_utf8, too_deep, well_formed

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + closing * depth


@pytest.mark.parametrize(
    "text",
    [
        b"null", b"0", b"-0", b"1e400", b"12345678901234567890", b'""', b'"\\u0000"', b" [ ] ",
        b'{"a":1,"a":2}', '"é☃🚀"'.encode(), b'"\\ud83d\\ude00"', b'"\x7f"', b'{"":{"":[]}}',
    ],
)  # fmt: skip
def test_json_is_well_formed(text: bytes) -> None:
    assert well_formed(text)


@pytest.mark.parametrize(
    "text",
    [
        b"", b" ", b"hello", b"nul", b"nullx", b"NaN", b"-Infinity", b"-", b"01", b"1.",
        b".5", b"+1", b"1e", b"0x1", b"1 2", b"[1,]", b'{"a":1,}', b'{"a"}', b"{a:1}", b"[", b"]",
        b"'a'", b'"', b'"a', b'"\\x"', b'"\\u12"', b'"a\nb"', b'"\x00"', b"/**/1", b"\xef\xbb\xbf1",
        b'"\xff"', b'{"\xff":1}', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\udc00"',
        b'"\\ud800\\u0041"', nested(100_000), b"[" * 100_000,
    ],
    ids=lambda text: repr(text[:20]),
)  # fmt: skip
def test_anything_else_is_not(text: bytes) -> None:
    assert not well_formed(text)


@given(VALUES, st.booleans())
def test_what_the_standard_library_writes_is_well_formed(value, ascii_only) -> None:
    try:
        text = json.dumps(value, ensure_ascii=ascii_only).encode()
    except UnicodeEncodeError:
        return
    assert well_formed(text) == (b"\\ud" not in text or json.loads(text) == value)


@given(st.binary(max_size=60))
@example(b'"\xff"')
def test_nothing_is_well_formed_that_the_standard_library_refuses(text) -> None:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    if well_formed(text):
        json.loads(text.decode(), parse_constant=refuse)


@given(
    st.binary(max_size=20) | st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace"))
)
def test_utf8_is_what_decodes(text) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        assert not is_utf8(text)
    else:
        assert is_utf8(text)


# -- depth ---------------------------------------------------------------------------------------


def depth_of(value) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@pytest.mark.parametrize("depth", [0, 1, 2, 3, DEPTH])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b" [ ", b" ] ")])
def test_one_level_more_is_too_deep(depth, opening, closing) -> None:
    inner = b"null" if opening.startswith(b"{") else b""
    fits = opening * depth + inner + closing * depth
    assert not too_deep(fits, depth)
    assert too_deep(opening + fits + closing, depth)


@given(VALUES, st.integers(0, 6))
def test_the_depth_is_that_of_the_value(value, depth) -> None:
    assert too_deep(json.dumps(value).encode(), depth) == (depth_of(value) > depth)


@pytest.mark.parametrize(
    "text",
    [
        b'"' + b"[" * 100 + b'"',
        b'["' + b'\\"[{' * 100 + b'"]',
        b'["\\\\",' + b'"[[[",' * 50 + b"1]",
    ],
)
def test_brackets_in_texts_do_not_count(text: bytes) -> None:
    assert well_formed(text)
    assert not too_deep(text, 1)


def test_many_shallow_values_are_not_deep() -> None:
    assert not too_deep(b"[" + b"{}," * 1000 + b"[]]", 2)
    assert too_deep(b"[" + b"{}," * 1000 + b"[[]]]", 2)


@pytest.mark.parametrize(
    "part", [b'"",', b"[],", b'"",[],', b'"[",', b'"[",[],', b'"\\"",', b'"\\\\",[],', b"[[[1]]],"]
)
def test_a_look_at_a_large_text_takes_a_few_times_its_memory_at_most(part: bytes) -> None:
    text = b"[" + part * (1_000_000 // len(part)) + b"1]"
    tracemalloc.start()
    try:
        assert well_formed(text)
        assert not too_deep(text)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(text)
    finally:
        tracemalloc.stop()
