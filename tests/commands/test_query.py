"""Reading jobs, states, results and counts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.commands.desk import NOW, Desk

EMPTY = {
    "waiting": 0,
    "prioritized": 0,
    "delayed": 0,
    "active": 0,
    "completed": 0,
    "failed": 0,
    "waiting-children": 0,
    "paused": 0,
}


@pytest.mark.parametrize("id", ["missing", None, 5, [], {}, ""])
def test_a_job_that_does_not_exist(desk: Desk, id: Any) -> None:
    assert desk.refused("GetJob", id=id) == "Job not found"
    assert desk.refused("GetJobByCustomId", customId=id) == "Job not found"
    assert desk.do("GetState", id=id) == {"id": id, "state": "unknown"}
    assert desk.do("GetResult", id=id) == {"id": id}


def test_a_job_is_shown_with_state_result_and_reason(desk: Desk) -> None:
    id, token = desk.active(maxAttempts=2, backoff=0)
    desk.do("FAIL", id=id, token=token, error="boom")
    job = desk.job(id)
    assert len(job) == 47 + 2
    assert (job["state"], job["failedReason"]) == ("waiting", "boom")
    token = desk.pull()["token"]
    desk.do("ACK", id=id, token=token, result="fine")
    job = desk.job(id)
    assert (job["state"], job["returnvalue"]) == ("completed", "fine")
    assert [step["state"] for step in job["timeline"]] == [
        "waiting",
        "active",
        "failed",
        "waiting",
        "active",
        "completed",
    ]


def test_a_job_is_found_by_its_own_id_while_it_lives(desk: Desk) -> None:
    desk.push(jobId="mine", data=7)
    other = desk.push()
    job = desk.do("GetJobByCustomId", customId="mine")["job"]
    assert (job["id"], job["data"]) == ("mine", 7)
    assert "state" not in job
    assert desk.refused("GetJobByCustomId", customId=other) == "Job not found"
    desk.do("ACK", id="mine", token=desk.pull()["token"])
    assert desk.refused("GetJobByCustomId", customId="mine") == "Job not found"
    assert desk.state("mine") == "completed"


def test_each_state_has_its_name(desk: Desk) -> None:
    waiting, urgent, late = desk.push("a"), desk.push("a", priority=1), desk.push("a", delay=9)
    low = desk.push("a", priority=-1)
    active, _ = desk.active("b")
    done, token = desk.active("c")
    desk.do("ACK", id=done, token=token)
    dead, token = desk.active("d", maxAttempts=1)
    desk.do("FAIL", id=dead, token=token)
    named = {waiting: "waiting", urgent: "prioritized", late: "delayed", low: "waiting"}
    named |= {active: "active", done: "completed", dead: "failed"}
    assert {id: desk.state(id) for id in named} == named


def test_counts_by_state(desk: Desk) -> None:
    assert desk.do("GetJobCounts", queue="q") == {"counts": EMPTY}
    desk.push()
    desk.push(priority=2)
    desk.push(delay=500)
    expected = {**EMPTY, "waiting": 1, "prioritized": 1, "delayed": 1}
    assert desk.do("GetJobCounts", queue="q") == {"counts": expected}
    assert desk.do("Count", queue="q") == {"count": 3}
    desk.pull()
    assert desk.do("Count", queue="q") == {"count": 2}
    desk.do("Pause", queue="q")
    expected = {**EMPTY, "paused": 1, "delayed": 1, "active": 1}
    assert desk.do("GetJobCounts", queue="q") == {"counts": expected}


@pytest.mark.parametrize("cmd", ["Count", "GetJobCounts", "GetJobs"])
@pytest.mark.parametrize("queue", [None, 5, [], True])
def test_a_queue_that_is_no_text_is_refused(desk: Desk, cmd: str, queue: Any) -> None:
    assert desk.refused(cmd, queue=queue) == "Queue name is required"
    assert desk.refused(cmd) == "Queue name is required"


@pytest.mark.parametrize("queue", ["a b", "", "é", "x" * 999])
def test_readers_take_any_name_and_make_no_queue(desk: Desk, queue: str) -> None:
    assert desk.do("Count", queue=queue) == {"count": 0}
    assert desk.do("GetJobs", queue=queue) == {"jobs": []}
    assert desk.do("GetJobCounts", queue=queue) == {"counts": EMPTY}
    assert not desk.engine.queues


def listed(desk: Desk, **fields: Any) -> list[str]:
    return [job["id"] for job in desk.do("GetJobs", queue="q", **fields)["jobs"]]


def test_jobs_are_listed_by_state(desk: Desk) -> None:
    active, token = desk.active()
    waiting, urgent, late = desk.push(), desk.push(priority=1), desk.push(delay=9)
    assert listed(desk) == [active, waiting, urgent, late]
    assert listed(desk, state=None) == [active, waiting, urgent, late]
    assert listed(desk, state="active") == [active]
    assert listed(desk, state="waiting") == [waiting]
    assert listed(desk, state="prioritized") == [urgent]
    assert listed(desk, state="delayed") == [late]
    assert listed(desk, state=["delayed", "active", "waiting"]) == [active, waiting, late]
    assert listed(desk, state=["waiting", "prioritized"]) == [waiting, urgent]
    for nothing in ("completed", "failed", "paused", "waiting-children", "rubbish", ["rubbish"]):
        assert listed(desk, state=nothing) == []
    desk.do("ACK", id=active, token=token)
    assert listed(desk, state="completed") == [active]


def test_a_paused_queue_lists_its_ready_jobs_as_paused(desk: Desk) -> None:
    ids = [desk.push(), desk.push(priority=1)]
    desk.do("Pause", queue="q")
    assert listed(desk, state="paused") == ids
    assert listed(desk, state="waiting") == []
    assert listed(desk) == ids


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, [0, 1, 2, 3]),
        ({"offset": 1, "limit": 2}, [1, 2]),
        ({"limit": 0}, []),
        ({"limit": -1}, []),
        ({"offset": -3, "limit": 2}, [0, 1]),
        ({"offset": 9}, []),
        ({"asc": False}, [3, 2, 1, 0]),
        ({"asc": False, "offset": 1, "limit": 1}, [2]),
        ({"asc": None, "limit": None, "offset": None}, [0, 1, 2, 3]),
        ({"limit": 1e308}, [0, 1, 2, 3]),
        ({"offset": 1e308}, []),
        ({"limit": math.nan, "offset": math.inf}, [0, 1, 2, 3]),
        ({"limit": "2", "offset": "1"}, [0, 1, 2, 3]),
        ({"limit": 1e308, "state": "waiting"}, [0, 1, 2, 3]),
        ({"state": "waiting", "asc": False, "limit": 2}, [3, 2]),
    ],
)
def test_a_page_of_jobs(desk: Desk, fields: Any, found: list[int]) -> None:
    ids = [desk.push() for _ in range(4)]
    assert listed(desk, **fields) == [ids[n] for n in found]


def test_a_page_has_a_hundred_jobs_unless_told_otherwise(desk: Desk) -> None:
    desk.do("PUSHB", queue="q", jobs=[{}] * 130)
    assert len(listed(desk)) == 100
    assert len(listed(desk, offset=100)) == 30
    assert len(listed(desk, limit=1000)) == 130


def test_listed_jobs_have_state_and_moments_as_floats(desk: Desk) -> None:
    desk.push()
    (job,) = desk.do("GetJobs", queue="q")["jobs"]
    assert job["state"] == "waiting"
    assert type(job["createdAt"]) is float
    assert job["createdAt"] == NOW


def test_a_result_is_that_of_a_completed_job(desk: Desk) -> None:
    id, token = desk.active()
    assert desk.do("GetResult", id=id) == {"id": id}
    desk.do("ACK", id=id, token=token, result=[1])
    assert desk.do("GetResult", id=id) == {"id": id, "result": [1]}


def test_priorities_are_counted_over_what_waits(desk: Desk) -> None:
    for priority in (0, 1, 1, -2):
        desk.push(priority=priority)
    desk.push(priority=9, delay=60_000)
    desk.active("q", priority=50)
    counts = desk.do("GetCountsPerPriority", queue="q")
    assert counts == {"queue": "q", "counts": {"-2": 1, "0": 1, "1": 2, "9": 1}}
    assert desk.do("GetCountsPerPriority", queue="x") == {"queue": "x", "counts": {}}


def test_priorities_are_counted_right_after_every_kind_of_leaving(desk: Desk) -> None:
    ids = [desk.push(priority=priority) for priority in (3, 3, 3, 0)]
    desk.do("Cancel", id=ids[0])
    desk.do("ChangeDelay", id=ids[1], delay=5_000)
    desk.do("ChangePriority", id=ids[3], priority=7)
    desk.pull()
    counts = desk.do("GetCountsPerPriority", queue="q")["counts"]
    assert counts == {"3": 2}
