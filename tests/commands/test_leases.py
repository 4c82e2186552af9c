"""ExtendLock, ExtendLocks, JobHeartbeat and JobHeartbeatB."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.commands.desk import Desk

NO_LOCK = "Lock not found or invalid token"
NOT_ACTIVE = "Job not found or not active (or invalid token)"


def until(desk: Desk, id: str) -> int:
    lease = desk.engine.messages[id].lease
    assert lease is not None
    return lease.until - desk.now


def test_a_lease_is_renewed_for_a_span_from_now(desk: Desk) -> None:
    id, token = desk.active()
    desk.later(1000)
    assert desk.do("ExtendLock", id=id, token=token, duration=5000) == {}
    assert until(desk, id) == 5000


@pytest.mark.parametrize("token", [None, "absent"])
def test_without_a_token_whatever_lease_there_is_is_renewed(desk: Desk, token: Any) -> None:
    id, _ = desk.active()
    fields = {} if token == "absent" else {"token": token}
    assert desk.do("ExtendLock", id=id, duration=5000, **fields) == {}
    assert until(desk, id) == 5000


@pytest.mark.parametrize("duration", [None, 0, -1, math.nan, math.inf, 1e308, "5", True, []])
def test_a_span_that_is_none_is_that_of_the_lease(desk: Desk, duration: Any) -> None:
    id, token = desk.active()
    desk.later(10_000)
    desk.do("ExtendLock", id=id, token=token, duration=duration)
    assert until(desk, id) == 30_000


def test_a_fraction_of_a_millisecond_is_one(desk: Desk) -> None:
    id, token = desk.active()
    desk.do("ExtendLock", id=id, token=token, duration=0.2)
    assert until(desk, id) == 1


def test_what_has_no_lease_with_a_token_is_refused(desk: Desk) -> None:
    waiting = desk.push("w")
    unlocked = desk.push("u")
    desk.do("PULL", queue="u")
    held, token = desk.active()
    for id in ("missing", None, 5, [], waiting, unlocked):
        assert desk.refused("ExtendLock", id=id, duration=5000) == NO_LOCK
    for wrong in (token + "x", "", 5):
        assert desk.refused("ExtendLock", id=held, token=wrong, duration=5000) == NO_LOCK
    assert until(desk, held) == 30_000


def test_a_lease_that_ran_out_cannot_be_renewed(desk: Desk) -> None:
    id, token = desk.active()
    desk.now += 30_000
    assert desk.refused("ExtendLock", id=id, token=token, duration=5000) == NO_LOCK


def test_several_leases_are_renewed_and_counted(desk: Desk) -> None:
    (a, token_a), (b, _) = desk.active("a"), desk.active("b")
    answer = desk.do(
        "ExtendLocks",
        ids=[a, b, "missing", a],
        tokens=[token_a, "wrong", None, token_a],
        durations=[1000, 2000, 3000, 4000],
    )
    assert answer == {"count": 2}
    assert (until(desk, a), until(desk, b)) == (4000, 30_000)


@pytest.mark.parametrize("missing", ["ids", "tokens", "durations"])
@pytest.mark.parametrize("value", [None, 5, "x", {}])
def test_three_lists_are_needed_to_renew_several(desk: Desk, missing: str, value: Any) -> None:
    fields: dict[str, Any] = {"ids": ["a"], "tokens": ["t"], "durations": [1], missing: value}
    assert desk.refused("ExtendLocks", **fields) == f"{missing} must be a list"


def test_shorter_lists_leave_the_rest_to_the_default(desk: Desk) -> None:
    (a, _), (b, _) = desk.active("a"), desk.active("b")
    assert desk.do("ExtendLocks", ids=[a, b], tokens=[], durations=[7, 8, 9]) == {"count": 2}
    assert (until(desk, a), until(desk, b)) == (7, 8)


def test_a_heartbeat_with_a_token_renews_the_lease(desk: Desk) -> None:
    id, token = desk.active()
    desk.later(1000)
    assert desk.do("JobHeartbeat", id=id, token=token) == {"data": {"ok": True}}
    assert until(desk, id) == 30_000
    assert desk.job(id)["lastHeartbeat"] == desk.now
    desk.do("JobHeartbeat", id=id, token=token, duration=900)
    assert until(desk, id) == 900


def test_a_heartbeat_without_a_token_is_only_a_sign_of_life(desk: Desk) -> None:
    id, _ = desk.active()
    desk.later(1000)
    assert desk.do("JobHeartbeat", id=id) == {"data": {"ok": True}}
    assert until(desk, id) == 29_000
    assert desk.job(id)["lastHeartbeat"] == desk.now


def test_a_heartbeat_for_what_nobody_works_on_is_refused(desk: Desk) -> None:
    id, _ = desk.active()
    waiting = desk.push("w")
    for other in ("missing", None, 5, waiting):
        assert desk.refused("JobHeartbeat", id=other) == NOT_ACTIVE
    assert desk.refused("JobHeartbeat", id=id, token="wrong") == NOT_ACTIVE
    assert desk.refused("JobHeartbeat") == NOT_ACTIVE


def test_heartbeats_of_several_jobs_are_counted(desk: Desk) -> None:
    (a, token_a), (b, _) = desk.active("a"), desk.active("b")
    answer = desk.do("JobHeartbeatB", ids=[a, b, "missing"], tokens=[token_a, "wrong", None])
    assert answer == {"data": {"ok": True, "count": 1}}
    assert desk.do("JobHeartbeatB", ids=[a, b]) == {"data": {"ok": True, "count": 2}}
    assert desk.do("JobHeartbeatB", ids=[]) == {"data": {"ok": True, "count": 0}}


@pytest.mark.parametrize("ids", [None, 5, "x", {}])
def test_heartbeats_of_several_jobs_need_a_list(desk: Desk, ids: Any) -> None:
    assert desk.refused("JobHeartbeatB", ids=ids) == "ids must be a list"
    assert desk.refused("JobHeartbeatB") == "ids must be a list"


def test_a_lease_that_was_renewed_outlives_its_connection(desk: Desk) -> None:
    (a, token), (b, _) = desk.active("a"), desk.active("b")
    desk.do("JobHeartbeat", conn=2, id=a, token=token)
    desk.disconnect(1)
    assert [desk.state(a), desk.state(b)] == ["active", "waiting"]


def test_those_that_nobody_works_on_are_named_when_asked_for(desk: Desk) -> None:
    (a, token), (b, _) = desk.active(), desk.active()
    answer = desk.do("JobHeartbeatB", ids=[a, b, "gone"], tokens=[token, "x", ""], nameLost=True)
    assert answer == {"data": {"ok": True, "count": 1, "lost": [b, "gone"]}}
