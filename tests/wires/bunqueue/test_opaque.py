"""Users' data on its way in: untouched where all clients read it, made readable or refused else."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from tests.wires.bunqueue.test_lenient import ENCODED

from tandemq.commands.table import ABSENT
from tandemq.model.errors import BadRequest
from tandemq.wires.bunqueue.opaque import all_plain, readable, readable_fields

UNDEFINED = b"\xd4\x00\x00"
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


def made(raw: bytes) -> bytes:
    return bytes(readable(Raw(raw)))


def read_like_the_official_client(raw: bytes) -> object:
    return msgpack.unpackb(raw, raw=False, strict_map_key=True)


@given(PLAIN)
def test_what_everybody_can_read_stays_byte_for_byte(value: object) -> None:
    raw = msgpack.packb(value)
    assert made(raw) == raw


@given(ENCODED)
def test_what_was_made_readable_once_stays_as_it_is(raw: bytes) -> None:
    try:
        found = made(raw)
    except BadRequest:
        return
    assert made(found) == found


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"\x81\x05\x01", {"5": 1}),
        (b"\x81\xc0\x01", {"null": 1}),
        (b"\x81\xc3\x01", {"true": 1}),
        (b"\x92\xa1\xff\x01", ["\ufffd", 1]),
        (b"\x81\xa1k\x91\xa2a\xfe", {"k": ["a\ufffd"]}),
        (b"\x81\xa1b\xc4\x02\x00\xff", {"b": b"\x00\xff"}),
    ],
)
def test_what_some_cannot_read_takes_the_form_that_javascript_sees(
    raw: bytes, value: object
) -> None:
    assert not all_plain([Raw(raw)])
    assert read_like_the_official_client(made(raw)) == value


def test_undefined_and_timestamps_are_known_to_every_client() -> None:
    assert made(b"\x91" + UNDEFINED) == b"\x91" + UNDEFINED
    stamp = b"\xd6\xff\x65\x53\xf1\x00"
    assert made(b"\x91" + stamp) == b"\x91" + stamp


@pytest.mark.parametrize(
    "raw", [b"\xc7\x03\x4dabc", b"\x91\xd4\x07\x01", b"\x81\x90\x01", b"\x91\xc1", b"\x92\x01"]
)
def test_what_has_no_readable_form_is_refused(raw: bytes) -> None:
    with pytest.raises(BadRequest, match="JSON serializable"):
        readable(Raw(raw))


def test_deep_nesting_is_read_slowly_or_refused_but_never_raises_otherwise() -> None:
    assert made(b"\x91" * 300 + b"\xc0") == b"\x91" * 300 + b"\xc0"
    with pytest.raises(BadRequest):
        readable(Raw(b"\x91" * 5_000 + b"\xc0"))


def test_what_is_absent_is_plain() -> None:
    assert all_plain([ABSENT])


def test_fields_are_made_readable_wherever_users_data_stands() -> None:
    odd = Raw(b"\x81\x01\x02")
    found = readable_fields(
        {
            "cmd": "X",
            "data": odd,
            "jobs": [{"data": odd}, {"input": {"data": odd}}],
            "results": [odd],
        }
    )
    texts = [
        found["data"],
        found["jobs"][0]["data"],
        found["jobs"][1]["input"]["data"],
        found["results"][0],
    ]
    assert [read_like_the_official_client(bytes(raw)) for raw in texts] == [{"1": 2}] * 4


def test_a_wide_integer_stays_in_data_where_it_is_refused_and_is_narrowed_in_results() -> None:
    wide = Raw(b"\x91\xcf\x00\x00\x01\x00\x00\x00\x00\x00")
    fields = readable_fields({"data": wide, "results": [Raw(b"\x92\x01" + bytes(wide)[1:])]})
    assert bytes(fields["data"]) == bytes(wide)
    narrowed = read_like_the_official_client(bytes(fields["results"][0]))
    assert narrowed == [1, float(2**40)]
