"""Large data is looked over in pieces: what is told of it is what a decoder tells of the whole."""

from __future__ import annotations

import json
import math
import tracemalloc

import msgpack
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.wires.bunqueue.test_lenient import ENCODED, RECORDED

from tandemq.model import leaves
from tandemq.model.body import MAX_DEPTH, Malformed, TooMany
from tandemq.model.leaves import Steps, json_length_over, light, survey, weight

UNDEF = b"\xd4\x00\x00"

# -------------------------------------------------------------------------------- JSON length


def json_text(value: object) -> str:
    """JSON.stringify, written from its definition; whole floats print as integers."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return "null"
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, dict):
        pairs = ((json.dumps(k, ensure_ascii=False), json_text(v)) for k, v in value.items())
        return "{" + ",".join(f"{k}:{v}" for k, v in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


NUMBERS = st.floats(0.001, 1e9).filter(lambda n: n % 1) | st.integers(-(2**31), 2**32 - 1)
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(st.text(max_size=5).filter(lambda k: k != "__proto__"), inner, max_size=6)
    ),
    max_leaves=20,
)


@given(PLAIN)
@example(["\x00" * 50])
@example([False] * 50)
def test_the_json_text_is_measured_to_the_character(value):
    raw, length = msgpack.packb(value), len(json_text(value))
    assert length <= 6 * len(raw)
    for limit in range(max(length - 3, 0), length):
        assert json_length_over(raw, limit)
    for limit in range(length, length + 3):
        assert not json_length_over(raw, limit)


@pytest.mark.parametrize(
    "raw", [b"\x92\x01" + UNDEF, b"\xa2a\xff", b"\xa5abc", b"\x91" * 5_000 + b"\x90"]
)
def test_what_json_cannot_say_counts_as_many_characters_as_it_has_bytes(raw):
    assert json_length_over(raw, len(raw) - 1)
    assert not json_length_over(raw, len(raw))


def test_what_holds_too_many_values_is_too_long_without_being_decoded():
    million = b"\xdd" + (1_000_000).to_bytes(4, "big") + b"\x90" * 1_000_000
    assert json_length_over(million, 1_000_000)


def test_the_limit_of_ten_megabytes_is_met_to_the_character():
    assert not json_length_over(msgpack.packb("x" * 10_485_758), 10_485_760)
    assert json_length_over(msgpack.packb("x" * 10_485_759), 10_485_760)


@given(ENCODED, st.integers(0, 300))
def test_binaries_and_extensions_have_some_length_too(raw, limit):
    if json_length_over(raw, limit):
        assert len(raw) * 6 > limit


def test_json_text_may_be_measured_in_bytes():
    raw = msgpack.packb("ü" * 5)
    assert not json_length_over(raw, 7)
    assert json_length_over(raw, 11, in_bytes=True)
    assert not json_length_over(raw, 12, in_bytes=True)


@pytest.mark.parametrize("in_bytes", [False, True])
def test_what_is_longer_than_any_json_text_of_the_limit_is_not_looked_into(in_bytes, monkeypatch):
    monkeypatch.setattr(leaves, "_json_characters", None)
    monkeypatch.setattr(leaves, "_json_bytes", None)
    assert json_length_over(msgpack.packb("x" * 5_001), 1_000, in_bytes=in_bytes)
    assert not json_length_over(msgpack.packb("x" * 100), 1_000, in_bytes=in_bytes)


@given(PLAIN)
@example(["\U0001f4a5" * 9])
@example([0] * 9)
@example([math.nan] * 9)
def test_no_value_has_more_than_five_bytes_for_a_character(value):
    for raw in (msgpack.packb(value), msgpack.packb(value, use_single_float=True)):
        assert len(json_text(value)) >= len(raw) * leaves.LEAST_PER_BYTE - 1


@given(ENCODED)
def test_no_question_about_odd_values_ever_fails(raw):
    json_length_over(raw, 3)


@given(st.binary(max_size=120))
def test_no_question_about_random_bytes_ever_fails(raw):
    json_length_over(raw, 3)


@given(st.sampled_from(RECORDED), st.binary(min_size=1, max_size=4), st.data())
def test_no_question_about_a_spoilt_frame_ever_fails(frame, spoilt, data):
    at = data.draw(st.integers(0, len(frame)))
    json_length_over(frame[:at] + spoilt + frame[at + data.draw(st.integers(0, 3)) :], 3)


# -------------------------------------------------------------------------------- survey


def json_length(piece: bytes) -> int:
    return len(msgspec.json.encode(msgspec.msgpack.decode(piece)).decode())


def surveyed(raw: bytes, most: int = 10**9) -> tuple[int, list[object], int]:
    """The length of the JSON text, the leaves in their order, and the steps that it took."""
    found: list[object] = []

    def look(piece: bytes) -> int:
        found.extend(msgspec.msgpack.decode(piece))
        return json_length(piece)

    steps = Steps(most)
    return survey(raw, look, steps), found, most - steps.left


def leaves_of(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for pair in value.items() for part in pair for leaf in leaves_of(part)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves_of(item)]
    return [] if isinstance(value, bytes) else [value]


SINGLE = st.sampled_from([0, -1, None, True, "", [], {}, "ab", [1], {"a": 1}])
RUNS = st.tuples(SINGLE, st.integers(0, 3 * leaves.RUN)).map(lambda run: [run[0]] * run[1])
SOME = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**31), 2**32 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.binary(max_size=40)
    | RUNS
    | st.lists(SINGLE, max_size=3 * leaves.RUN),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=20,
)


@given(SOME)
@example([[]] * 100)
@example({"a": [1] * 100, "b": [{}] * 100})
@example([[1] * 33, [[]] * 34, {"k": [None] * 33}, 2])
def test_a_survey_finds_every_leaf_and_the_length_of_the_text(value):
    raw = msgpack.packb(value)
    length, found, _ = surveyed(raw)
    assert found == leaves_of(value)
    assert length == json_length(raw)


@given(SOME, st.integers(1, 7), st.integers(1, 40))
def test_however_small_the_pieces_are(value, count, size):
    raw = msgpack.packb(value)
    before = leaves.CHUNK, leaves.CHUNK_BYTES
    leaves.CHUNK, leaves.CHUNK_BYTES = count, size
    try:
        length, found, _ = surveyed(raw)
    finally:
        leaves.CHUNK, leaves.CHUNK_BYTES = before
    assert (length, found) == (json_length(raw), leaves_of(value))


@given(SOME.flatmap(lambda value: st.just(msgpack.packb(value))))
def test_a_survey_takes_a_step_for_a_value_at_most_and_two_more_for_a_full_list(raw):
    containers, values = 0, 0
    todo = [msgpack.unpackb(raw, strict_map_key=False)]
    while todo:
        value = todo.pop()
        values += 1
        if isinstance(value, (str, bytes)):
            containers += len(value.encode() if isinstance(value, str) else value) > 31
        if isinstance(value, (dict, list)) and value:
            containers += 1
            todo += [*value.keys(), *value.values()] if isinstance(value, dict) else value
    *_, steps = surveyed(raw)
    assert steps <= values + leaves.DEAR * containers
    assert surveyed(raw, steps)[2] == steps
    with pytest.raises(TooMany):
        surveyed(raw, (steps - 1) // (1 + leaves.DEAR))


@pytest.mark.parametrize("leaf", [b"\x01", b"\xff", b"\xc0", b"\xc3", b"\xa0", b"\x80", b"\x90"])
def test_values_of_a_single_byte_go_many_to_a_step(leaf):
    raw = b"\xdd" + (1_000_000).to_bytes(4, "big") + leaf * 1_000_000
    *_, steps = surveyed(raw)
    assert steps < 100


@pytest.mark.parametrize(
    "key", [b"\x05", b"\xc0", b"\xc3", b"\xca\0\0\0\0", b"\x90", b"\x80", b"\xc4\x01a", UNDEF]
)
def test_a_key_that_is_no_text_is_found_wherever_it_stands(key):
    for before in (b"\x82\xa1a\x01", b"\x82\xa1a\x91\x01", b"\x82\xa1a\x81\xa1b\xa1c"):
        raw = before + key + b"\x01"
        for outer in (raw, b"\x92\x01" + raw, b"\x81\xa1k" + raw):
            with pytest.raises(Malformed, match="no text"):
                surveyed(outer)


def test_steps_are_used_up_by_values_that_are_refused_too():
    steps = Steps(100)
    with pytest.raises(Malformed):
        survey(b"\x93\x01\x02\x81\x01\x02", lambda _: 0, steps)
    assert steps.left < 96


def test_what_is_said_of_a_piece_goes_through():
    def look(_):
        raise msgspec.DecodeError("no")

    with pytest.raises(msgspec.DecodeError):
        survey(b"\x91\x01", look, Steps(9))


@pytest.mark.parametrize("level", [b"\x91", b"\x81\xa1k"])
def test_data_is_surveyed_as_deep_as_it_may_be_and_no_deeper(level):
    assert surveyed(level * MAX_DEPTH + b"\x07")[1][-1] == 7
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(Malformed, match="deeply"):
            surveyed(level * depth + b"\x07")


HEAVY = {
    "empty lists": b"\x90",
    "empty maps": b"\x80",
    "lists of a list": b"\x91\x90",
    "small maps": b"\x81\xa0\x01",
    "short texts": b"\xa2ab",
    "numbers": b"\x01",
    "floats": b"\xcb\x3f\xf8" + bytes(6),
    "records": b"\x83\xa2id\xcd\x10\x10\xa4name\xa5abcde\xa2ok\xc3",
}


def many(member: bytes, size: int) -> bytes:
    count = size // len(member)
    return b"\xdd" + count.to_bytes(4, "big") + member * count


@pytest.mark.parametrize("kind", HEAVY)
def test_a_survey_needs_no_more_memory_for_more_values(kind, monkeypatch):
    monkeypatch.setattr(leaves, "CHUNK", 1_000)
    peaks = []
    for size in (40_000, 80_000):
        raw = many(HEAVY[kind], size)
        tracemalloc.start()
        try:
            survey(raw, json_length, Steps(10**9))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 50_000
    assert peaks[1] < 300_000


@pytest.mark.parametrize("kind", HEAVY)
def test_a_value_weighs_about_what_it_takes_when_it_is_built(kind):
    raw = many(HEAVY[kind], 300_000)
    tracemalloc.start()
    try:
        built = msgspec.msgpack.decode(raw)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert built
    numbers = 32 * raw.count(b"\xcb")
    assert taken - numbers <= 1.2 * (weight(raw) + len(raw) * leaves.MEMBER)


def test_what_is_small_or_one_large_text_is_light_and_a_million_lists_are_not():
    assert light(HEAVY["empty lists"] * leaves.ALWAYS_LIGHT)
    assert light(msgpack.packb("x" * (5 << 20)))
    assert not light(many(b"\x90", 1 << 20))
