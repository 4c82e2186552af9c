"""Dead letters, both faces: those that stayed in their queue and those that moved."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.market import Market

# -- dead letters, both faces ----------------------------------------------------------------------


@pytest.fixture
def graves(market: Market) -> tuple[Market, str, str]:
    """A dead job that stayed and a dead letter that moved, in this order."""
    market.create(dead_letters=True)
    market.push("q", maxAttempts=1)
    job, token = market.pulled()
    market.do("FAIL", id=job["id"], token=token, error="job")
    market.later(10)
    market.publish("m1")
    letter, token = market.pulled()
    market.do("FAIL", id=letter["id"], token=token, error="letter", unrecoverable=True)
    market.later(10)
    [moved] = [m.id for m in market.engine.queues["q.dlq"].ready]
    return market, job["id"], moved


Graves = tuple[Market, str, str]


def ids(market: Market, **asked: Any) -> list[str]:
    return [job["id"] for job in market.do("Dlq", queue="q", **asked)["jobs"]]


def test_both_kinds_are_listed_oldest_first(graves: Graves) -> None:
    market, job, moved = graves
    assert ids(market) == [job, moved]
    assert ids(market, count=1) == [job]
    assert ids(market, filter={"offset": 1}) == [moved]
    assert ids(market, filter={"reason": "max_attempts_exceeded"}) == [job, moved]
    assert ids(market, filter={"reason": "timeout"}) == []
    assert ids(market, filter={"newerThan": market.now - 15}) == [moved]
    assert ids(market, filter={"olderThan": market.now - 15}) == [job]
    assert ids(market, filter={"retriable": True}) == []


def test_both_kinds_are_counted(graves: Graves) -> None:
    market, _, _ = graves
    stats = market.do("GetDlqStats", queue="q")["data"]["stats"]
    assert (stats["total"], stats["byQueue"]) == (2, {"q": 2})
    assert stats["byReason"]["max_attempts_exceeded"] == 2
    assert stats["oldestEntry"] == market.now - 20
    assert stats["newestEntry"] == market.now - 10


def test_both_kinds_are_retried(graves: Graves) -> None:
    market, job, _ = graves
    assert market.do("RetryDlq", queue="q", dryRun=True) == {"count": 2}
    assert market.do("RetryDlq", queue="q") == {"count": 2}
    assert ids(market) == []
    [first, second] = [market.pulled()[0] for _ in range(2)]
    assert {first["id"] == job, second["id"] == job} == {True, False}
    letter = first if second["id"] == job else second
    assert (letter["messageId"], letter["headers"], letter["attempts"]) == ("m1", {}, 0)


def test_each_is_retried_by_its_id(graves: Graves) -> None:
    market, job, moved = graves
    for id in (moved, job):
        assert market.do("RetryDlq", queue="q", jobId=id, dryRun=True) == {"count": 1}
        assert market.do("RetryDlq", queue="q", jobId=id) == {"count": 1}
        assert market.do("RetryDlq", queue="q", jobId=id) == {"count": 0}
    assert market.do("RetryDlq", queue="other", jobId=moved) == {"count": 0}
    assert market.info().waiting == 2


def test_some_are_retried(graves: Graves) -> None:
    market, _, moved = graves
    assert market.do("RetryDlq", queue="q", count=1) == {"count": 1}
    assert ids(market) == [moved]
    assert market.do("RetryDlq", queue="q", filter={"newerThan": market.now}) == {"count": 0}


def test_both_kinds_are_purged(graves: Graves) -> None:
    market, _, _ = graves
    assert market.do("PurgeDlq", queue="q", dryRun=True) == {"count": 2}
    assert market.do("PurgeDlq", queue="q") == {"count": 2}
    assert ids(market) == []
    assert market.info("q.dlq").waiting == 0


def test_each_is_removed_by_its_id(graves: Graves) -> None:
    market, job, moved = graves
    for id in (moved, job):
        assert market.do("RemoveDlqJob", queue="q", jobId=id)["data"] == {"removed": True}
        assert market.do("RemoveDlqJob", queue="q", jobId=id)["data"] == {"removed": False}
    assert ids(market) == []


def test_letters_of_another_queue_in_the_same_grave_are_left_alone(market: Market) -> None:
    for queue in ("q", "p"):
        market.create(queue, dead_letters=True, dead_letter_queue="dead", max_attempts=1)
        market.publish(f"of {queue}", queue)
        job, token = market.pulled(queue)
        market.do("FAIL", id=job["id"], token=token)
    assert [job["messageId"] for job in market.do("Dlq", queue="q")["jobs"]] == ["of q"]
    assert market.do("PurgeDlq", queue="q") == {"count": 1}
    assert market.waiting("dead") == ["of p"]


def test_what_somebody_reads_from_the_grave_is_no_dead_letter_meanwhile(graves: Graves) -> None:
    market, job, _ = graves
    market.pulled("q.dlq")
    assert ids(market) == [job]


def test_a_full_queue_takes_none_back(market: Market) -> None:
    market.create(dead_letters=True, max_size=1, max_attempts=1)
    market.publish("m1")
    job, token = market.pulled()
    market.do("FAIL", id=job["id"], token=token)
    market.publish("m2")
    assert market.do("RetryDlq", queue="q", dryRun=True) == {"count": 0}
    assert market.do("RetryDlq", queue="q") == {"count": 0}
    [dead] = ids(market)
    assert "full" in market.refused("RetryDlq", queue="q", jobId=dead, data=1)
    assert market.waiting() == ["m2"]


def test_ten_thousand_letters_are_gone_through_in_slices() -> None:
    market = Market(dead_letters=True, max_attempts=1, max_size=20_000)
    for n in range(10_000):
        market.publish(f"m{n}")
    while jobs := market.do("PULLB", queue="q", count=1_000)["jobs"]:
        for job in jobs:
            market.do("FAIL", id=job["id"])
    assert len(ids(market, count=100)) == 100
    assert in_slices(market, "GetDlqStats")["data"]["stats"]["total"] == 10_000
    assert in_slices(market, "RetryDlq", dryRun=True)["count"] == 10_000
    assert in_slices(market, "RetryDlq", count=6_000)["count"] == 6_000
    assert in_slices(market, "PurgeDlq")["count"] == 4_000
    assert (market.info().waiting, ids(market)) == (6_000, [])


def in_slices(market: Market, cmd: str, **asked: Any) -> Any:
    assert market.waits(cmd, queue="q", **asked)
    slices, said = 1, list(market.told())
    while not said:
        slices += 1
        market.later(1)
        said = list(market.told())
    assert slices >= 2
    return said[0][1]
