"""The commands for limits at the desk: numbers in every dress, and what is shown."""

from __future__ import annotations

import pytest
from tests.commands.desk import Desk

DEFAULT = {"enabled": True, "stallInterval": 30_000, "maxStalls": 3, "gracePeriod": 5_000}


def limits_of(desk: Desk, **asked: object) -> dict[str, object]:
    found: dict[str, object] = desk.do("GetQueueLimits", queue="q", **asked)["data"]["limits"]
    return found


def test_limits_are_shown_with_the_wait_for_tokens(desk: Desk) -> None:
    desk.do("RateLimit", queue="q", limit="2", duration=1000)
    desk.do("SetConcurrency", queue="q", limit=True)
    shown = {"rateLimit": {"max": 2, "duration": 1000}, "concurrencyLimit": 1, "maxed": False}
    assert limits_of(desk) == {**shown, "rateLimitTtl": 0}
    assert limits_of(desk, maxJobs=3) == {**shown, "rateLimitTtl": 500}
    desk.do("RateLimitClear", queue="q")
    desk.do("ClearConcurrency", queue="q")
    assert limits_of(desk) == {
        "rateLimit": None,
        "rateLimitTtl": -2,
        "concurrencyLimit": None,
        "maxed": False,
    }


@pytest.mark.parametrize("limit", [None, "abc", "", [], float("nan"), float("inf"), "1_0", "inf"])
@pytest.mark.parametrize("cmd", ["RateLimit", "SetConcurrency"])
def test_a_limit_must_be_a_number(desk: Desk, cmd: str, limit: object) -> None:
    assert desk.refused(cmd, queue="q", limit=limit) == "limit must be a finite number"


def test_spans_of_a_rate_limit_are_checked(desk: Desk) -> None:
    ask = {"queue": "q", "limit": 1}
    assert desk.refused("RateLimit", **ask, duration=0) == "duration must be greater than 0"
    assert desk.refused("RateLimit", **ask, duration="x") == "duration must be a finite number"
    assert desk.refused("RateLimit", **ask, ttl=-1) == "ttl must be greater than 0"
    desk.do("RateLimit", **ask, duration=None, ttl=250)
    assert limits_of(desk)["rateLimitTtl"] == 250


def test_zero_is_a_limit(desk: Desk) -> None:
    desk.push()
    desk.do("SetConcurrency", queue="q", limit=0)
    assert desk.pull()["job"] is None
    assert limits_of(desk)["concurrencyLimit"] == 0
    desk.do("ClearConcurrency", queue="q")
    desk.do("RateLimit", queue="q", limit=0)
    assert desk.pull()["job"] is None
    assert limits_of(desk)["rateLimitTtl"] == -1


def test_a_job_costs_what_it_says(desk: Desk) -> None:
    for cost in (2, 1):
        desk.push(cost=cost)
    desk.do("RateLimit", queue="q", limit=2, duration=2000)
    assert len(desk.do("PULLB", queue="q", count=2)["jobs"]) == 1
    assert desk.waits("PULL", conn=2, queue="q", timeout=5000)
    desk.later(1000)
    assert [conn for conn, _ in desk.told()] == [2]
    assert desk.refused("PUSH", queue="q", data=1, cost=-1) == "cost must be at least 0"


def test_the_stall_configuration_takes_what_can_be_meant(desk: Desk) -> None:
    config = {"maxStalls": "9", "stallInterval": "abc", "gracePeriod": -5, "enabled": "no", "x": 1}
    desk.do("SetStallConfig", queue="q", config=config)
    assert desk.do("GetStallConfig", queue="q")["config"] == {**DEFAULT, "maxStalls": 9}
    desk.do("SetStallConfig", queue="q", config={"maxStalls": None})
    desk.do("SetStallConfig", queue="q")
    desk.do("SetStallConfig", queue="q", config={"enabled": False, "stallInterval": 1000})
    expected = {**DEFAULT, "maxStalls": 9, "enabled": False, "stallInterval": 1000}
    assert desk.do("GetStallConfig", queue="q")["config"] == expected
    assert desk.do("GetStallConfig", queue="other")["config"] == DEFAULT
