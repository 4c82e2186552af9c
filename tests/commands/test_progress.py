"""Progress, AddLog and GetLogs."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.commands.desk import Desk, packed, shown

from tandemq.commands import progress as module


@pytest.mark.parametrize(
    ("given", "kept"),
    [(0, 0), (50, 50), (33.3, 33.3), (100, 100), (101, 100), (-1, 0), (1e308, 100)],
)
def test_progress_is_kept_between_0_and_100(desk: Desk, given: float, kept: float) -> None:
    id, _ = desk.active()
    assert desk.do("Progress", id=id, progress=given, message="m") == {}
    assert desk.do("GetProgress", id=id) == {"progress": kept, "message": "m"}


@pytest.mark.parametrize("message", [5, "absent", []])
def test_the_old_message_stays_when_none_is_sent(desk: Desk, message: Any) -> None:
    id, _ = desk.active()
    desk.do("Progress", id=id, progress=1, message="old")
    fields = {} if message == "absent" else {"message": message}
    desk.do("Progress", id=id, progress=2, **fields)
    assert desk.do("GetProgress", id=id) == {"progress": 2, "message": "old"}


def test_null_takes_the_message_away(desk: Desk) -> None:
    id, _ = desk.active()
    desk.do("Progress", id=id, progress=1, message="old")
    desk.do("Progress", id=id, progress=2, message=None)
    assert desk.do("GetProgress", id=id) == {"progress": 2, "message": None}


@pytest.mark.parametrize("value", [None, "5", True, math.nan, math.inf, [], {}])
def test_progress_is_a_number(desk: Desk, value: Any) -> None:
    id, _ = desk.active()
    assert desk.refused("Progress", id=id, progress=value) == (
        "progress must be a number from 0 to 100"
    )


@pytest.mark.parametrize("cmd", ["Progress", "GetProgress"])
def test_progress_is_that_of_an_active_job(desk: Desk, cmd: str) -> None:
    for id in ("missing", None, 5):
        assert desk.refused(cmd, id=id, progress=1) == "Job not found"
    waiting, late, urgent = desk.push(), desk.push(delay=5000), desk.push("p", priority=1)
    done, token = desk.active("r")
    desk.do("ACK", id=done, token=token)
    dead, token = desk.active("s", maxAttempts=1)
    desk.do("FAIL", id=dead, token=token)
    for id, state in (
        (waiting, "waiting"),
        (late, "delayed"),
        (urgent, "prioritized"),
        (done, "completed"),
        (dead, "failed"),
    ):
        words = f"Job is not active (current state: {state})"
        assert desk.refused(cmd, id=id, progress=1) == words


def test_a_log_keeps_its_lines_in_order(desk: Desk) -> None:
    id = desk.push()
    assert desk.do("GetLogs", id=id) == {"data": {"logs": [], "count": 0}}
    assert desk.do("AddLog", id=id, message="one") == {"data": {"added": True}}
    first = desk.now
    desk.later(5)
    desk.do("AddLog", id=id, message="two", level="error")
    logs = desk.do("GetLogs", id=id)["data"]
    assert logs == {
        "logs": [
            {"timestamp": first, "level": "info", "message": "one"},
            {"timestamp": first + 5, "level": "error", "message": "two"},
        ],
        "count": 2,
    }
    assert type(logs["logs"][0]["timestamp"]) is float


@pytest.mark.parametrize("message", [None, 5, 1.5, True, [1, {"a": None}], {}, b"\x00"])
def test_a_line_may_be_of_any_kind(desk: Desk, message: Any) -> None:
    id = desk.push()
    desk.do("AddLog", id=id, message=message, level=message)
    (line,) = desk.do("GetLogs", id=id)["data"]["logs"]
    assert line["message"] == message
    assert line["level"] == ("info" if message is None else message)


def test_a_line_without_a_message_is_a_line(desk: Desk) -> None:
    id = desk.push()
    desk.do("AddLog", id=id)
    assert desk.do("GetLogs", id=id)["data"]["logs"] == [{"timestamp": desk.now, "level": "info"}]


def test_the_newest_hundred_lines_are_kept(desk: Desk) -> None:
    id = desk.push()
    for n in range(105):
        desk.do("AddLog", id=id, message=n)
    logs = desk.do("GetLogs", id=id)["data"]
    assert logs["count"] == 100
    assert [line["message"] for line in logs["logs"]] == list(range(5, 105))


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (0, None, [0, 1, 2, 3]),
        (1, 2, [1, 2]),
        (3, 3, [3]),
        (2, 99, [2, 3]),
        (9, 10, []),
        (-5, 0, [0]),
        (2, 1, []),
        (0, -1, []),
        (1e308, 1e308, []),
        (0, math.nan, [0, 1, 2, 3]),
        ("1", "2", [0, 1, 2, 3]),
        (None, None, [0, 1, 2, 3]),
    ],
)
def test_a_range_of_lines_includes_both_ends(desk: Desk, start: Any, end: Any, found: Any) -> None:
    id = desk.push()
    for n in range(4):
        desk.do("AddLog", id=id, message=n)
    logs = desk.do("GetLogs", id=id, start=start, end=end)["data"]
    assert [line["message"] for line in logs["logs"]] == found
    assert logs["count"] == 4


def test_there_is_no_log_without_a_job(desk: Desk) -> None:
    for id in ("missing", None, 5, []):
        assert desk.refused("AddLog", id=id, message="x") == "Job not found"
        assert desk.do("GetLogs", id=id) == {"data": {"logs": [], "count": 0}}


def test_a_line_has_a_limit(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_LIMIT", 100)
    id = desk.push()
    words = "Log line too large (max 100 bytes)"
    assert desk.refused("AddLog", id=id, message="x" * 100) == words
    assert desk.refused("AddLog", id=id, message="", level="x" * 100) == words


def test_a_line_that_cannot_be_kept_is_refused(desk: Desk) -> None:
    id = desk.push()
    body = packed("AddLog", id=id, message="X")
    odd = shown(desk.hand_in(body.replace(b"\xa1X", b"\xc1")))
    assert odd == {"ok": False, "error": "message and level must be values that can be kept"}


def test_a_log_is_shortened_to_its_newest_lines(desk: Desk) -> None:
    id = desk.push()
    for message in "abc":
        desk.do("AddLog", id=id, message=message)
    assert desk.do("ClearLogs", id=id, keepLogs=2) == {}
    logs = desk.do("GetLogs", id=id)["data"]
    assert [line["message"] for line in logs["logs"]] == ["b", "c"]
    assert desk.do("ClearLogs", id=id) == {}
    assert desk.do("GetLogs", id=id)["data"] == {"logs": [], "count": 0}
    for unknown in ("missing", None, 5):
        assert desk.do("ClearLogs", id=unknown) == {}


def test_lines_are_counted_from_the_end_too(desk: Desk) -> None:
    id = desk.push()
    for message in "abc":
        desk.do("AddLog", id=id, message=message)
    logs = desk.do("GetLogs", id=id, start=-1)["data"]
    assert [line["message"] for line in logs["logs"]] == ["c"]


@pytest.mark.parametrize(
    ("keep", "kept"), [(2, ["b", "c"]), (2.9, ["b", "c"]), (0, []), (-1, ["a", "b", "c"])]
)
def test_a_job_may_keep_fewer_lines(desk: Desk, keep: float, kept: list[str]) -> None:
    id = desk.push(keepLogs=keep)
    for message in "abc":
        assert desk.do("AddLog", id=id, message=message) == {"data": {"added": True}}
    logs = desk.do("GetLogs", id=id)["data"]
    assert [line["message"] for line in logs["logs"]] == kept


def test_no_job_keeps_more_than_a_hundred_lines(desk: Desk) -> None:
    id = desk.push(keepLogs=1_000)
    for n in range(101):
        desk.do("AddLog", id=id, message=n)
    assert desk.do("GetLogs", id=id)["data"]["count"] == 100
