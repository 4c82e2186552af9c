"""PULL and PULLB: limits, leases, waiting."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.commands.desk import Desk

QUEUES = [
    (None, "Queue name is required"),
    ("", "Queue name is required"),
    ("x" * 257, "Queue name too long (max 256 characters)"),
    ("a b", "Queue name contains invalid characters"),
]


@pytest.mark.parametrize(("queue", "words"), QUEUES)
@pytest.mark.parametrize("cmd", ["PULL", "PULLB"])
def test_the_queue_must_have_a_good_name(desk: Desk, cmd: str, queue: Any, words: str) -> None:
    assert desk.refused(cmd, queue=queue, count=1) == words


@pytest.mark.parametrize(
    ("timeout", "words"),
    [
        (60_001, "timeout must be at most 60000"),
        (-1, "timeout must be at least 0"),
        ("5", "timeout must be a number"),
        (True, "timeout must be a number"),
        (math.nan, "timeout must be a finite number"),
        (math.inf, "timeout must be a finite number"),
    ],
)
@pytest.mark.parametrize("cmd", ["PULL", "PULLB"])
def test_a_wait_has_limits(desk: Desk, cmd: str, timeout: Any, words: str) -> None:
    assert desk.refused(cmd, queue="q", count=1, timeout=timeout) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "count must be at least 1"),
        (-5, "count must be at least 1"),
        (1001, "count must be at most 1000"),
        ("2", "count must be a number"),
        (False, "count must be a number"),
        (math.nan, "count must be a finite number"),
    ],
)
def test_a_count_has_limits(desk: Desk, count: Any, words: str) -> None:
    assert desk.refused("PULLB", queue="q", count=count) == words


def test_without_a_count_a_batch_is_empty_even_when_asked_to_wait(desk: Desk) -> None:
    desk.push()
    assert desk.do("PULLB", queue="q") == {"jobs": []}
    assert desk.do("PULLB", queue="q", timeout=1000, owner="w") == {"jobs": [], "tokens": []}
    assert desk.do("PULLB", queue="q", count=None) == {"jobs": []}


def test_a_fraction_of_a_job_is_a_job(desk: Desk) -> None:
    for _ in range(5):
        desk.push()
    assert len(desk.do("PULLB", queue="q", count=1.5)["jobs"]) == 2
    assert len(desk.do("PULLB", queue="q", count=2.0)["jobs"]) == 2
    assert len(desk.do("PULLB", queue="q", count=1000)["jobs"]) == 1


SAFE = "must be a positive safe integer"


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (5, "group must be an object"),
        ("g", "group must be an object"),
        ([], "group must be an object"),
        (None, "group must be an object"),
        ({"affinity": 5}, "group.affinity must be a string or null"),
        ({"concurrency": 0}, f"group.concurrency {SAFE}"),
        ({"concurrency": 1.5}, f"group.concurrency {SAFE}"),
        ({"concurrency": 2.0**53}, f"group.concurrency {SAFE}"),
        ({"concurrency": "2"}, f"group.concurrency {SAFE}"),
        ({"limit": 1}, "group.limit must be an object"),
        ({"limit": {"max": 0, "duration": 5}}, f"group.limit.max {SAFE}"),
        ({"limit": {"max": 1, "duration": -5}}, f"group.limit.duration {SAFE}"),
    ],
)
@pytest.mark.parametrize("cmd", ["PULL", "PULLB"])
def test_what_is_asked_of_groups_is_checked(desk: Desk, cmd: str, group: Any, words: str) -> None:
    assert desk.refused(cmd, queue="q", count=1, group=group) == words


def test_a_pull_that_asks_nothing_of_groups_is_like_any_other(desk: Desk) -> None:
    for group in ({}, {"affinity": None}, {"concurrency": 1}, {"limit": {"max": 1, "duration": 9}}):
        assert desk.do("PULL", queue="q", group=group) == {"job": None}


# -- what comes back -----------------------------------------------------------------------------


@pytest.mark.parametrize("owner", ["w", 1, True, "0", {"a": 1}])
def test_an_owner_gets_a_token(desk: Desk, owner: Any) -> None:
    assert desk.do("PULL", queue="q", owner=owner) == {"job": None, "token": None}
    id = desk.push()
    answer = desk.do("PULL", queue="q", owner=owner)
    assert answer["job"]["id"] == id
    assert len(answer["token"]) == 36


@pytest.mark.parametrize("owner", [None, "", 0, False])
def test_without_an_owner_there_is_no_token(desk: Desk, owner: Any) -> None:
    desk.push()
    assert set(desk.do("PULL", queue="q", owner=owner)) == {"job"}
    assert set(desk.do("PULLB", queue="q", owner=owner, count=1)) == {"jobs"}


def test_tokens_stand_beside_their_jobs(desk: Desk) -> None:
    ids = [desk.push() for _ in range(3)]
    answer = desk.do("PULLB", queue="q", count=5, owner="w")
    assert [job["id"] for job in answer["jobs"]] == ids
    for id, token in zip(ids, answer["tokens"], strict=True):
        desk.do("ACK", id=id, token=token)
    assert len(set(answer["tokens"])) == 3


def test_a_job_that_is_handed_out_has_the_keys_and_no_more(desk: Desk) -> None:
    desk.push(data={"a": 1})
    job = desk.pull()["job"]
    assert len(job) == 47
    assert (job["startedAt"], job["attempts"]) == (desk.now, 0)
    assert [step["state"] for step in job["timeline"]] == ["waiting", "active"]


def test_higher_priority_goes_first_then_lifo_then_order_of_arrival(desk: Desk) -> None:
    first, second = desk.push(), desk.push()
    last = desk.push(priority=-1)
    newest = desk.push(lifo=True)
    urgent = desk.push(priority=5)
    answer = desk.do("PULLB", queue="q", count=9)
    assert [job["id"] for job in answer["jobs"]] == [urgent, newest, first, second, last]


def test_asking_an_unknown_queue_leaves_no_trace(desk: Desk) -> None:
    assert desk.do("PULL", queue="nowhere") == {"job": None}
    assert not desk.engine.queues


# -- leases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ttl", [None, 0, -5, math.nan, math.inf, 1e308, "100", True, []])
def test_a_lease_without_a_usable_span_takes_thirty_seconds(desk: Desk, ttl: Any) -> None:
    id = desk.push()
    desk.pull(lockTtl=ttl)
    lease = desk.engine.messages[id].lease
    assert lease is not None
    assert lease.span == 30_000
    assert lease.until == desk.now + 30_000


def test_a_lease_has_the_span_that_was_asked_for(desk: Desk) -> None:
    id = desk.push()
    desk.pull(lockTtl=1000)
    desk.later(1799)
    assert desk.state(id) == "active"
    desk.later(1)
    assert desk.state(id) == "waiting"
    desk.pull(lockTtl=0.4)
    lease = desk.engine.messages[id].lease
    assert lease is not None
    assert lease.span == 1


def test_a_job_goes_back_when_its_connection_is_gone_unless_it_was_detached(desk: Desk) -> None:
    held, detached, owned = desk.push("a"), desk.push("b"), desk.push("c")
    desk.do("PULL", queue="a")
    desk.do("PULL", queue="b", detach=True)
    desk.do("PULL", queue="c", detach=True, owner="w")
    desk.disconnect()
    assert [desk.state(id) for id in (held, detached, owned)] == ["waiting", "active", "waiting"]


# -- waiting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cmd", ["PULL", "PULLB"])
def test_a_pull_waits_for_a_job_and_gets_it_at_once(desk: Desk, cmd: str) -> None:
    assert desk.waits(cmd, conn=2, queue="q", count=3, timeout=60_000, owner="w", reqId="r")
    id = desk.push()
    ((conn, answer),) = desk.told()
    assert (conn, answer["reqId"]) == (2, "r")
    jobs = [answer["job"]] if cmd == "PULL" else answer["jobs"]
    tokens = [answer["token"]] if cmd == "PULL" else answer["tokens"]
    assert [job["id"] for job in jobs] == [id]
    desk.do("ACK", id=id, token=tokens[0])


def test_a_pull_gives_up_when_its_time_is_over(desk: Desk) -> None:
    assert desk.waits("PULL", queue="q", timeout=100, owner="w", reqId=1)
    assert desk.waits("PULLB", queue="q", timeout=200.9, count=2, reqId=2)
    desk.later(99)
    assert list(desk.told()) == []
    desk.later(1)
    assert list(desk.told()) == [(1, {"ok": True, "job": None, "token": None, "reqId": 1})]
    desk.later(100)
    assert list(desk.told()) == [(1, {"ok": True, "jobs": [], "reqId": 2})]
    assert not desk.engine.queues


@pytest.mark.parametrize("timeout", [0, None, 0.0])
def test_without_a_timeout_nothing_waits(desk: Desk, timeout: Any) -> None:
    assert desk.do("PULL", queue="q", timeout=timeout) == {"job": None}
    assert not desk.waits("PULL", queue="q")


def test_a_pull_that_finds_something_does_not_wait_for_more(desk: Desk) -> None:
    desk.push()
    assert len(desk.do("PULLB", queue="q", count=10, timeout=5000)["jobs"]) == 1


def test_pulls_that_wait_are_served_in_their_order(desk: Desk) -> None:
    for conn in (1, 2, 3):
        assert desk.waits("PULL", conn=conn, queue="q", timeout=1000)
    ids = desk.do("PUSHB", conn=9, queue="q", jobs=[{}, {}])["ids"]
    told = [(conn, answer["job"]["id"]) for conn, answer in desk.told()]
    assert told == [(1, ids[0]), (2, ids[1])]


def test_a_delayed_job_wakes_a_pull_when_it_is_due(desk: Desk) -> None:
    id = desk.push(delay=300)
    assert desk.waits("PULL", queue="q", timeout=1000)
    desk.later(300)
    ((_, answer),) = desk.told()
    assert answer["job"]["id"] == id


def test_a_pull_of_a_lost_connection_takes_nothing(desk: Desk) -> None:
    assert desk.waits("PULL", conn=2, queue="q", timeout=1000)
    desk.disconnect(2)
    id = desk.push()
    assert list(desk.told()) == []
    assert desk.state(id) == "waiting"
