"""Dlq, GetDlqStats, RetryDlq, PurgeDlq, RemoveDlqJob and the rules for dead letters."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import NOW, Desk

DEFAULTS = {
    "autoRetry": False,
    "autoRetryInterval": 3_600_000,
    "maxAutoRetries": 3,
    "maxAge": 604_800_000,
    "maxEntries": 10_000,
}


def dead(desk: Desk, **options: Any) -> str:
    id, token = desk.active(maxAttempts=1, **options)
    desk.do("FAIL", id=id, token=token, error="broke")
    return id


def listed(desk: Desk, **asked: Any) -> list[str]:
    answer = desk.do("Dlq", queue="q", **asked)
    ids = [job["id"] for job in answer["jobs"]]
    assert [entry["job"]["id"] for entry in answer["entries"]] == ids
    return ids


def test_an_entry_tells_what_is_known(desk: Desk) -> None:
    id = dead(desk)
    answer = desk.do("Dlq", queue="q")
    [job], [entry] = answer["jobs"], answer["entries"]
    assert entry.pop("job") == job
    assert len(job) <= 47
    assert job["id"] == id
    assert entry == {
        "enteredAt": NOW,
        "reason": "max_attempts_exceeded",
        "error": "broke",
        "attempts": [
            {
                "attempt": 1,
                "startedAt": NOW,
                "failedAt": NOW,
                "reason": "max_attempts_exceeded",
                "error": "broke",
                "duration": 0,
            }
        ],
        "retryCount": 0,
        "lastRetryAt": None,
        "nextRetryAt": None,
        "expiresAt": NOW + 604_800_000,
    }


def test_letters_are_listed_oldest_first_and_filtered(desk: Desk) -> None:
    a = dead(desk)
    desk.later(10)
    b = desk.push()
    desk.do("Discard", id=b)
    assert listed(desk) == [a, b]
    assert listed(desk, count=1) == [a]
    assert listed(desk, filter={"reason": "unknown"}) == [b]
    assert listed(desk, filter={"olderThan": desk.now}) == [a]
    assert listed(desk, filter={"newerThan": NOW}) == [b]
    assert listed(desk, filter={"offset": 1}) == [b]
    assert listed(desk, filter={"limit": 0}) == [a, b]
    assert listed(desk, filter={"limit": 1}) == [a]
    assert listed(desk, filter={"retriable": True}) == []
    assert listed(desk, filter={"expired": True}) == []
    assert listed(desk, filter="rubbish") == [a, b]
    assert desk.do("Dlq", queue="none") == {"jobs": [], "entries": []}


def test_figures(desk: Desk) -> None:
    none = desk.do("GetDlqStats", queue="q")["data"]["stats"]
    assert (none["total"], none["oldestEntry"], none["byQueue"]) == (0, None, {"q": 0})
    dead(desk)
    desk.later(10)
    desk.do("Discard", id=desk.push())
    desk.do("SetDlqConfig", queue="q", config={"autoRetry": True})
    stats = desk.do("GetDlqStats", queue="q")["data"]["stats"]
    assert stats["byReason"]["max_attempts_exceeded"] == stats["byReason"]["unknown"] == 1
    assert sum(stats["byReason"].values()) == stats["total"] == 2
    assert (stats["oldestEntry"], stats["newestEntry"]) == (NOW, NOW + 10)
    assert (stats["pendingRetry"], stats["expired"]) == (2, 0)


def test_letters_are_retried_one_some_or_all(desk: Desk) -> None:
    ids = [dead(desk) for _ in range(4)]
    assert desk.do("RetryDlq", queue="q", jobId=ids[2]) == {"count": 1}
    assert desk.do("RetryDlq", queue="q", jobId="missing") == {"count": 0}
    assert desk.do("RetryDlq", queue="other", jobId=ids[0]) == {"count": 0}
    for none in (0, -2, "x"):
        assert desk.do("RetryDlq", queue="q", count=none) == {"count": 0}
    assert desk.do("RetryDlq", queue="q", count=1) == {"count": 1}
    assert [desk.state(id) for id in ids] == ["waiting", "failed", "waiting", "failed"]
    assert desk.do("RetryDlq", queue="q") == {"count": 2}


def test_letters_are_retried_by_filter(desk: Desk) -> None:
    dead(desk)
    id = desk.push()
    desk.do("Discard", id=id)
    assert desk.do("RetryDlq", queue="q", filter={"reason": "unknown"}) == {"count": 1}
    assert desk.state(id) == "waiting"


def test_a_dry_run_counts_and_changes_nothing(desk: Desk) -> None:
    id = dead(desk)
    dead(desk)
    assert desk.do("RetryDlq", queue="q", dryRun=True) == {"count": 2}
    assert desk.do("RetryDlq", queue="q", jobId=id, dryRun=True) == {"count": 1}
    assert desk.do("RetryDlq", queue="q", jobId=id, data=1, dryRun=True) == {"count": 1}
    assert desk.do("PurgeDlq", queue="q", dryRun=True) == {"count": 2}
    assert len(listed(desk)) == 2
    assert desk.do("Count", queue="q") == {"count": 0}


def test_a_copy_with_other_data_runs_and_is_linked(desk: Desk) -> None:
    id = dead(desk, data={"to": "nobody"}, name="mail")
    answer = desk.do("RetryDlq", queue="q", jobId=id, data={"to": "somebody"})
    copy = answer["id"]
    assert answer == {"count": 1, "id": copy}
    pulled = desk.pull()
    assert pulled["job"]["id"] == copy
    assert (pulled["job"]["name"], pulled["job"]["data"]) == ("mail", {"to": "somebody"})
    [entry] = desk.do("Dlq", queue="q")["entries"]
    assert (entry["replays"], entry["retryCount"]) == ([copy], 1)
    desk.do("FAIL", id=copy, token=pulled["token"], unrecoverable=True)
    assert desk.do("Dlq", queue="q")["entries"][1]["replayOf"] == id


def test_a_copy_is_made_of_one_letter_with_data_that_push_would_take(desk: Desk) -> None:
    id = dead(desk)
    words = "data needs a jobId: a copy is made of one dead letter"
    assert desk.refused("RetryDlq", queue="q", data=1) == words
    assert desk.do("RetryDlq", queue="q", jobId="missing", data=1) == {"count": 0}
    big = "x" * 10_485_759
    assert desk.refused("RetryDlq", queue="q", jobId=id, data=big).startswith("Job data too large")


def test_letters_are_purged_or_removed(desk: Desk) -> None:
    a, b, c = dead(desk), dead(desk), dead(desk)
    assert desk.do("RemoveDlqJob", queue="q", jobId=b) == {"data": {"removed": True}}
    assert desk.do("RemoveDlqJob", queue="q", jobId=b) == {"data": {"removed": False}}
    assert desk.do("RemoveDlqJob", queue="other", jobId=a) == {"data": {"removed": False}}
    assert desk.do("PurgeDlq", queue="q", filter={"offset": 1}) == {"count": 1}
    assert (desk.state(a), desk.state(c)) == ("failed", "unknown")
    assert desk.do("PurgeDlq", queue="q") == {"count": 1}


@pytest.mark.parametrize(
    ("config", "changed"),
    [
        ({}, {}),
        ({"autoRetry": True}, {"autoRetry": True}),
        ({"autoRetry": "yes"}, {}),
        ({"autoRetryInterval": "250"}, {"autoRetryInterval": 250}),
        ({"autoRetryInterval": "abc"}, {}),
        ({"autoRetryInterval": 0}, {"autoRetryInterval": 1}),
        ({"maxAutoRetries": -1}, {"maxAutoRetries": 0}),
        ({"maxAge": None}, {"maxAge": None}),
        ({"maxAge": 5.9}, {"maxAge": 5}),
        ({"maxEntries": 0}, {"maxEntries": 1}),
        ({"maxEntries": [], "maxAge": True, "extra": 1}, {}),
    ],
)
def test_rules_are_changed_as_far_as_they_are_rules(desk: Desk, config: Any, changed: Any) -> None:
    assert desk.do("SetDlqConfig", queue="q", config=config) == {}
    assert desk.do("GetDlqConfig", queue="q") == {"config": {**DEFAULTS, **changed}}


@pytest.mark.parametrize("config", [None, 5, "x", []])
def test_rules_are_an_object(desk: Desk, config: Any) -> None:
    assert desk.refused("SetDlqConfig", queue="q", config=config) == "config must be an object"
    assert desk.do("ListQueues") == {"queues": []}


def test_a_queue_with_rules_is_listed(desk: Desk) -> None:
    desk.do("SetDlqConfig", queue="q", config={"maxEntries": 5})
    assert desk.do("ListQueues") == {"queues": ["q"]}


def test_an_edited_copy_is_bound_by_the_size_limit_of_its_letter(desk: Desk) -> None:
    id, token = desk.active(maxAttempts=1, sizeLimit=10)
    desk.do("FAIL", id=id, token=token)
    fields = {"queue": "q", "jobId": id, "data": "x" * 9}
    words = "Job data too large (its sizeLimit is 10 bytes)"
    assert desk.refused("RetryDlq", **fields) == words
    assert desk.refused("RetryDlq", **fields, dryRun=True) == words
