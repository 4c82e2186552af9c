"""The ``repeat`` option of PUSH and PUSHB."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import NOW, Desk
from tests.support.wire import UNDEFINED

EITHER = "repeat requires exactly one of every or pattern"


@pytest.mark.parametrize(
    "repeat",
    [{}, [], 5, "x", {"every": 5, "pattern": "* * * * *"}, {"pattern": " "}, {"pattern": 5}],
)
def test_one_of_interval_and_pattern_is_needed(desk: Desk, repeat: Any) -> None:
    assert desk.refused("PUSH", queue="q", data=1, repeat=repeat) == EITHER


@pytest.mark.parametrize("every", [0, -1, "5", float("nan"), float("inf"), True, []])
def test_an_interval_is_a_positive_number(desk: Desk, every: Any) -> None:
    said = desk.refused("PUSH", queue="q", data=1, repeat={"every": every})
    assert said == "repeat.every must be a positive finite number"


@pytest.mark.parametrize("repeat", [{"pattern": "x"}, {"pattern": "@daily", "tz": "Mars/Olympus"}])
def test_a_wrong_pattern_or_zone_is_refused(desk: Desk, repeat: dict[str, Any]) -> None:
    said = desk.refused("PUSH", queue="q", data=1, repeat=repeat)
    assert said.startswith("Invalid repeat pattern: ")


@pytest.mark.parametrize("field", ["startDate", "endDate"])
@pytest.mark.parametrize("value", ["2026", float("nan"), True, []])
def test_start_and_end_are_moments(desk: Desk, field: str, value: Any) -> None:
    said = desk.refused("PUSH", queue="q", data=1, repeat={"every": 5, field: value})
    assert said == f"repeat.{field} must be a finite timestamp"


def test_an_id_of_ones_own_and_repeating_do_not_go_together(desk: Desk) -> None:
    said = desk.refused("PUSH", queue="q", data=1, jobId="x", repeat={"every": 5})
    assert said == "repeat jobs cannot use JobOptions.jobId; use repeat.jobId instead"


def test_a_refusal_in_a_batch_names_its_member(desk: Desk) -> None:
    jobs = [{"data": 1}, {"data": 2, "repeat": {"every": 0}}]
    said = desk.refused("PUSHB", queue="q", jobs=jobs)
    assert said == "jobs[1]: repeat.every must be a positive finite number"


@pytest.mark.parametrize("repeat", [None, UNDEFINED])
def test_no_repetition_is_none(desk: Desk, repeat: Any) -> None:
    assert desk.job(desk.push(repeat=repeat))["repeat"] is None


def test_the_option_is_shown_as_it_was_given(desk: Desk) -> None:
    asked = {
        "pattern": "@daily",
        "tz": "Europe/Rome",
        "limit": 3,
        "startDate": NOW - 5,
        "endDate": NOW + 10**12,
        "immediately": True,
        "offset": 250,
        "jobId": "r",
        "every": UNDEFINED,
    }
    shown = desk.job(desk.push(repeat=asked))["repeat"]
    assert shown == {k: v for k, v in asked.items() if v != UNDEFINED} | {"count": 0}


def test_the_first_job_runs_at_once_and_its_successor_later(desk: Desk) -> None:
    id, token = desk.active(data={"v": 1}, repeat={"every": 60_000})
    desk.do("ACK", id=id, token=token)
    (successor,) = desk.do("GetJobs", queue="q", state="delayed")["jobs"]
    assert successor["data"] == {"v": 1}
    assert successor["runAt"] == NOW + 60_000
    assert successor["repeat"] == {"every": 60_000, "count": 1, "prevMillis": NOW + 60_000}
    assert successor["timeline"] == [{"state": "delayed", "timestamp": NOW}]
    desk.later(60_000)
    assert desk.pull()["job"]["repeat"]["count"] == 1


def test_a_limit_of_nothing_means_no_successor(desk: Desk) -> None:
    id, token = desk.active(repeat={"every": 60_000, "limit": 0})
    desk.do("ACK", id=id, token=token)
    assert desk.do("Count", queue="q") == {"count": 0}


def test_members_of_a_batch_may_repeat(desk: Desk) -> None:
    (id,) = desk.do("PUSHB", queue="q", jobs=[{"data": 1, "repeat": {"pattern": "@hourly"}}])["ids"]
    assert desk.job(id)["repeat"]["pattern"] == "@hourly"


def test_a_text_that_looks_like_the_option_is_not_taken_for_it(desk: Desk) -> None:
    job = desk.job(desk.push(tags=["repeat", "\u00a6repeat\u00c0"], repeat={"every": 5}))
    assert job["tags"] == ["repeat", "\u00a6repeat\u00c0"]
    assert job["repeat"]["every"] == 5
