"""RegisterWorker, UnregisterWorker, Heartbeat and ListWorkers."""

from __future__ import annotations

import math
from typing import Any

import msgpack
import pytest
from tests.commands.desk import NOW, Desk

from tandemq.commands import workers as module

ZERO = {
    "total": 0,
    "active": 0,
    "totalProcessed": 0,
    "totalFailed": 0,
    "activeJobs": 0,
    "concurrencySlots": 0,
}


def register(desk: Desk, conn: int = 1, **fields: Any) -> dict[str, Any]:
    data: dict[str, Any] = desk.do("RegisterWorker", conn, **fields)["data"]
    return data


def workers(desk: Desk) -> dict[str, Any]:
    data: dict[str, Any] = desk.do("ListWorkers")["data"]
    return data


def test_a_worker_is_registered_with_what_it_says_of_itself(desk: Desk) -> None:
    shown = register(
        desk,
        name="w",
        queues=["a", "b"],
        concurrency=4,
        workerId="id",
        hostname="h",
        pid=7,
        startedAt=NOW - 50,
    )
    assert shown == {
        "workerId": "id",
        "name": "w",
        "queues": ["a", "b"],
        "concurrency": 4,
        "hostname": "h",
        "pid": 7,
        "status": "active",
        "registeredAt": NOW - 50,
        "lastSeen": NOW,
        "activeJobs": 0,
        "processedJobs": 0,
        "failedJobs": 0,
        "currentJob": None,
    }
    assert type(shown["registeredAt"]) is float


def test_a_worker_that_says_little_gets_the_defaults(desk: Desk) -> None:
    shown = register(desk, name="w", queues=["q"])
    assert len(shown["workerId"]) == 36
    assert (shown["concurrency"], shown["hostname"], shown["pid"]) == (1, "unknown", 0)
    assert shown["registeredAt"] == NOW


def test_registering_again_updates_and_keeps_the_figures(desk: Desk) -> None:
    register(desk, name="w", queues=["a"], workerId="id")
    desk.do("Heartbeat", id="id", processed=5)
    shown = register(desk, name="other", queues=["b"], workerId="id", concurrency=9)
    assert (shown["name"], shown["queues"], shown["concurrency"]) == ("w", ["b"], 9)
    assert shown["processedJobs"] == 5
    assert workers(desk)["stats"]["total"] == 1


def test_workers_are_listed_with_totals(desk: Desk) -> None:
    assert workers(desk) == {"workers": [], "stats": ZERO}
    register(desk, workerId="a", concurrency=2)
    register(desk, workerId="b", concurrency=3)
    desk.do("Heartbeat", id="a", activeJobs=1, processed=10, failed=2)
    desk.later(100)
    listed = workers(desk)
    assert [w["id"] for w in listed["workers"]] == ["a", "b"]
    assert [w["uptime"] for w in listed["workers"]] == [100, 100]
    assert listed["stats"] == {
        "total": 2,
        "active": 2,
        "totalProcessed": 10,
        "totalFailed": 2,
        "activeJobs": 1,
        "concurrencySlots": 5,
    }


def test_a_heartbeat_sets_what_it_reports_and_leaves_the_rest(desk: Desk) -> None:
    register(desk, workerId="a")
    assert desk.do("Heartbeat", id="a", processed=3, failed=1) == {"data": {"ok": True}}
    desk.do("Heartbeat", id="a", processed=2, failed="x", activeJobs=None)
    (shown,) = workers(desk)["workers"]
    assert (shown["processedJobs"], shown["failedJobs"], shown["activeJobs"]) == (2, 1, 0)


def test_a_silent_worker_becomes_stale_and_is_forgotten(desk: Desk) -> None:
    register(desk, workerId="a")
    desk.later(30_000)
    assert workers(desk)["workers"][0]["status"] == "active"
    desk.later(1)
    assert workers(desk)["workers"][0]["status"] == "stale"
    assert workers(desk)["stats"]["active"] == 0
    desk.do("Heartbeat", id="a")
    assert workers(desk)["workers"][0]["status"] == "active"
    desk.later(90_001)
    assert workers(desk)["workers"] == []


def test_a_worker_goes_with_its_connection(desk: Desk) -> None:
    register(desk, conn=1, workerId="a")
    register(desk, conn=2, workerId="b")
    desk.disconnect(1)
    assert [w["id"] for w in workers(desk)["workers"]] == ["b"]


@pytest.mark.parametrize("id", ["missing", None, 5, []])
def test_an_unknown_worker_is_told_so(desk: Desk, id: Any) -> None:
    assert desk.refused("UnregisterWorker", workerId=id) == "Worker not found"
    assert desk.refused("Heartbeat", id=id) == "Worker not found"
    assert desk.refused("UnregisterWorker") == desk.refused("Heartbeat") == "Worker not found"


def test_a_worker_is_unregistered_once(desk: Desk) -> None:
    register(desk, workerId="a")
    assert desk.do("UnregisterWorker", workerId="a") == {"data": {"removed": True}}
    assert desk.refused("UnregisterWorker", workerId="a") == "Worker not found"


def nested(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("odd", [1e308, -1e308, math.nan, math.inf, "5", True, [], {}])
def test_odd_figures_never_spoil_the_list(desk: Desk, odd: Any) -> None:
    for id in ("a", "b"):
        register(desk, workerId=id, concurrency=odd, pid=odd, startedAt=odd, hostname=odd)
        desk.do("Heartbeat", id=id, activeJobs=odd, processed=odd, failed=odd)
    assert workers(desk)["stats"]["total"] == 2


@pytest.mark.parametrize(
    "odd",
    [b"\xc1", b"\x91\xd4\0\0", b"\x91" * 300 + b"\xc0", b"\xcf" + b"\x7f" * 8, b"\x81\x05\x06"],
)
def test_odd_names_never_spoil_the_list(desk: Desk, odd: bytes) -> None:
    body = b"\x83\xa3cmd\xaeRegisterWorker\xa4name" + odd + b"\xa6queues\x91" + odd
    answer = msgpack.unpackb(desk.hand_in(body), strict_map_key=False)
    assert answer["ok"]
    assert workers(desk)["stats"]["total"] == 1


LONG = "x" * (module.TEXT_LENGTH + 1)
BOMB = [[] for _ in range(2_000)]  # a byte each on the wire, a hundred in memory


@pytest.mark.parametrize("field", ["name", "workerId", "hostname"])
@pytest.mark.parametrize("value", [LONG, BOMB, {"x": BOMB}, {LONG * 200: 1}])
def test_what_a_worker_says_of_itself_is_short(desk: Desk, field: str, value: Any) -> None:
    said = {"name": "w", "workerId": "id", field: "x" * module.TEXT_LENGTH}
    register(desk, **said)
    words = desk.refused("RegisterWorker", **{**said, field: value})
    assert words == f"{field} must be a text of at most 256 characters"
    assert workers(desk)["stats"]["total"] == 1


@pytest.mark.parametrize(
    "queues", [["q"] * 1_001, ["q", LONG], LONG, BOMB[:900], {"x": BOMB}, [BOMB], [{LONG * 200: 1}]]
)
def test_a_worker_has_so_many_queues_and_their_names_are_short(desk: Desk, queues: Any) -> None:
    shown = register(desk, queues=["x" * module.TEXT_LENGTH] * module.QUEUES)
    assert len(shown["queues"]) == module.QUEUES
    words = desk.refused("RegisterWorker", queues=queues)
    assert words == "queues must be at most 1000 names of at most 256 characters"


def test_the_registry_is_bounded(desk: Desk) -> None:
    desk.engine.workers.room = 2_700
    for id in ("a", "b", "a"):
        register(desk, workerId=id)
    words = desk.refused("RegisterWorker", workerId="c")
    assert words == "There is no room for more than 2 such workers; unregister some first"
    assert desk.refused("RegisterWorker", workerId="a", hostname="h" * 250) == words
    desk.later(90_001)
    register(desk, workerId="c")
    assert [w["id"] for w in workers(desk)["workers"]] == ["c"]
