"""What is told about the users' data without touching it, against an independent decoder."""

from __future__ import annotations

import time

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.wires.bunqueue.test_lenient import (
    ENCODED,
    FLOATS,
    INTEGERS,
    KEYS,
    RECORDED,
    TEXTS,
    listed,
    mapped,
    oracle,
    sized,
)

from tandemq.model.body import (
    Malformed,
    holds_wide_integer,
    skip,
    split_legacy_name,
)

UNDEF = b"\xd4\x00\x00"


def valid(raw: bytes) -> bool:
    """Whether the bytes are exactly one well-formed value, however deep."""
    try:
        return skip(raw, 0, len(raw)) == len(raw)
    except Malformed:
        return False


def seconds(function, *arguments) -> float:
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started


# ------------------------------------------------------------------------------ wide integers


def has_wide(raw: bytes) -> bool:
    """Told by asking another decoder for one value after the other."""
    unpacker = msgpack.Unpacker(strict_map_key=False)
    unpacker.feed(raw)
    left = 1
    while left:
        left -= 1
        first = raw[unpacker.tell()]
        if first in (0xCF, 0xD3):
            return True
        if 0x80 <= first <= 0x8F or first in (0xDE, 0xDF):
            left += 2 * unpacker.read_map_header()
        elif 0x90 <= first <= 0x9F or first in (0xDC, 0xDD):
            left += unpacker.read_array_header()
        else:
            unpacker.skip()
    return False


@given(ENCODED)
@example(b"\xa2\xcf\xd3")
@example(b"\xcb\xcf\xcf\xcf\xcf\xd3\xd3\xd3\xd3")
@example(b"\xd9\x02\xcf\xd3")
@example(b"\xc7\x01\xcf\xd3")
@example(b"\x92\xcc\xcf\xcf\x00\x00\x00\x00\x00\x00\x00\x05")
def test_a_wide_integer_is_found_exactly_where_one_is(raw):
    assert holds_wide_integer(raw) == has_wide(raw)


@given(st.binary(max_size=120))
def test_no_question_about_random_bytes_ever_fails(raw):
    holds_wide_integer(raw)
    split_legacy_name(raw)
    valid(raw)


@given(st.sampled_from(RECORDED), st.binary(min_size=1, max_size=4), st.data())
def test_no_question_about_a_spoilt_frame_ever_fails(frame, spoilt, data):
    at = data.draw(st.integers(0, len(frame)))
    raw = frame[:at] + spoilt + frame[at + data.draw(st.integers(0, 3)) :]
    holds_wide_integer(raw)
    split_legacy_name(raw)
    split_legacy_name(b"\x82\xa4name\xa1x" + raw)
    valid(raw)


@pytest.mark.parametrize("head", [b"\xd9%c", b"\xda\x00%c", b"\xc4%c", b"\xc7%c\x05"])
def test_bytes_of_a_text_or_binary_of_any_length_are_no_wide_integer(head: bytes) -> None:
    for size in range(256):
        raw = b"\x92" + head % size + b"\xcf" * size
        assert not holds_wide_integer(raw + b"\x01")
        assert holds_wide_integer(raw + b"\xd3" + bytes(8))


def test_the_deepest_data_is_searched_without_recursion():
    deep = b"\x91" * 300_000
    assert holds_wide_integer(deep + b"\xcf" + bytes(8))
    assert not holds_wide_integer(deep + b"\xcc\xcf")
    assert valid(deep + b"\x01")


def test_a_search_through_a_million_values_is_quick():
    million = b"\xdd" + (1_000_000).to_bytes(4, "big") + b"\xcc\xcf" * 1_000_000
    assert not holds_wide_integer(million)
    assert seconds(holds_wide_integer, million) < 2


# --------------------------------------------------------------------------------- legacy name

NAME = sized(0xD9, b"name")
ENTRIES = st.lists(st.tuples(NAME | KEYS, TEXTS | INTEGERS | FLOATS | ENCODED), max_size=18)


def head(count: int) -> bytes:
    return msgpack.Packer().pack_map_header(count)


@given(ENTRIES.flatmap(lambda entries: st.tuples(st.just(entries), mapped(entries))))
def test_the_last_name_is_taken_out_and_everything_else_kept_byte_for_byte(both):
    entries, raw = both
    named = [oracle(value) for key, value in entries if oracle(key) == "name"]
    kept = [key + value for key, value in entries if oracle(key) != "name"]
    if named and isinstance(named[-1], str):
        assert split_legacy_name(raw) == (named[-1], head(len(kept)) + b"".join(kept))
    else:
        assert split_legacy_name(raw) is None


@given(ENCODED)
def test_only_maps_are_split(raw):
    assert split_legacy_name(b"\x92" + raw + b"\x81\xa4name\xa1x") is None


@pytest.mark.parametrize(
    ("value", "split"),
    [
        ({"name": "mail", "to": "a"}, ("mail", {"to": "a"})),
        ({"name": "mail"}, ("mail", {})),
        ({"name": "", "n": 1}, ("", {"n": 1})),
        ({"name": 5}, None),
        ({"name": None}, None),
        ({"name": ["mail"]}, None),
        ({"n": {"name": "mail"}}, None),
        ({"n": "name"}, None),
        ({}, None),
        (["name", "mail"], None),
        ("name", None),
    ],
)
def test_a_string_name_leaves_the_data_and_anything_else_stays(value, split):
    found = split_legacy_name(msgpack.packb(value))
    assert found == (split and (split[0], msgpack.packb(split[1])))


@pytest.mark.parametrize("count", [15, 16, 17, 65_535, 65_536])
def test_the_map_header_shrinks_with_the_map(count):
    value = {f"k{n}": n for n in range(count - 1)}
    raw = msgpack.packb(value | {"name": "x"})
    assert split_legacy_name(raw) == ("x", msgpack.packb(value))


def test_a_long_map_header_and_long_keys_are_no_obstacle():
    raw = b"\xdf\x00\x00\x00\x02\xd9\x04name\xd9\x01x\xda\x00\x01k\xcd\x00\x05"
    assert split_legacy_name(raw) == ("x", b"\x81\xda\x00\x01k\xcd\x00\x05")


def test_deep_members_stay_as_they_are():
    deep = b"\xa1d" + b"\x91" * 50_000 + b"\x90"
    assert split_legacy_name(b"\x82" + deep + b"\xa4name\xa1x") == ("x", b"\x81" + deep)


# ------------------------------------------------------------------------------------ validity


@given(ENCODED, st.binary(min_size=1, max_size=3))
def test_exactly_one_whole_value_is_valid(raw, tail):
    assert valid(raw)
    assert not valid(raw + tail)
    assert not valid(raw[:-1])


@given(st.binary(max_size=12))
def test_validity_of_random_bytes_agrees_with_an_independent_decoder(raw):
    unpacker = msgpack.Unpacker(strict_map_key=False)
    unpacker.feed(raw)
    try:
        unpacker.skip()
        whole = unpacker.tell() == len(raw)
    except (msgpack.OutOfData, msgpack.FormatError):
        whole = False
    assert valid(raw) == whole


@given(st.lists(ENCODED, max_size=4).flatmap(listed))
def test_a_reserved_byte_anywhere_is_not_valid(raw):
    assert not valid(b"\x92" + raw + b"\xc1")
