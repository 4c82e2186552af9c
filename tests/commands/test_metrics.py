"""Totals of the server, and ends of a queue minute by minute."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import NOW, Desk

MINUTE = 60_000
BAD_START = "start must be a non-negative safe integer"


def completed(desk: Desk, count: int = 1, queue: str = "q") -> None:
    for _ in range(count):
        id, token = desk.active(queue)
        desk.do("ACK", id=id, token=token)


def minutes(desk: Desk, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = desk.do("Metrics", **{"queue": "q", "type": "completed", **fields})
    return dict(found["data"])


def test_without_a_queue_it_tells_the_totals(desk: Desk) -> None:
    completed(desk, 2)
    assert desk.do("Metrics")["metrics"] == {
        "totalPushed": 2,
        "totalPulled": 2,
        "totalCompleted": 2,
        "totalFailed": 0,
        "avgLatencyMs": 0.5,
        "avgProcessingMs": 0.75,
        "memoryUsageMb": 3.0,
        "sqliteSizeMb": 0.5,
        "activeConnections": 7,
    }


def test_a_queue_in_which_nothing_ended_has_an_empty_series(desk: Desk) -> None:
    meta = {"count": 0, "prevTS": 0, "prevCount": 0}
    assert minutes(desk) == {"meta": meta, "data": [], "count": 0}


def test_a_queue_tells_its_minutes_newest_first(desk: Desk) -> None:
    completed(desk, 2)
    desk.later(2 * MINUTE)
    completed(desk)
    assert minutes(desk) == {
        "meta": {"count": 3, "prevTS": NOW + 2 * MINUTE, "prevCount": 1},
        "data": [1, 0, 2],
        "count": 3,
    }
    assert minutes(desk, start=1, end=2)["data"] == [0, 2]
    assert minutes(desk, start=0, end=0)["data"] == [1]
    assert minutes(desk, start=1, end=-1)["data"] == [0, 2]
    assert minutes(desk, start=5)["data"] == []
    assert minutes(desk, start=2, end=1)["data"] == []
    assert minutes(desk, type="failed")["count"] == 0


def test_only_terminal_failures_are_counted(desk: Desk) -> None:
    id, token = desk.active(maxAttempts=2, backoff=0)
    desk.do("FAIL", id=id, token=token)
    assert minutes(desk, type="failed")["meta"]["count"] == 0
    desk.do("FAIL", id=id, token=desk.pull()["token"])
    assert minutes(desk, type="failed")["meta"]["count"] == 1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"queue": "q"}, "Metrics type must be 'completed' or 'failed'"),
        ({"queue": "q", "type": "other"}, "Metrics type must be 'completed' or 'failed'"),
        ({"type": "completed"}, "Metrics queue is required"),
        ({"queue": "", "type": "completed"}, "Metrics queue is required"),
        ({"queue": "a b", "type": "completed"}, "Queue name contains invalid characters"),
        *(
            ({"queue": "q", "type": "failed", "start": bad}, BAD_START)
            for bad in (-1, 1.5, "0", True, 1e300)
        ),
        (
            {"queue": "q", "type": "failed", "start": 0, "end": -2},
            "end must be a non-negative safe integer",
        ),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_refused(
    desk: Desk, fields: dict[str, Any], sentence: str
) -> None:
    assert desk.refused("Metrics", **fields) == sentence


def test_prometheus_is_asked_of_the_server(desk: Desk) -> None:
    assert desk.do("Prometheus")["data"] == {"metrics": "# nothing\n"}


def test_workers_have_totals(desk: Desk) -> None:
    id = desk.do("RegisterWorker", name="w", queues=["q"], concurrency=4)["data"]["workerId"]
    desk.do("Heartbeat", id=id, activeJobs=2, processed=5, failed=1)
    assert desk.do("WorkerStats")["data"]["stats"] == {
        "total": 1,
        "active": 1,
        "totalProcessed": 5,
        "totalFailed": 1,
        "activeJobs": 2,
        "concurrencySlots": 4,
    }
