"""The tolerant reader against an independent decoder, and against JavaScript's own texts."""

from __future__ import annotations

import contextlib
import math
import struct
import tracemalloc

import msgpack
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.msgpack import Ext

from tandemq.model.body import skip
from tandemq.wires.bunqueue.lenient import (
    MAX_DEPTH,
    MAX_VALUES,
    NEVER_USED,
    UNDEFINED,
    Malformed,
    Reader,
    WideInteger,
    js_text,
    read_command,
    truthy,
)

UNDEF = b"\xd4\x00\x00"

# ------------------------------------------------------- values in random, but legal, encodings


def of_size(first: int, size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size).map(lambda body: bytes((first,)) + body)


def sized(first: int, body: bytes, extra: bytes = b"") -> st.SearchStrategy[bytes]:
    """The forms with a length of one, two and four bytes; `first` begins the shortest."""
    forms = [
        bytes((first + n,)) + len(body).to_bytes(width, "big") + extra + body
        for n, width in enumerate((1, 2, 4))
    ]
    if first == 0xD9 and len(body) < 32:
        forms.append(bytes((0xA0 | len(body),)) + body)
    return st.sampled_from(forms)


def members(parts: list[bytes], count: int, fixed: int, wide: int) -> st.SearchStrategy[bytes]:
    heads = [
        bytes((wide,)) + count.to_bytes(2, "big"),
        bytes((wide + 1,)) + count.to_bytes(4, "big"),
    ]
    if count < 16:
        heads.append(bytes((fixed | count,)))
    return st.sampled_from(heads).map(lambda head: head + b"".join(parts))


def listed(parts: list[bytes]) -> st.SearchStrategy[bytes]:
    return members(parts, len(parts), 0x90, 0xDC)


def mapped(pairs: list[tuple[bytes, bytes]]) -> st.SearchStrategy[bytes]:
    return members([key + value for key, value in pairs], len(pairs), 0x80, 0xDE)


def float_bytes(number: float) -> bytes:
    return b"\xcb" + struct.pack(">d", number)


TEXTS = (st.text(max_size=40).map(str.encode) | st.binary(max_size=9)).flatmap(
    lambda body: sized(0xD9, body)
)
INTEGERS = st.sampled_from(
    [(0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8), (0xD0, 1), (0xD1, 2), (0xD2, 4), (0xD3, 8)]
).flatmap(lambda form: of_size(*form))
SINGLES = st.sampled_from([*range(0x80), 0xC0, 0xC2, 0xC3, *range(0xE0, 0x100)]).map(
    lambda first: bytes((first,))
)
FLOATS = st.floats(allow_nan=False).map(float_bytes)
BINARIES = st.binary(max_size=40).flatmap(lambda body: sized(0xC4, body))
KINDS = st.sampled_from([0, 1, 5, 127, 128, 254]).map(lambda kind: bytes((kind,)))
EXTENSIONS = st.tuples(KINDS, st.binary(max_size=20)).flatmap(
    lambda both: sized(0xC7, both[1], both[0])
) | st.tuples(KINDS, st.sampled_from([0, 1, 2, 3, 4])).flatmap(
    lambda both: st.binary(min_size=2 ** both[1], max_size=2 ** both[1]).map(
        lambda body: bytes((0xD4 + both[1],)) + both[0] + body
    )
)
LEAVES = TEXTS | INTEGERS | SINGLES | FLOATS | BINARIES | EXTENSIONS
KEYS = TEXTS | INTEGERS | SINGLES
ENCODED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=18).flatmap(listed)
        | st.lists(st.tuples(KEYS, inner), max_size=18).flatmap(mapped)
    ),
    max_leaves=20,
)
NAMES = st.sampled_from(
    ["cmd", "queue", "data", "result", "results", "jobs", "input", "reqId", "__proto__", "x"]
).flatmap(lambda name: sized(0xD9, name.encode()))
JOBS = st.lists(st.lists(st.tuples(NAMES, ENCODED), max_size=3).flatmap(mapped), max_size=3)
COMMANDS = st.lists(st.tuples(NAMES | KEYS, ENCODED | JOBS.flatmap(listed)), max_size=5).flatmap(
    mapped
)

RECORDED = [
    bytes.fromhex(text)
    for text in (
        "83a3636d64a5436f756e74a57175657565a573706c6974a57265714964a27331",
        "82a3636d6491a450555348a57265714964a27232",
        "84a3636d64a5436f756e74a57175657565a178a57265714964a1740501",
        "84a3636d64a5436f756e74a57175657565a178a57265714964a174a95f5f70726f746f5f5f81a8706f6c6c75"
        "74656401",
        "de0003d903636d64d905436f756e74d9057175657565da000178db000000057265714964d90161",
        "84a3636d64a450555348a57175657565a968656c6c6f2d657874a46461746181a174d6ff6553f100a5726571"
        "4964a174",
        "84a3636d64a5505553484ba57175657565a162a46a6f62739182a46461746181a16ed30000000000000005a3"
        "74746cd40000a57265714964a131",
        "83a3636d64a441434b42a369647392a161a162a7726573756c74739281a161cb3ff8000000000000d40000",
    )
]


# --------------------------------------------------------------- what an independent oracle says


class Pairs(list):
    """A map as it stands, so that 1, True and 1.0 stay different keys."""


def oracle(raw: bytes) -> object:
    return msgpack.unpackb(
        raw,
        strict_map_key=False,
        unicode_errors="replace",
        object_pairs_hook=Pairs,
        ext_hook=Ext,
    )


def key_seen(key: object) -> str:
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return key if isinstance(key, str) else str(key)


def seen(value: object) -> object:
    """The oracle's value as the reader should give it."""
    if isinstance(value, Pairs):
        return {key_seen(k): seen(v) for k, v in value if k != "__proto__"}
    if isinstance(value, list):
        return [seen(member) for member in value]
    return UNDEFINED if isinstance(value, Ext) and value.code == 0 else value


def value_of(raw: bytes) -> object:
    """Read a value in a place where everything is decoded."""
    return read_command(b"\x91" + raw)[0]


@given(ENCODED)
def test_every_legal_encoding_is_read_as_an_independent_decoder_reads_it(raw):
    assert value_of(raw) == seen(oracle(raw))


@given(ENCODED, st.binary(max_size=5))
def test_skipping_finds_the_end_of_every_value(raw, tail):
    assert skip(b"\xc3" + raw + tail, 1) == 1 + len(raw)


def slices(raw: bytes) -> dict[str, bytes]:
    """Cut a map with the oracle's own skipping."""
    unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors="replace")
    unpacker.feed(raw)
    found = {}
    for _ in range(unpacker.read_map_header()):
        key = key_seen(unpacker.unpack())
        start = unpacker.tell()
        unpacker.skip()
        found[key] = raw[start : unpacker.tell()]
    return found


def is_undefined(raw: bytes) -> bool:
    return seen(oracle(raw)) is UNDEFINED


@given(COMMANDS)
def test_user_data_is_cut_out_byte_for_byte_and_the_rest_is_decoded(raw):
    found = read_command(raw)
    expected = slices(raw)
    expected.pop("__proto__", None)
    assert set(found) == {key for key, value in expected.items() if not is_undefined(value)}
    for key, value in found.items():
        if key in ("data", "result"):
            assert type(value) is msgspec.Raw
            assert bytes(value) == expected[key]
        elif key not in ("jobs", "results"):
            assert value == seen(oracle(expected[key]))


@given(st.lists(st.lists(st.tuples(NAMES, ENCODED), max_size=4).flatmap(mapped), max_size=4))
def test_data_inside_the_jobs_of_a_batch_is_cut_out_byte_for_byte(maps):
    batch = read_command(
        b"\x81\xa4jobs" + msgpack.Packer().pack_array_header(len(maps)) + b"".join(maps)
    )
    for found, raw in zip(batch["jobs"], maps, strict=True):
        for key in ("data", "result"):
            expected = slices(raw).get(key)
            if expected is None or is_undefined(expected):
                assert key not in found
            else:
                assert bytes(found[key]) == expected


@given(st.lists(ENCODED, max_size=20))
def test_every_member_of_results_is_cut_out_byte_for_byte(parts):
    found = read_command(b"\x81\xa7results\xdc" + len(parts).to_bytes(2, "big") + b"".join(parts))
    assert [bytes(raw) for raw in found["results"]] == parts


def test_a_flow_member_carries_its_data_one_level_further_down():
    data = b"\x81\xc4\x01k\xcf" + bytes(8)
    raw = b"\x81\xa4jobs\x91\x82\xa2id\xa1a\xa5input\x82\xa4data" + data + b"\xa3ttl" + UNDEF
    [job] = read_command(raw)["jobs"]
    assert (job["id"], bytes(job["input"]["data"]), list(job["input"])) == ("a", data, ["data"])
    nested = b"\x81\xa4jobs\x91" + b"\x81\xa5input" * 600 + b"\xc0"
    with pytest.raises(Malformed):
        read_command(nested)


# ---------------------------------------------------------------------- nothing but Malformed


def read_or_refuse(raw: bytes) -> None:
    with contextlib.suppress(Malformed):
        read_command(raw)


@given(st.binary(max_size=200))
@example(b"")
def test_random_bytes_are_read_or_refused(raw):
    read_or_refuse(raw)


@given(st.binary(max_size=60), st.integers(1, 5))
def test_random_bytes_inside_a_batch_are_read_or_refused(raw, count):
    read_or_refuse(b"\x81\xa4jobs" + bytes((0x90 | count,)) + raw)


@given(st.sampled_from(RECORDED), st.data())
def test_recorded_frames_with_changed_bytes_are_read_or_refused(frame, data):
    changed = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        if not changed:
            return
    read_or_refuse(bytes(changed))


@pytest.mark.parametrize("frame", RECORDED)
def test_every_truncation_and_every_appendix_of_a_recorded_frame_is_malformed(frame):
    read_command(frame)
    for size in range(len(frame)):
        with pytest.raises(Malformed):
            read_command(frame[:size])
    for appendix in (b"\xc0", b"\xc3\xc3", frame):
        with pytest.raises(Malformed):
            read_command(frame + appendix)


BOMBS = [b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff"]
BOMBS += [
    b"\xc6\xff\xff\xff\xff",
    b"\xc9\xff\xff\xff\xff\x05",
    b"\xdc\xff\xff\xc0",
    b"\xde\xff\xff",
]


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("before", [b"", b"\x81\xa1x", b"\x81\xa4data", b"\x81\xa4jobs", b"\x91"])
def test_a_length_without_its_bytes_is_refused_without_reserving_memory(bomb, before):
    tracemalloc.start()
    try:
        with pytest.raises(Malformed):
            read_command(before + bomb + b"abc")
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("before", [b"", b"\x81\xa1x", b"\x81\xa4data", b"\x81\xa7results\x91"])
@pytest.mark.parametrize("level", [b"\x91", b"\x81\xa1k", b"\x81", b"\xdd\0\0\0\1"])
def test_nesting_has_a_limit_and_no_stack_is_exhausted(before, level):
    if level == b"\x81":  # maps as keys of maps
        with pytest.raises(Malformed):
            read_command(before + level * 100_000 + b"\xc0" * 100_001)
        return
    if level == b"\x91" or before:
        read_command(before + level * MAX_DEPTH + b"\x01")
    with pytest.raises(Malformed):
        read_command(before + level * (MAX_DEPTH + 2) + b"\x01")
    with pytest.raises(Malformed):
        read_command(before + level * 200_000 + b"\x01")


def test_a_frame_of_nothing_but_empty_lists_is_refused_before_it_fills_the_memory():
    half = MAX_VALUES // 2 + 1
    tracemalloc.start()
    try:
        lists = b"\xdd" + (2 * half).to_bytes(4, "big") + b"\x90" * (2 * half)
        with pytest.raises(Malformed):
            read_command(b"\x81\xa1a" + lists)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(lists)
    finally:
        tracemalloc.stop()


def test_the_allowance_of_values_is_shared_by_the_whole_frame():
    four = b"\x94\x01\x02\x03\x04"
    assert Reader(b"\x92" + four + four, allowance=10).value() == [[1, 2, 3, 4]] * 2
    with pytest.raises(Malformed):
        Reader(b"\x92" + four + four, allowance=9).value()


# ------------------------------------------------------------------------------------ one by one


def test_the_reserved_byte_is_a_value_of_its_own():
    assert read_command(b"\xc1") is NEVER_USED
    assert truthy(NEVER_USED)
    assert read_command(b"\x81\xa3cmd\xc1") == {"cmd": NEVER_USED}


def test_the_reserved_byte_cannot_be_stored_as_user_data():
    with pytest.raises(Malformed):
        read_command(b"\x81\xa4data\x91\xc1")


@pytest.mark.parametrize("undefined", [UNDEF, b"\xc7\x01\x00\x00", b"\xc7\x00\x00"])
def test_undefined_fields_are_absent(undefined):
    job = b"\x83\xa4data" + undefined + b"\xa3ttl" + undefined + b"\xa1p\x05"
    raw = b"\x83\xa4data" + undefined + b"\xa5delay" + undefined + b"\xa4jobs\x91" + job
    assert read_command(raw) == {"jobs": [{"p": 5}]}
    assert read_command(undefined) is UNDEFINED
    assert read_command(b"\x81\xa5reqId\x91" + undefined) == {"reqId": [UNDEFINED]}


def test_other_extensions_and_timestamps_stay_extensions():
    assert value_of(b"\xd6\xff\x65\x53\xf1\x00") == Ext(-1, b"\x65\x53\xf1\x00")
    assert value_of(b"\xc7\x02\x05ab") == Ext(5, b"ab")
    data = b"\xd6\xff\x65\x53\xf1\x00"
    assert bytes(read_command(b"\x81\xa4data" + data)["data"]) == data


def test_the_last_of_equal_keys_wins_even_when_it_is_undefined():
    assert read_command(b"\x82\xa1a\x01\xa1a\x02") == {"a": 2}
    assert read_command(b"\x82\xa1a\x01\xa1a" + UNDEF) == {}
    assert read_command(b"\x82\xa15\x01\x05\x02") == {"5": 2}


def test_scalar_keys_become_property_names():
    raw = b"\x87\x05\x01\xff\x02\xc0\x03\xc3\x04\xcb\x3f\xf8" + bytes(6) + b"\x05"
    raw += b"\xcf" + bytes(7) + b"\x09\x06" + UNDEF + b"\x07"
    names = {"5": 1, "-1": 2, "null": 3, "true": 4, "1.5": 5, "9": 6, "undefined": 7}
    assert read_command(raw) == names
    assert value_of(raw) == names


@pytest.mark.parametrize("key", [b"\x90", b"\x80", b"\xc4\x01a", b"\xd6\xff" + bytes(4), b"\xc1"])
def test_a_key_that_is_no_scalar_is_malformed(key):
    for before in (b"\x81", b"\x91\x81", b"\x81\xa4jobs\x91\x81"):
        with pytest.raises(Malformed):
            read_command(before + key + b"\x01")


def test_proto_is_dropped_at_every_level():
    proto = b"\x82\xa9__proto__\x81\xa1p\x01\xa1a\x02"
    assert read_command(proto) == {"a": 2}
    assert read_command(b"\x81\xa1m" + proto) == {"m": {"a": 2}}
    assert read_command(b"\x81\xa4jobs\x91" + proto) == {"jobs": [{"a": 2}]}


def test_wide_integers_can_be_told_from_others():
    wide, negative, narrow = read_command(
        b"\x93\xcf" + b"\xff" * 8 + b"\xd3" + b"\xff" * 8 + b"\xce\xff\xff\xff\xff"
    )
    assert (type(wide), wide) == (WideInteger, 2**64 - 1)
    assert (type(negative), negative) == (WideInteger, -1)
    assert (type(narrow), narrow) == (int, 2**32 - 1)


def test_whole_floats_stay_floats():
    assert type(value_of(b"\xcb\x40\x14" + bytes(6))) is float
    assert type(value_of(b"\xca\x40\xa0\x00\x00")) is float
    assert math.isnan(value_of(b"\xcb\x7f\xf8" + bytes(6)))


def test_invalid_utf_8_is_replaced():
    assert value_of(b"\xa3a\xffb") == "a\ufffdb"
    assert value_of(b"\xd9\x03\xed\xa0\x80") == "\ufffd" * 3
    assert read_command(b"\x81\xa1\xff\x01") == {"\ufffd": 1}


# Each text is what a JavaScript engine prints for String(value).
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("PUSH", "PUSH"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (UNDEFINED, "undefined"),
        (5, "5"),
        (-7, "-7"),
        (5.0, "5"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (-0.25, "-0.25"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (9007199254740993.0, "9007199254740992"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (-1.5e300, "-1.5e+300"),
        (0.00001, "0.00001"),
        (0.000001, "0.000001"),
        (0.0000001, "1e-7"),
        (1.25e-9, "1.25e-9"),
        (5e-324, "5e-324"),
        (WideInteger(2**64 - 1), "18446744073709551615"),
        (WideInteger(-3), "-3"),
        (["PUSH"], "PUSH"),
        (["a", "b"], "a,b"),
        ([], ""),
        ([None, UNDEFINED, 1.0], ",,1"),
        ([[1, 2], [], [[3]]], "1,2,,3"),
        ([{}], "[object Object]"),
        ({"a": 1}, "[object Object]"),
        (NEVER_USED, "[object Object]"),
        (b"ab", "ab"),
        (Ext(5, b""), "[object Object]"),
    ],
)
def test_text_is_what_javascript_makes_of_the_value(value, text):
    assert js_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_float_reads_back_as_the_same_float(number):
    assert float(js_text(number)) == number


def test_the_deepest_list_we_read_has_a_text():
    assert js_text(read_command(b"\x91" * MAX_DEPTH + b"\x07")) == "7"


@pytest.mark.parametrize(
    "value", [False, None, UNDEFINED, "", 0, 0.0, -0.0, float("nan"), WideInteger(0)]
)
def test_falsy_values_are_those_of_javascript(value):
    assert not truthy(value)


@pytest.mark.parametrize(
    "value",
    [True, "0", 1, -1.0, float("inf"), WideInteger(1), [], {}, b"", Ext(5, b""), NEVER_USED],
)
def test_everything_else_is_truthy_even_empty_containers(value):
    assert truthy(value)
