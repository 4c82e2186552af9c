"""Users' data that every client can read stays as it is; other data is made readable or refused."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from msgspec import Raw
from tests.wires.bunqueue.test_lenient import ENCODED

from tandemq.commands.table import ABSENT
from tandemq.model.errors import BadRequest
from tandemq.wires.bunqueue.opaque import DEPTH, all_plain, readable, readable_fields

NOT_UTF8 = b"\xa2\xff\xfe"
UNDEFINED = b"\xd4\x00\x00"
UNKNOWN_EXTENSION = b"\xd4\x2a\x00"
TIMESTAMP = b"\xd6\xff\x00\x00\x00\x01"
WIDE = b"\xcf" + (2**40).to_bytes(8, "big")


def seen(raw: bytes) -> object:
    """Return a value as a strict client reads it."""
    return msgpack.unpackb(bytes(readable(Raw(raw))), strict_map_key=True)


@pytest.mark.parametrize(
    "value", [None, True, 7, -1.5, "text", [1, [2]], {"a": {"b": [None]}}, "\N{SNOWMAN}"]
)
def test_what_every_client_can_read_stays_byte_for_byte(value: object) -> None:
    raw = Raw(msgpack.packb(value))
    assert all_plain((raw,))
    assert readable(raw) is raw


def test_data_that_is_absent_need_not_be_read() -> None:
    assert all_plain((ABSENT,))


def test_text_that_is_no_utf_8_is_replaced() -> None:
    assert not all_plain((Raw(NOT_UTF8),))
    assert seen(NOT_UTF8) == "\N{REPLACEMENT CHARACTER}" * 2


def test_names_of_members_become_text() -> None:
    assert seen(b"\x82\x01\xa1a\xc0\xa1b") == {"1": "a", "null": "b"}


def test_undefined_inside_stays_undefined() -> None:
    assert bytes(readable(Raw(b"\x81\xa1a" + UNDEFINED))) == b"\x81\xa1a" + UNDEFINED


def test_a_moment_in_time_stays_and_other_extensions_are_refused() -> None:
    assert bytes(readable(Raw(TIMESTAMP))) == TIMESTAMP
    with pytest.raises(BadRequest, match="JSON serializable"):
        readable(Raw(b"\x91" + UNKNOWN_EXTENSION))


def test_lists_in_lists_beyond_one_look_are_read_slowly_and_kept() -> None:
    deep = b"\x91" * (DEPTH + 1) + b"\x01"
    assert not all_plain((Raw(deep),))
    assert bytes(readable(Raw(deep))) == deep


def test_a_wide_integer_is_narrowed_but_left_in_data_where_it_is_an_error() -> None:
    mixed = b"\x92" + WIDE + NOT_UTF8
    fields = readable_fields({"data": Raw(mixed), "result": Raw(mixed)})
    assert bytes(fields["data"]) == mixed
    assert msgpack.unpackb(bytes(fields["result"]))[0] == float(2**40)


def test_members_of_batches_are_made_readable_too() -> None:
    fields = readable_fields(
        {"jobs": [{"data": Raw(NOT_UTF8)}], "results": [Raw(NOT_UTF8)], "reqId": "1"}
    )
    replaced = msgpack.packb("\N{REPLACEMENT CHARACTER}" * 2)
    assert bytes(fields["jobs"][0]["data"]) == replaced
    assert bytes(fields["results"][0]) == replaced
    assert fields["reqId"] == "1"


@given(ENCODED)
def test_what_was_made_readable_once_stays_as_it_is(raw: bytes) -> None:
    try:
        found = readable(Raw(raw))
    except BadRequest:
        return
    assert bytes(readable(found)) == bytes(found)
