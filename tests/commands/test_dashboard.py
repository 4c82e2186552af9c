"""What a page about the server shows."""

from __future__ import annotations

from typing import Any

from tests.commands.desk import NOW, Desk


def page(desk: Desk, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = desk.do("DashboardQueue", queue="q", **fields)["data"]
    return found


def test_a_queue_shows_counts_priorities_and_dead_letters(desk: Desk) -> None:
    desk.push(data={"n": 1})
    desk.push(priority=5)
    desk.push(delay=60_000)
    dead = desk.push(data={"n": 2}, priority=9, maxAttempts=1)
    desk.do("FAIL", id=dead, token=desk.pull()["token"])
    shown = page(desk)
    assert shown == {
        "name": "q",
        "counts": {
            "waiting": 1,
            "prioritized": 1,
            "delayed": 1,
            "active": 0,
            "completed": 0,
            "failed": 1,
            "waiting-children": 0,
            "totalCompleted": 0,
            "totalFailed": 1,
            "paused": 0,
        },
        "paused": False,
        "priorityCounts": {"0": 2, "5": 1},
        "dlqPreview": [{"id": dead, "data": {"n": 2}, "attempts": 1, "createdAt": NOW}],
        "timestamp": NOW,
    }


def test_jobs_are_shown_when_asked_for(desk: Desk) -> None:
    first, later = desk.push(), desk.push(delay=500)
    brief = {"priority": 0, "createdAt": NOW, "attempts": 0, "progress": 0}
    assert page(desk, includeJobs=True)["jobs"] == {
        "waiting": [{"id": first, "runAt": NOW, **brief}],
        "active": [],
        "delayed": [{"id": later, "runAt": NOW + 500, **brief}],
        "paused": [],
    }
    desk.do("Pause", queue="q")
    jobs = page(desk, includeJobs=True)["jobs"]
    assert (jobs["waiting"], [job["id"] for job in jobs["paused"]]) == ([], [first])


def test_the_number_of_jobs_shown_is_bounded(desk: Desk) -> None:
    for _ in range(60):
        desk.push()
    for asked, shown in ((None, 50), (3, 3), (0, 0), (-1, 0), ("x", 50), (1e9, 60)):
        jobs = page(desk, includeJobs=True, jobsLimit=asked)["jobs"]
        assert len(jobs["waiting"]) == shown


def test_a_queue_that_does_not_exist_is_empty(desk: Desk) -> None:
    shown = page(desk, includeJobs=True)
    assert set(shown["counts"].values()) == {0}
    assert shown["jobs"] == {"waiting": [], "active": [], "delayed": [], "paused": []}
    assert "q" not in desk.engine.queues


def test_a_bad_name_is_refused(desk: Desk) -> None:
    sentence = "Queue name contains invalid characters"
    assert desk.refused("DashboardQueue", queue="bad name") == sentence


def test_all_queues_are_shown_by_name(desk: Desk) -> None:
    for queue in ("b", "a"):
        desk.push(queue)
    desk.push("b", priority=1)
    desk.do("Pause", queue="b")
    shown = desk.do("DashboardQueues")["data"]
    none = {"delayed": 0, "active": 0, "dlq": 0}
    assert shown == {
        "queues": [
            {"name": "a", "waiting": 1, "prioritized": 0, "paused": False, **none},
            {"name": "b", "waiting": 1, "prioritized": 1, "paused": True, **none},
        ],
        "timestamp": NOW,
    }


def test_the_overview_has_all_its_parts(desk: Desk) -> None:
    desk.active()
    desk.do("RegisterWorker", name="w", queues=["q"])
    shown = desk.do("DashboardOverview")["data"]
    assert list(shown) == [
        "stats", "throughput", "latency", "memory", "collections", "workers", "crons", "storage",
        "timestamp",
    ]  # fmt: skip
    assert (shown["stats"]["active"], shown["stats"]["totalPushed"]) == (1, 1)
    assert shown["collections"]["jobIndex"] == shown["collections"]["jobLocks"] == 1
    assert (shown["workers"]["total"], len(shown["workers"]["list"])) == (1, 1)
    assert shown["crons"] == {"total": 0, "list": [], "truncated": False}
    assert shown["storage"]["diskFull"] is False
