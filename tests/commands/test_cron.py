"""Cron, CronGet, CronList and CronDelete."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import NOW, Answer, Desk
from tests.support.wire import UNDEFINED

MINUTE = 60_000
INTERVAL = "Cron repeatEvery must be a positive safe integer number of milliseconds"


def add(desk: Desk, name: str = "c", **fields: Any) -> Answer:
    timing = {} if "schedule" in fields else {"repeatEvery": MINUTE}
    cron: Answer = desk.do("Cron", **{"name": name, "queue": "q", "data": 1, **timing, **fields})[
        "cron"
    ]
    return cron


def refused(desk: Desk, **fields: Any) -> str:
    said = desk.refused("Cron", **{"name": "c", "queue": "q", "data": 1, **fields})
    assert desk.refused("CronGet", name="c") == "Cron job not found"
    return said


def detail(desk: Desk, name: str = "c") -> Answer:
    cron: Answer = desk.do("CronGet", name=name, preview=0)["cron"]
    return cron


def test_an_interval_is_shown(desk: Desk) -> None:
    expected = {
        "name": "c",
        "jobName": "tick",
        "queue": "q",
        "schedule": None,
        "repeatEvery": MINUTE,
        "nextRun": NOW + MINUTE,
        "executions": 0,
        "maxLimit": 9,
        "timezone": None,
        "priority": 4,
    }
    assert add(desk, jobName="tick", maxLimit=9, priority=4) == expected
    assert desk.do("CronGet", name="c") == {"cron": expected}
    assert desk.do("CronList") == {"crons": [expected]}


def test_a_pattern_goes_before_an_interval(desk: Desk) -> None:
    cron = add(desk, schedule="0 3 * * *", timezone="Europe/Rome", repeatEvery=5)
    assert (cron["schedule"], cron["repeatEvery"]) == ("0 3 * * *", None)
    assert cron["timezone"] == "Europe/Rome"
    assert cron["nextRun"] % 86_400_000 == 2 * 3_600_000


def test_a_deleted_schedule_is_gone_and_its_job_stays(desk: Desk) -> None:
    add(desk, immediately=True)
    desk.later(0)
    desk.do("CronDelete", name="c")
    assert desk.refused("CronGet", name="c") == "Cron job not found"
    assert desk.refused("CronDelete", name="c") == "Cron job not found"
    assert desk.do("CronList") == {"crons": []}
    assert desk.do("Count", queue="q") == {"count": 1}


@pytest.mark.parametrize("name", [5, None, [], "x"])
def test_a_schedule_that_is_not_there_is_not_found(desk: Desk, name: Any) -> None:
    assert desk.refused("CronGet", name=name) == "Cron job not found"
    assert desk.refused("CronDelete", name=name) == "Cron job not found"


def test_a_long_list_can_be_read_in_parts(desk: Desk) -> None:
    for n in range(5):
        add(desk, f"c{n}", queue=f"q{n % 2}")

    def names(**fields: Any) -> list[str]:
        return [cron["name"] for cron in desk.do("CronList", **fields)["crons"]]

    assert names() == ["c0", "c1", "c2", "c3", "c4"]
    assert names(offset=1, limit=2) == ["c1", "c2"]
    assert names(queue="q0", limit=2) == ["c0", "c2"]
    assert names(offset=9) == names(limit=0) == names(limit=-1) == []


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{}, {"schedule": ""}, {"schedule": " "}, {"repeatEvery": None}])
def test_one_of_pattern_and_interval_is_needed(desk: Desk, fields: dict[str, Any]) -> None:
    assert refused(desk, **fields) == "Cron job must have either schedule or repeatEvery"


@pytest.mark.parametrize("every", [0, -1, 1.5, "5", True, 2.0**53, float("inf"), float("nan"), []])
def test_an_interval_is_a_whole_number_of_ms(desk: Desk, every: Any) -> None:
    assert refused(desk, repeatEvery=every) == INTERVAL


def test_a_wrong_expression_or_zone_is_named(desk: Desk) -> None:
    assert refused(desk, schedule="0 24 * * *") == "Invalid cron expression: bad hour"
    assert (
        refused(desk, schedule="0 0 * * *", timezone="Mars/Olympus")
        == "Invalid cron expression: unknown time zone 'Mars/Olympus'"
    )


@pytest.mark.parametrize("name", [None, "", 5, "n" * 1_025])
def test_a_schedule_needs_a_name(desk: Desk, name: Any) -> None:
    said = desk.refused("Cron", name=name, queue="q", data=1, repeatEvery=5)
    assert said == "Cron name must be a non-empty string of at most 1024 characters"


@pytest.mark.parametrize("queue", [None, "", 5])
def test_a_schedule_needs_a_queue_of_whatever_name(desk: Desk, queue: Any) -> None:
    assert refused(desk, queue=queue, repeatEvery=5) == "Queue name is required"
    assert add(desk, queue="bad queue/ü:*")["queue"] == "bad queue/ü:*"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"priority": 1.5}, "priority must be an integer"),
        ({"priority": 1_000_001}, "priority must be at most 1000000"),
        ({"missed": "never"}, "missed must be 'skip', 'once' or 'all'"),
        ({"maxLateness": -1}, "maxLateness must be at least 0"),
        ({"jobOptions": []}, "jobOptions must be an object"),
        ({"jobOptions": {"maxAttempts": 0}}, "jobOptions.maxAttempts must be at least 1"),
        ({"jobOptions": {"timeout": "5"}}, "jobOptions.timeout must be a number"),
        ({"jobOptions": {"backoff": -1}}, "jobOptions.backoff must be at least 0"),
        (
            {"jobOptions": {"backoff": {"type": "odd"}}},
            "jobOptions.backoff.type must be 'fixed' or 'exponential'",
        ),
        ({"jobName": ""}, "Job name must be a non-empty string of at most 256 characters"),
        (
            {"data": {"name": "n" * 257}},
            "Job name must be a non-empty string of at most 256 characters",
        ),
        ({"data": "x" * 10_485_761}, "Job data too large (max 10MB)"),
    ],
)
def test_what_a_job_could_not_have_is_refused(
    desk: Desk, fields: dict[str, Any], said: str
) -> None:
    assert refused(desk, repeatEvery=5, **fields) == said


def test_undefined_fields_are_absent_ones(desk: Desk) -> None:
    cron = add(
        desk,
        schedule=UNDEFINED,
        repeatEvery=MINUTE,
        jobName=UNDEFINED,
        timezone=UNDEFINED,
        maxLimit=UNDEFINED,
        dedup={"ttl": UNDEFINED},
        jobOptions={"delay": UNDEFINED, "maxAttempts": 2},
        preventOverlap=UNDEFINED,
    )
    assert (cron["schedule"], cron["repeatEvery"], cron["maxLimit"]) == (None, MINUTE, None)


# -- what is published ---------------------------------------------------------------------------


def fired(desk: Desk, **fields: Any) -> Answer:
    add(desk, immediately=True, **fields)
    desk.later(0)
    job: Answer = desk.pull()["job"]
    return job


def test_a_job_bears_the_key_of_its_schedule(desk: Desk) -> None:
    job = fired(desk, data={"v": 1}, jobName="tick", priority=7)
    assert (job["name"], job["data"], job["priority"]) == ("tick", {"v": 1}, 7)
    assert job["uniqueKey"] == "cron:c"
    assert job["repeat"] is None


def test_a_job_that_may_overlap_bears_none(desk: Desk) -> None:
    assert fired(desk, preventOverlap=False)["uniqueKey"] is None


def test_a_key_of_ones_own_goes_before(desk: Desk) -> None:
    job = fired(desk, uniqueKey="k", dedup={"ttl": 500, "extend": True, "replace": False})
    assert job["uniqueKey"] == "k"
    options = desk.engine.messages[job["id"]].options
    assert (options.dedup_ttl, options.dedup_extend, options.dedup_replace) == (500, True, False)


@pytest.mark.parametrize("length", [1, 1024, 1025, 100_000])
def test_a_key_of_ones_own_is_no_longer_than_a_name(desk: Desk, length: int) -> None:
    fields = {"name": "n", "queue": "q", "repeatEvery": 1000, "uniqueKey": "k" * length}
    if length <= 1024:
        desk.do("Cron", **fields)
    else:
        words = "Cron uniqueKey must be at most 1024 characters"
        assert desk.refused("Cron", **fields) == words


def test_fields_that_are_none_are_passed_over(desk: Desk) -> None:
    for n in range(3):
        names = {f"no field {n}": 1, "tz": 1, "max_limit": 3, "unique_key": "k", "cmd ": 1}
        desk.do("Cron", name="n", queue="q", repeatEvery=1000, **names)
    cron = desk.do("CronGet", name="n")["cron"]
    assert (cron["maxLimit"], cron["timezone"]) == (None, None)


def test_without_a_name_of_its_own_a_job_is_named_by_its_data_as_old_clients_do(desk: Desk) -> None:
    job = fired(desk, data={"name": "inner", "x": 1})
    assert (job["name"], job["data"]) == ("inner", {"x": 1})


def test_job_options_go_to_the_job(desk: Desk) -> None:
    options = {
        "maxAttempts": 7,
        "backoff": {"type": "fixed", "delay": 50},
        "timeout": 5_000,
        "stallTimeout": 900,
        "removeOnComplete": True,
        "removeOnFail": True,
        "unknown": 1,
    }
    job = fired(desk, jobOptions=options)
    assert job["maxAttempts"] == 7
    assert job["backoffConfig"] == {"type": "fixed", "delay": 50}
    assert (job["timeout"], job["stallTimeout"]) == (5_000, 900)
    assert (job["removeOnComplete"], job["removeOnFail"]) == (True, True)


def test_a_back_off_may_be_a_number_or_have_no_delay(desk: Desk) -> None:
    assert fired(desk, jobOptions={"backoff": 5})["backoff"] == 5
    desk.do("CronDelete", name="c")
    add(desk, "d", queue="r", immediately=True, jobOptions={"backoff": {"type": "exponential"}})
    desk.later(0)
    job = desk.pull("r")["job"]
    assert job["backoffConfig"] == {"type": "exponential", "delay": 1000}


def test_a_delay_counts_from_the_run(desk: Desk) -> None:
    add(desk, immediately=True, jobOptions={"delay": 5_000})
    add(desk, "d", queue="r", immediately=True, jobOptions={"delay": -5_000})
    desk.later(0)
    assert desk.do("GetJobCounts", queue="q")["counts"]["delayed"] == 1
    assert desk.do("GetJobCounts", queue="r")["counts"]["waiting"] == 1


def test_immediately_counts_for_a_new_name_only(desk: Desk) -> None:
    add(desk)
    assert add(desk, immediately=True)["nextRun"] == NOW + MINUTE


@pytest.mark.parametrize(("limit", "shown"), [(0, None), (-3, None), (2.5, 3), ("9", None)])
def test_a_limit_is_a_positive_number(desk: Desk, limit: Any, shown: int | None) -> None:
    assert add(desk, maxLimit=limit)["maxLimit"] == shown


def test_an_upsert_that_forbids_overlap_drops_the_waiting_job(desk: Desk) -> None:
    add(desk, immediately=True)
    desk.later(0)
    assert add(desk, preventOverlap=True)["executions"] == 1
    assert desk.do("Count", queue="q") == {"count": 0}


def test_a_waiting_pull_gets_the_job_of_a_run(desk: Desk) -> None:
    add(desk)
    assert desk.waits("PULL", queue="q", timeout=60_000)
    desk.later(MINUTE)
    ((_, answer),) = desk.told()
    assert answer["job"]["uniqueKey"] == "cron:c"


# -- ours ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "missed", "lateness"),
    [
        ({}, None, 60_000),
        ({"skipMissedOnRestart": True}, "skip", 1_000),
        ({"skipMissedOnRestart": False}, "once", None),
        ({"missed": "all", "skipMissedOnRestart": True}, "all", 86_400_000),
        ({"missed": "once", "maxLateness": 5_000}, "once", 5_000),
    ],
)
def test_what_becomes_of_missed_runs_can_be_chosen(
    desk: Desk, fields: dict[str, Any], missed: str | None, lateness: int | None
) -> None:
    add(desk, skipIfNoWorker=True, **fields)
    shown = detail(desk)
    assert (shown["missed"], shown["maxLateness"]) == (missed, lateness)
    assert (shown["preventOverlap"], shown["skipIfNoWorker"]) == (True, True)


def test_the_next_runs_are_shown_in_both_zones(desk: Desk) -> None:
    add(desk, schedule="0 6 * * *", timezone="Europe/Amsterdam")
    first, second = desk.do("CronGet", name="c", preview=2)["preview"]
    assert first == {
        "at": 1_700_024_400_000,
        "utc": "2023-11-15T05:00:00+00:00",
        "local": "2023-11-15T06:00:00+01:00",
    }
    assert second["at"] == first["at"] + 86_400_000


def test_of_an_interval_that_no_calendar_reaches_only_the_figures_are_shown(desk: Desk) -> None:
    add(desk, repeatEvery=2**52)
    (run,) = desk.do("CronGet", name="c", preview=1)["preview"]
    assert run == {"at": float(NOW + 2**52), "utc": None, "local": None}


@pytest.mark.parametrize("preview", [-1, 1_001, 1.5])
def test_a_preview_has_bounds(desk: Desk, preview: float) -> None:
    add(desk)
    assert desk.refused("CronGet", name="c", preview=preview).startswith("preview must be")
