"""Events as frames of the job wire."""

from __future__ import annotations

from typing import Any

import msgpack
from tests.commands.desk import shown

from tandemq.model.body import holds_wide_integer
from tandemq.model.outcome import Event
from tandemq.wires.bunqueue.events import event_frame

NOW = 1_700_000_000_000


def framed(type: str = "completed", **fields: Any) -> bytes:
    frame = event_frame(Event(type, "q", "id-1", NOW, fields))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return frame[4:]


def test_an_event_names_what_where_whose_and_when() -> None:
    told = msgpack.unpackb(framed("pushed"))
    assert told == {
        "type": "event",
        "event": {"eventType": "pushed", "queue": "q", "jobId": "id-1", "timestamp": float(NOW)},
    }


def test_fields_follow_in_the_order_in_which_they_were_told() -> None:
    told = msgpack.unpackb(framed("failed", error="no", data=msgpack.packb([1]), terminal=True))
    assert list(told["event"])[4:] == ["error", "data", "terminal"]
    assert told["event"]["data"] == [1]


def test_a_field_that_is_none_is_undefined_and_one_inside_data_is_null() -> None:
    body = framed("progress", error=None, data={"progress": 5.0, "message": None})
    assert "error" not in shown(body)["event"]
    assert shown(body)["event"]["data"] == {"progress": 5, "message": None}


def test_half_of_a_surrogate_pair_does_not_stop_a_frame() -> None:
    half = "\ud800"
    body = framed("progress", error=half, data={"message": half})
    told = msgpack.unpackb(body, unicode_errors="surrogatepass")["event"]
    assert (told["error"], told["data"]) == (half, {"message": half})


def test_no_number_is_wider_than_a_javascript_peer_can_read() -> None:
    assert not holds_wide_integer(framed("delayed", delay=2**40))
    assert not holds_wide_integer(framed("pushed"))
