"""Reports of rate limits that charged attempts, held up strangers, or let a pull sleep on."""

from __future__ import annotations

import time

from tests.support.wire import Wire


def test_a_job_sent_back_by_a_limit_twenty_times_is_charged_nothing_and_keeps_its_place(
    wire: Wire, queue: str
) -> None:
    first = wire.push(queue, groupId="g", maxAttempts=3, backoff=0)
    wire.push(queue, groupId="g")
    for _ in range(20):
        got = wire.pull(queue)
        assert got["job"]["id"] == first, "the one that was sent back is first again"
        wire.do("FAIL", id=first, token=got["token"], error="429", retryAfter=0)
    for attempt in range(3):
        got = wire.pull(queue)
        assert (got["job"]["id"], got["job"]["attempts"]) == (first, attempt)
        wire.do("FAIL", id=first, token=got["token"], error="a real one")
    assert wire.state(first) == "failed"


def test_a_limit_of_one_group_does_not_hold_up_another(wire: Wire, queue: str) -> None:
    for group in ("a", "a", "b", "b"):
        wire.push(queue, group, groupId=group)
    limit = {"limit": {"max": 1, "duration": 10_000}}
    started = [wire.pull(queue, group=limit)["job"] for _ in range(10)]
    assert sorted(job["data"] for job in started if job) == ["a", "b"]


def test_a_group_that_was_told_to_wait_does_not_hold_up_another(wire: Wire, queue: str) -> None:
    a, b = wire.push(queue, groupId="a"), wire.push(queue, groupId="b")
    got = wire.pull(queue)
    wire.do("FAIL", id=a, token=got["token"], retryAfter=60_000)
    assert wire.pull(queue)["job"]["id"] == b
    assert wire.pull(queue)["job"] is None


def test_a_pull_that_waits_for_a_token_gets_its_job_when_there_is_one(
    wire: Wire, queue: str
) -> None:
    wire.do("RateLimit", queue=queue, limit=1, duration=500)
    wire.push(queue)
    wire.push(queue)
    assert wire.pull(queue)["job"]
    began = time.monotonic()
    assert wire.pull(queue, timeout=10_000)["job"]
    assert 0.3 < time.monotonic() - began < 5
