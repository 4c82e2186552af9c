"""What happens, as it is written for those who look on."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.model.outcome import Event, Remark
from tandemq.server.telling import CLOSE, LARGEST, Told, as_message, as_raw, as_sse, framed, line

PACKED = msgspec.msgpack.encode({"r": [1, None, "ü"]})


def unframed(data: bytes) -> bytes:
    """Return what a frame of less than 64 KiB holds."""
    assert data[0] == 0x81
    size, start = data[1], 2
    if size == 126:
        size, start = int.from_bytes(data[2:4], "big"), 4
    assert len(data) == start + size
    return data[start:]


def test_an_event_of_a_stream_has_a_number_a_name_and_one_line_of_data() -> None:
    event = Event("failed", "q", "j", 7, {"error": "a\nb\r\nc", "data": PACKED, "terminal": True})
    text = as_sse(Told(3, event)).decode()
    assert text.endswith("\n\n")
    number, name, data = text[:-2].split("\n")
    assert (number, name) == ("id: 3", "event: job:failed")
    told = json.loads(data.removeprefix("data: "))
    assert told == {"queue": "q", "jobId": "j", "error": "a\nb\r\nc", "timestamp": 7}


@pytest.mark.parametrize(("type", "name"), [("pulled", "job:active"), ("waiting", "job:waiting")])
def test_events_of_jobs_have_names_of_their_own(type: str, name: str) -> None:
    assert Told(1, Event(type, "q", "j", 7, {})).name == name


def test_a_remark_is_told_as_it_is() -> None:
    remark = Remark("queue:paused", "q", 7, {"queue": "q"})
    assert as_sse(Told(1, remark)) == b'id: 1\nevent: queue:paused\ndata: {"queue":"q"}\n\n'
    told = json.loads(unframed(as_message(Told(1, remark), remark)))
    assert told == {"event": "queue:paused", "ts": 7, "data": {"queue": "q"}}
    assert as_raw(Told(1, remark), remark) == b""


def test_an_event_is_told_whole_to_who_never_chose() -> None:
    event = Event("completed", "q", "j", 7, {"data": PACKED, "error": None})
    assert json.loads(unframed(as_raw(Told(1, event), event))) == {
        "eventType": "completed",
        "queue": "q",
        "jobId": "j",
        "timestamp": 7,
        "data": {"r": [1, None, "ü"]},
    }


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536, 100_000])
def test_a_frame_tells_its_length_in_the_shortest_way(size: int) -> None:
    data = framed(b"x" * size)
    head = 2 if size < 126 else 4 if size < 65_536 else 10
    assert len(data) == head + size
    assert framed(b"\x03\xe8", CLOSE) == b"\x88\x02\x03\xe8"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_what_is_written_reads_back_in_one_line(value: Any) -> None:
    text = line({"x": value})
    assert b"\n" not in text
    assert b"\r" not in text
    assert json.loads(text) == {"x": value}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\xd4\x05\x01", {}),  # an extension of some client
        (b"\xd4\x00\x00", {}),  # undefined
        (b"\x92\x01\xd4\x00\x00", {"data": [1, None]}),
        (b"\xa3\xed\xa0\x80", {"data": None}),  # half of a surrogate pair
        (b"\x91" * 500 + b"\xc0", {"data": None}),  # nested too deeply
        (b"\xcb\x7f\xf8" + bytes(6), {"data": None}),  # not a number
        (b"\xcb\x42\x78\xbc\xfe\x56\x80\x00\x00", {"data": 1_700_000_000_000}),
        (b"\x81\x01\x02", {"data": {"1": 2}}),
    ],
)
def test_odd_data_cost_nobody_an_event(data: bytes, told: dict[str, Any]) -> None:
    event = Event("completed", "q", "j", 7, {"data": data})
    shown = json.loads(unframed(as_raw(Told(1, event), event)))
    assert shown.items() >= told.items()
    assert ("data" in shown) == bool(told)


def test_large_data_are_left_out() -> None:
    data = msgspec.msgpack.encode("x" * LARGEST)
    event = Event("completed", "q", "j", 7, {"data": data, "error": "e"})
    told = json.loads(unframed(as_raw(Told(1, event), event)))
    assert (told["error"], "data" in told) == ("e", False)


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    assert json.loads(line({"queue": "a\ud800b"})) == {"queue": "a?b"}
    assert json.loads(line({"a\ud800": ["\udfff"]})) == {"a?": ["?"]}
