"""Drain, Clean, Obliterate, PromoteJobs and RetryCompleted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import Desk

from tandemq.engine import sweeps

NOTHING = {"count": 0, "ids": []}


def completed(desk: Desk, **options: Any) -> str:
    id, token = desk.active(**options)
    desk.do("ACK", id=id, token=token, result=1)
    return id


def test_draining_counts_what_it_takes(desk: Desk) -> None:
    desk.push()
    desk.push(delay=1_000)
    assert desk.do("Drain", queue="q") == {"count": 2}
    assert desk.do("Drain", queue="q") == {"count": 0}
    assert desk.do("Drain", queue="any thing goes") == {"count": 0}


def test_a_long_drain_is_answered_later(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "SLICE", 2)
    for _ in range(3):
        desk.push()
    assert desk.waits("Drain", conn=2, queue="q")
    desk.later(1)
    assert list(desk.told()) == [(2, {"ok": True, "count": 3})]


def test_a_long_drain_goes_on_without_the_one_who_asked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "SLICE", 2)
    for _ in range(3):
        desk.push()
    assert desk.waits("Drain", conn=2, queue="q")
    desk.disconnect(2)
    desk.later(1)
    assert desk.do("Count", queue="q") == {"count": 0}


@pytest.mark.parametrize("state", [None, "waiting", "wait", "delayed", "prioritized", "paused"])
def test_cleaning_any_kind_of_waiting_takes_all_of_it(desk: Desk, state: str | None) -> None:
    ids = [desk.push(), desk.push(delay=9), desk.push(priority=2)]
    asked = {} if state is None else {"state": state}
    assert desk.do("Clean", queue="q", grace=0, **asked) == {"count": 3, "ids": ids}


@pytest.mark.parametrize("state", ["active", "unknown", "bogus", "", 5])
def test_cleaning_nothing_else(desk: Desk, state: Any) -> None:
    desk.active()
    if isinstance(state, str):
        assert desk.do("Clean", queue="q", grace=0, state=state) == NOTHING


@pytest.mark.parametrize("grace", [None, "0", True, {}])
def test_without_an_age_nothing_is_cleaned(desk: Desk, grace: Any) -> None:
    desk.push()
    assert desk.do("Clean", queue="q", grace=grace) == NOTHING


def test_cleaning_spares_the_young(desk: Desk) -> None:
    old = desk.push()
    desk.later(500)
    young = desk.push()
    assert desk.do("Clean", queue="q", grace=100) == {"count": 1, "ids": [old]}
    assert desk.state(young) == "waiting"


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (-1, 0), (1.9, 1), (2, 2), ("x", 3)])
def test_the_limit_of_cleaning(desk: Desk, limit: Any, count: int) -> None:
    for _ in range(3):
        desk.push()
    assert desk.do("Clean", queue="q", grace=0, limit=limit)["count"] == count


def test_completed_and_failed_jobs_are_cleaned(desk: Desk) -> None:
    done = completed(desk)
    dead = desk.push()
    desk.do("Discard", id=dead)
    assert desk.do("Clean", queue="q", grace=0, state="completed") == {"count": 1, "ids": [done]}
    assert desk.do("Clean", queue="q", grace=0, state="failed") == {"count": 1, "ids": [dead]}


def test_an_obliterated_queue_is_as_if_it_had_never_been(desk: Desk) -> None:
    id, token = desk.active()
    completed(desk)
    desk.push()
    desk.do("Pause", queue="q")
    desk.do("SetDlqConfig", queue="q", config={"maxEntries": 5})
    assert desk.do("Obliterate", queue="q") == {}
    assert desk.do("ListQueues") == {"queues": []}
    assert desk.do("IsPaused", queue="q") == {"paused": False}
    assert desk.do("GetDlqConfig", queue="q")["config"]["maxEntries"] == 10_000
    words = f"Job not found or not in processing state: {id}"
    assert desk.refused("ACK", id=id, token=token) == words
    assert desk.do("Obliterate", queue="q") == {}


def test_delayed_jobs_are_promoted_up_to_a_count(desk: Desk) -> None:
    for delay in (30, 10, 20):
        desk.push(delay=delay * 1_000)
    assert desk.do("PromoteJobs", queue="q", count=1.9) == {"count": 1}
    assert desk.do("PromoteJobs", queue="q", count=0) == {"count": 0}
    assert desk.do("PromoteJobs", queue="q", count=-3) == {"count": 0}
    assert desk.do("PromoteJobs", queue="q") == {"count": 2}


def test_completed_jobs_run_again(desk: Desk) -> None:
    ids = [completed(desk), completed(desk), completed(desk)]
    assert desk.do("RetryCompleted", queue="other", id=ids[0]) == {"count": 0}
    assert desk.do("RetryCompleted", queue="q", id=ids[1]) == {"count": 1}
    assert desk.do("RetryCompleted", queue="q", id="missing") == {"count": 0}
    assert desk.do("RetryCompleted", queue="q", count=1) == {"count": 1}
    assert [desk.state(id) for id in ids] == ["waiting", "waiting", "completed"]
    job = desk.job(ids[0])
    assert "returnvalue" not in job
    assert (job["progress"], job["completedAt"]) == (0, None)


def test_completed_jobs_run_again_that_ended_before_a_moment(desk: Desk) -> None:
    completed(desk)
    desk.later(100)
    late = completed(desk)
    assert desk.do("RetryCompleted", queue="q", timestamp=desk.now) == {"count": 1}
    assert desk.state(late) == "completed"


@pytest.mark.parametrize(
    "cmd", ["Drain", "Clean", "Obliterate", "PromoteJobs", "RetryCompleted", "PurgeDlq", "RetryDlq"]
)
@pytest.mark.parametrize("queue", [None, 5, [], {}])
def test_a_queue_is_named_by_a_text(desk: Desk, cmd: str, queue: Any) -> None:
    assert desk.refused(cmd, queue=queue, grace=0) == "Queue name is required"
