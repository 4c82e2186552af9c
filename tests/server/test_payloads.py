"""Events as the JSON that webhooks get."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest

from tandemq.model.outcome import Event
from tandemq.server.payloads import LARGE, encoded, payload

NOW = 1_700_000_000_000
NOTHING = msgpack.ExtType(0, b"\0")
UNDEFINED = b"\xd4\x00\x00"


def told(type: str = "completed", **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encoded(Event(type, "q", "id-1", NOW, fields)))
    return found


def test_an_event_names_what_when_and_whose() -> None:
    assert told("pushed") == {
        "event": "job.pushed", "timestamp": NOW, "jobId": "id-1", "queue": "q",
    }  # fmt: skip


def test_a_completion_carries_its_result() -> None:
    assert told(data=msgpack.packb({"r": 1}))["data"] == {"r": 1}
    assert told(data=msgpack.packb(None))["data"] is None
    assert "data" not in told(data=None)
    assert "data" not in told(data=UNDEFINED)


def test_a_failure_carries_data_and_error_but_not_whether_it_is_the_last() -> None:
    found = told("failed", error="bad", data=msgpack.packb({"n": 1}), terminal=True)
    assert list(found) == ["event", "timestamp", "jobId", "queue", "data", "error"]
    assert (found["event"], found["data"], found["error"]) == ("job.failed", {"n": 1}, "bad")


def test_progress_is_a_number_of_its_own() -> None:
    found = told("progress", progress=40.0, data={"progress": 40.0, "message": "m"})
    assert found["progress"] == 40
    assert "data" not in found


def test_a_stall_carries_what_comes_of_it() -> None:
    data = {"stallCount": 1, "action": "retry"}
    assert told("stalled", data=data)["data"] == data


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": [b"x", 1.5, True]}, {"a": ["eA==", 1.5, True]}),
        ({1: 2, None: 3}, {"1": 2, "None": 3}),
        ([float("nan"), float("inf"), 2.0, 1e300], [None, None, 2, 1e300]),
        ({"gone": NOTHING, "kept": [NOTHING]}, {"kept": [None]}),
    ],
)  # fmt: skip
def test_what_json_cannot_say_is_said_as_javascript_would(value: Any, shown: Any) -> None:
    assert told(data=msgpack.packb(value, strict_types=False))["data"] == shown


def test_data_that_cannot_be_written_are_null() -> None:
    deep = b"\x91" * 100_000 + b"\xc0"
    assert told(data=deep)["data"] is None
    assert told(data=b"\xa2\xff\xfe")["data"] is None


def test_half_of_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert told("failed", error="a\ud800")["error"] == "a?"


async def test_large_data_are_turned_in_a_thread() -> None:
    event = Event("completed", "q", "id-1", NOW, {"data": msgpack.packb("x" * LARGE)})
    assert await payload(event) == encoded(event)
