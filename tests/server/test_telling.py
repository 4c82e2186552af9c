"""What happens, as it is written for those who look on."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.model.outcome import Event, Remark
from tandemq.server.telling import CLOSE, Told, as_message, as_raw, as_sse, framed, written

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
    text = written({"x": value})
    assert b"\n" not in text
    assert b"\r" not in text
    assert json.loads(text) == {"x": value}


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    assert json.loads(written({"queue": "a\ud800b"})) == {"queue": "a?b"}
    assert json.loads(written({"a\ud800": ["\udfff"]})) == {"a?": ["?"]}
