"""Users' data on its way in: untouched where all clients read it, made readable or refused else."""

from __future__ import annotations

from itertools import cycle, islice

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from tests.wires.bunqueue.test_lenient import ENCODED

from tandemq.commands.table import ABSENT
from tandemq.model.errors import BadRequest
from tandemq.wires.bunqueue import lenient, opaque
from tandemq.wires.bunqueue.opaque import DEPTH, Glass, all_plain

UNDEFINED = b"\xd4\x00\x00"
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


def made(raw: bytes) -> bytes:
    return bytes(Glass().readable(Raw(raw)))


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
        Glass().readable(Raw(raw))


LEVELS = {
    "lists": [b"\x91"],
    "maps": [b"\x81\xa1k"],
    "both": [b"\x91", b"\x81\xa1k"],
    "long heads": [b"\xdd\0\0\0\1"],
}
DEPTHS = [1, DEPTH, DEPTH + 1, 100, 300, 450, *range(480, 513)]


def nested(levels: str, depth: int, bottom: bytes) -> bytes:
    """A value inside so many lists and maps."""
    return b"".join(islice(cycle(LEVELS[levels]), depth)) + bottom


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("bottom", [b"\xc0", b"\xa3abc", b"\xc4\x01\xff", b"\x90"])
def test_data_stays_byte_for_byte_however_deep_it_is(levels: str, bottom: bytes) -> None:
    for depth in DEPTHS:
        raw = nested(levels, depth, bottom)
        assert made(raw) == raw, depth


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize(
    ("bottom", "shown"),
    [
        (b"\xa1\xff", b"\xa3\xef\xbf\xbd"),
        (UNDEFINED, UNDEFINED),
        (b"\x81\x05\x01", b"\x81\xa15\x01"),
    ],
)
def test_what_is_odd_is_made_readable_however_deep_it_stands(
    levels: str, bottom: bytes, shown: bytes
) -> None:
    for depth in DEPTHS:
        said = made(nested(levels, depth - 1, bottom))
        assert said.endswith(shown), depth
        assert made(said) == said


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("bottom", [b"\xc0", b"\xa1\xff", b"\xd4\x05\x00", b""])
@pytest.mark.parametrize("depth", [514, 600, 1_000, 5_000, 100_000])
def test_what_is_too_deep_is_refused(levels: str, bottom: bytes, depth: int) -> None:
    with pytest.raises(BadRequest, match="JSON serializable"):
        Glass().readable(Raw(nested(levels, depth, bottom)))


def many(member: bytes, size: int) -> bytes:
    count = size // len(member)
    return b"\xdd" + count.to_bytes(4, "big") + member * count


MEMBERS = {
    "empty lists": b"\x90",
    "lists of a list": b"\x91\x90",
    "small maps": b"\x81\xa1a\x01",
    "short texts": b"\xa2ab",
    "numbers": b"\x01",
    "floats": b"\xcb\x3f\xf8" + bytes(6),
    "binaries": b"\xc4\x01\xff",
    "deep": b"\x91" * 20 + b"\x01",
}
SLOWER = {"binaries", "deep"}  # what is only found to be plain when it is surveyed
ODD = {"bad text": b"\xa1\xff", "odd key": b"\x81\x05\x01", "undefined": UNDEFINED}


@pytest.mark.parametrize("kind", MEMBERS)
def test_large_data_that_everybody_can_read_is_not_made_anew(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lenient, "Reader", None)
    for size in (1_000, 1 << 20):
        raw = Raw(many(MEMBERS[kind], size))
        assert Glass().readable(raw) is raw
        plain = kind not in SLOWER or size > 1_000
        assert Glass().all_plain([raw, ABSENT]) == plain


@pytest.mark.parametrize("kind", MEMBERS)
@pytest.mark.parametrize("odd", ODD)
def test_what_is_odd_in_large_data_is_found(kind: str, odd: str) -> None:
    good = many(MEMBERS[kind], 900_000)
    for raw in (b"\x92" + ODD[odd] + good, b"\x92" + good + ODD[odd]):
        assert not Glass().all_plain([Raw(good), Raw(raw)])


def few(monkeypatch: pytest.MonkeyPatch, **limits: int) -> Glass:
    """A glass that is good for little."""
    for name, limit in limits.items():
        monkeypatch.setattr(opaque, name, limit)
    return Glass()


@pytest.mark.parametrize("kind", ["empty lists", "lists of a list", "small maps", "short texts"])
def test_small_data_is_built_unless_it_is_much_together(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = Raw(many(MEMBERS[kind], 1_000))
    surveyed: list[int] = []
    survey = opaque.leaves.survey
    monkeypatch.setattr(
        opaque.leaves, "survey", lambda *given: (surveyed.append(1), survey(*given))
    )
    assert few(monkeypatch, FREE=10_100, BUILT=0).all_plain([raw] * 10)
    assert not surveyed
    glass = few(monkeypatch, FREE=0, BUILT=opaque.leaves.weight(bytes(raw)) * 5)
    assert glass.all_plain([raw] * 10)
    assert len(surveyed) == 5


@pytest.mark.parametrize("kind", MEMBERS)
def test_data_of_one_frame_is_looked_into_together_and_no_further(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = Raw(many(MEMBERS[kind], 100_000))
    glass = few(monkeypatch, FREE=0, BUILT=-1, STEPS=100)
    with pytest.raises(BadRequest, match="too many values"):
        glass.all_plain([raw] * 200)
    glass = few(monkeypatch, STEPS=1)
    with pytest.raises(BadRequest, match="too many values"):
        glass.fields({"results": [raw] * 2})


def test_any_data_of_the_limit_can_be_looked_into_but_for_its_brackets() -> None:
    for member in (b"\x01", b"\x90", b"\xa0", b"\xcc\xff", b"\xa1a"):
        assert Glass().all_plain([Raw(many(member, 5_242_000 * len(member)))])


@pytest.mark.parametrize("odd", ODD)
def test_so_many_values_of_one_frame_are_made_readable_and_no_more(
    odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = Raw(many(ODD[odd], 400))
    assert few(monkeypatch, REMADE=1_000).fields({"results": [raw, raw]})
    with pytest.raises(BadRequest, match="too many values"):
        few(monkeypatch, REMADE=1_000).fields({"results": [raw] * 20})
    with pytest.raises(BadRequest, match="as it is"):
        few(monkeypatch, REMADE_BYTES=300).readable(raw)


def test_what_is_absent_is_plain() -> None:
    assert all_plain([ABSENT])


def test_fields_are_made_readable_wherever_users_data_stands() -> None:
    odd = Raw(b"\x81\x01\x02")
    found = Glass().fields(
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
    fields = Glass().fields({"data": wide, "results": [Raw(b"\x92\x01" + bytes(wide)[1:])]})
    assert bytes(fields["data"]) == bytes(wide)
    narrowed = read_like_the_official_client(bytes(fields["results"][0]))
    assert narrowed == [1, float(2**40)]
