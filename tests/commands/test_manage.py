"""Cancel, Discard, Promote, the moves, ChangePriority, Update and WaitJob."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.commands.desk import Desk

NOT_A_DELAY = [
    (None, "delay must be a number"),
    ("5", "delay must be a number"),
    (-1, "delay must be at least 0"),
    (31_536_000_001, "delay must be at most 31536000000"),
    (math.nan, "delay must be a finite number"),
]


def test_a_waiting_job_is_cancelled_once(desk: Desk) -> None:
    id = desk.push()
    assert desk.do("Cancel", id=id) == {}
    assert desk.state(id) == "unknown"
    assert desk.refused("Cancel", id=id) == "Job not found or cannot be cancelled"


@pytest.mark.parametrize("id", [None, 5, [], {}, "missing", "x" * 100_000])
@pytest.mark.parametrize(
    ("cmd", "words"),
    [
        ("Cancel", "Job not found or cannot be cancelled"),
        ("Discard", "Job not found"),
        ("Promote", "Job not found or not delayed"),
        ("MoveToWait", "Cannot move job from state 'unknown' to waiting"),
        ("MoveToDelayed", "Job not found"),
        ("MoveToWaitingChildren", "Job is not active"),
        ("ChangeDelay", "Job not found or cannot change delay"),
        ("ChangePriority", "Job not found or not in queue"),
        ("Update", "Job not found or cannot be updated"),
        ("WaitJob", "Job not found"),
    ],
)
def test_a_job_that_does_not_exist_is_refused(desk: Desk, id: Any, cmd: str, words: str) -> None:
    assert desk.refused(cmd, id=id, delay=1, priority=1, data=1) == words


def test_a_discarded_job_is_a_dead_letter(desk: Desk) -> None:
    id = desk.push()
    assert desk.do("Discard", id=id) == {}
    assert desk.state(id) == "failed"
    [entry] = desk.do("Dlq", queue="q")["entries"]
    assert (entry["reason"], entry["error"]) == ("unknown", None)
    assert entry["job"]["startedAt"] is None
    assert desk.refused("Discard", id=id) == "Job not found"


def test_a_promoted_job_waits(desk: Desk) -> None:
    id = desk.push(delay=60_000)
    assert desk.do("Promote", id=id) == {}
    assert desk.state(id) == "waiting"
    assert desk.refused("Promote", id=id) == "Job not found or not delayed"


def test_an_active_job_goes_back_with_its_token(desk: Desk) -> None:
    id, token = desk.active()
    assert desk.refused("MoveToWait", id=id) == f"Lock token required for job {id}"
    wrong = f"Invalid or expired lock token for job {id}"
    assert desk.refused("MoveToWait", id=id, token="x") == wrong
    assert desk.do("MoveToWait", id=id, token=token) == {}
    assert desk.job(id)["startedAt"] is None


@pytest.mark.parametrize(("end", "state"), [("ACK", "completed"), (None, "waiting-children")])
def test_a_move_that_cannot_be_names_the_state(desk: Desk, end: str | None, state: str) -> None:
    id, token = desk.active()
    desk.do(end or "MoveToWaitingChildren", id=id, token=token)
    assert desk.refused("MoveToWait", id=id) == f"Cannot move job from state '{state}' to waiting"
    words = f"Job is not active (current state: {state})"
    assert desk.refused("MoveToDelayed", id=id, delay=1) == words


def test_a_job_is_delayed_from_now(desk: Desk) -> None:
    id, token = desk.active()
    assert desk.do("MoveToDelayed", id=id, token=token, delay=500) == {}
    job = desk.job(id)
    assert (job["state"], job["runAt"], job["attempts"]) == ("delayed", desk.now + 500, 0)
    assert desk.do("ChangeDelay", id=id, delay=0) == {}
    assert desk.state(id) == "waiting"


@pytest.mark.parametrize("cmd", ["MoveToDelayed", "ChangeDelay"])
@pytest.mark.parametrize(("delay", "words"), NOT_A_DELAY)
def test_a_delay_is_a_number_in_its_bounds(desk: Desk, cmd: str, delay: Any, words: str) -> None:
    id = desk.push()
    assert desk.refused(cmd, id=id, delay=delay) == words
    assert desk.state(id) == "waiting"


def test_waiting_for_children_is_told_in_data(desk: Desk) -> None:
    id, token = desk.active()
    assert desk.do("MoveToWaitingChildren", id=id, token=token) == {"data": {"moved": True}}
    assert [step["state"] for step in desk.job(id)["timeline"]] == [
        "waiting",
        "active",
        "waiting-children",
    ]


def test_a_priority_is_not_bounded_and_the_timeline_stays(desk: Desk) -> None:
    id = desk.push()
    assert desk.do("ChangePriority", id=id, priority=99_999_999) == {}
    job = desk.job(id)
    assert (job["priority"], job["state"]) == (99_999_999, "prioritized")
    assert [step["state"] for step in job["timeline"]] == ["waiting"]
    counts = desk.do("GetCountsPerPriority", queue="q")
    assert counts == {"queue": "q", "counts": {"99999999": 1}}


@pytest.mark.parametrize("priority", [None, "1", True, [], math.nan])
def test_a_priority_is_a_number(desk: Desk, priority: Any) -> None:
    id = desk.push()
    assert desk.refused("ChangePriority", id=id, priority=priority) == "priority must be a number"


def test_lifo_is_changed_only_when_it_is_said(desk: Desk) -> None:
    id = desk.push(lifo=True)
    desk.do("ChangePriority", id=id, priority=2)
    assert desk.job(id)["lifo"] is True
    desk.do("ChangePriority", id=id, priority=2, lifo=False)
    assert desk.job(id)["lifo"] is False


def test_the_data_of_a_job_is_replaced_as_it_is(desk: Desk) -> None:
    id = desk.push(data={"a": 1}, name="n")
    assert desk.do("Update", id=id, data={"name": "inner", "x": 1}) == {}
    job = desk.job(id)
    assert (job["name"], job["data"]) == ("n", {"name": "inner", "x": 1})
    desk.do("Update", id=id)
    assert "data" not in desk.job(id)


def test_data_that_push_would_refuse_is_refused(desk: Desk) -> None:
    id = desk.push()
    assert desk.refused("Update", id=id, data="x" * 10_485_759) == "Job data too large (max 10MB)"
    assert desk.job(id)["data"] == 1


# -- WaitJob ---------------------------------------------------------------------------------------


def test_a_completed_job_is_told_at_once(desk: Desk) -> None:
    id, token = desk.active()
    desk.do("ACK", id=id, token=token, result={"r": 1})
    assert desk.do("WaitJob", id=id) == {"completed": True, "result": {"r": 1}}


def test_whoever_waits_is_told_of_the_completion(desk: Desk) -> None:
    id, token = desk.active()
    assert desk.waits("WaitJob", conn=2, id=id, reqId="w")
    desk.do("ACK", id=id, token=token, result=5)
    assert list(desk.told()) == [(2, {"ok": True, "completed": True, "result": 5, "reqId": "w"})]


def test_a_failure_is_not_the_end_of_waiting_unless_asked_for(desk: Desk) -> None:
    id, token = desk.active(maxAttempts=1)
    assert desk.waits("WaitJob", conn=2, id=id, timeout=500)
    assert desk.waits("WaitJob", conn=3, id=id, timeout=500, anyEnd=True)
    desk.do("FAIL", id=id, token=token, error="broke")
    failed = {"ok": True, "completed": False, "failed": True, "error": "broke"}
    assert list(desk.told()) == [(3, failed)]
    assert desk.do("WaitJob", id=id, anyEnd=True) == {k: failed[k] for k in list(failed)[1:]}
    desk.later(500)
    assert list(desk.told()) == [(2, {"ok": True, "completed": False})]


def test_a_removal_is_told_to_who_asked_for_any_end(desk: Desk) -> None:
    id = desk.push()
    assert desk.waits("WaitJob", conn=3, id=id, anyEnd=True)
    desk.do("Cancel", id=id)
    assert list(desk.told()) == [(3, {"ok": True, "completed": False, "removed": True})]


def test_waiting_for_no_time_answers_at_once(desk: Desk) -> None:
    assert desk.do("WaitJob", id=desk.push(), timeout=0) == {"completed": False}


@pytest.mark.parametrize(
    ("timeout", "words"),
    [
        (-1, "timeout must be at least 0"),
        (600_001, "timeout must be at most 600000"),
        ("5", "timeout must be a number"),
        (math.inf, "timeout must be a finite number"),
    ],
)
def test_the_time_to_wait_is_bounded(desk: Desk, timeout: Any, words: str) -> None:
    assert desk.refused("WaitJob", id=desk.push(), timeout=timeout) == words


def test_a_watch_ends_with_its_connection(desk: Desk) -> None:
    id, token = desk.active()
    assert desk.waits("WaitJob", conn=2, id=id)
    desk.disconnect(2)
    desk.do("ACK", id=id, token=token)
    assert list(desk.told()) == []


def test_other_data_is_bound_by_the_size_limit_of_the_job(desk: Desk) -> None:
    id = desk.push(data="x", sizeLimit=10)
    words = "Job data too large (its sizeLimit is 10 bytes)"
    assert desk.refused("Update", id=id, data="x" * 9) == words
    assert desk.job(id)["data"] == "x"
    desk.do("Update", id=id, data="x" * 8)
    assert desk.job(id)["data"] == "x" * 8
