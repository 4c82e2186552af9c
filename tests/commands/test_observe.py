"""Stats and StorageStatus."""

from __future__ import annotations

from tests.commands.desk import NOW, Desk

KEYS = {
    "waiting",
    "active",
    "delayed",
    "dlq",
    "completed",
    "failed",
    "uptime",
    "pushPerSec",
    "pullPerSec",
}


def test_stats_count_over_all_queues(desk: Desk) -> None:
    desk.push("a")
    desk.push("b", priority=3)
    desk.push("b", delay=50)
    desk.active("c")
    dead, token = desk.active("d", maxAttempts=1)
    desk.do("FAIL", id=dead, token=token)
    done, token = desk.active("e", removeOnComplete=True)
    desk.do("ACK", id=done, token=token)
    stats = desk.do("Stats")["stats"]
    assert set(stats) == KEYS
    assert [stats[k] for k in ("waiting", "active", "delayed", "dlq")] == [2, 1, 1, 1]
    assert (stats["completed"], stats["failed"]) == (1, 1)
    assert (stats["uptime"], stats["pushPerSec"], stats["pullPerSec"]) == (12.5, 3, 2)


def test_details_are_told_to_who_asks_for_them(desk: Desk) -> None:
    assert desk.do("Stats", details=True)["stats"]["loopLagMs"] == 0.25
    assert set(desk.do("Stats", details=False)["stats"]) == KEYS


def test_the_state_of_the_store(desk: Desk) -> None:
    fine = {"diskFull": False, "error": None, "since": None}
    assert desk.do("StorageStatus") == {"data": fine}
    desk.host.failed = "no space"
    shown = {"diskFull": True, "error": "no space", "since": NOW}
    assert desk.do("StorageStatus") == {"data": shown}


def test_compacting_changes_nothing_that_can_be_seen(desk: Desk) -> None:
    id = desk.push()
    assert desk.do("CompactMemory") == {}
    assert desk.state(id) == "waiting"
