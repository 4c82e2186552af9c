"""The commands for groups at the desk: answers, refusals, and pulls with terms."""

from __future__ import annotations

import pytest
from tests.commands.desk import Desk

from tandemq.commands import pull

G = {"queue": "q", "groupId": "g"}


def test_limits_of_a_group_are_set_shown_and_removed_once(desk: Desk) -> None:
    desk.do("SetGroupRateLimit", **G, max=2, duration=500)
    assert desk.do("GetGroupRateLimit", **G)["data"] == {"limit": {"max": 2, "duration": 500}}
    assert desk.do("RemoveGroupRateLimit", **G)["data"] == {"removed": 1}
    assert desk.do("RemoveGroupRateLimit", **G)["data"] == {"removed": 0}
    assert desk.do("GetGroupRateLimit", **G)["data"] == {"limit": None}
    desk.do("SetGroupConcurrency", **G, concurrency=3)
    assert desk.do("GetGroupConcurrency", **G)["data"] == {"concurrency": 3}
    assert desk.do("RemoveGroupConcurrency", **G)["data"] == {"removed": 1}
    assert desk.do("GetGroupConcurrency", **G)["data"] == {"concurrency": None}


def test_a_group_can_be_paused_closed_and_weighed(desk: Desk) -> None:
    assert desk.do("PauseGroup", **G)["data"] == {"changed": True}
    assert desk.do("IsGroupPaused", **G)["data"] == {"paused": True}
    assert desk.do("ResumeGroup", **G)["data"] == {"changed": True}
    assert desk.do("GetGroupRateLimitTtl", **G)["data"] == {"ttl": -2}
    desk.do("RateLimitGroup", **G, duration=400)
    assert desk.do("GetGroupRateLimitTtl", **G)["data"] == {"ttl": 400}
    desk.do("SetGroupWeight", **G, weight=5)
    assert desk.do("GetGroupWeight", **G)["data"] == {"weight": 5}


def test_counts_see_what_waits_and_what_is_active(desk: Desk) -> None:
    desk.push(groupId="g")
    desk.push(groupId="g", delay=1000)
    desk.push(groupId="h")
    assert desk.do("GetGroupJobsCount", **G)["data"] == {"count": 2}
    assert desk.do("GetGroupsJobsCount", queue="q")["data"] == {"count": 3}
    assert desk.pull()["job"]["groupId"] == "g"
    assert desk.do("GetGroupActiveCount", **G)["data"] == {"count": 1}
    assert desk.do("Count", queue="q")["count"] == 2
    assert len(desk.do("GetJobs", queue="q", state="waiting")["jobs"]) == 1


def test_a_group_command_names_what_is_wrong(desk: Desk) -> None:
    assert desk.refused("PauseGroup", queue="q") == "groupId is required"
    assert desk.refused("PauseGroup", queue="q", groupId=7) == "groupId must be a string"
    assert desk.refused("PauseGroup", queue="bad queue", groupId="g").endswith("characters")
    for weight in (0, 1.5, "1", None):
        text = "weight must be a positive safe integer"
        assert desk.refused("SetGroupWeight", **G, weight=weight) == text


def test_a_pull_brings_its_terms(desk: Desk) -> None:
    for group in ("a", "a", "b"):
        desk.push(groupId=group)
    two = desk.do("PULLB", queue="q", count=5, group={"concurrency": 1})["jobs"]
    assert [job["groupId"] for job in two] == ["a", "b"]
    assert desk.pull(group={"affinity": None})["job"] is None
    assert desk.pull(group={"affinity": "a", "concurrency": 2})["job"]["groupId"] == "a"


@pytest.mark.parametrize("group", [{}, {"affinity": "a"}, {"limit": {"max": 1, "duration": 9}}])
def test_a_pull_with_terms_may_wait(desk: Desk, group: dict[str, object]) -> None:
    assert desk.waits("PULL", conn=2, queue="q", timeout=1000, group=group)
    id = desk.push(groupId="a")
    assert [answer["job"]["id"] for _, answer in desk.told()] == [id]


def test_terms_are_kept_for_groups_that_there_can_be(desk: Desk) -> None:
    pull._terms.cache_clear()
    for name in ("x" * 256, "x" * 257, "x" * 1_000):
        assert desk.pull(group={"affinity": name})["job"] is None
    assert pull._terms.cache_info().currsize == 1


def test_a_batch_that_fills_a_group_keeps_what_fitted(desk: Desk) -> None:
    jobs = [{"data": n, "groupId": "g", "groupMaxSize": 2} for n in range(3)]
    assert (
        desk.refused("PUSHB", queue="q", jobs=jobs) == "Group g has reached its maximum size of 2"
    )
    assert desk.do("Count", queue="q")["count"] == 2
    text = "group.maxSize must be a positive safe integer"
    assert desk.refused("PUSH", queue="q", data=1, groupId="g", groupMaxSize=0) == text


def test_fail_with_retry_after_charges_nothing_and_shuts_the_group(desk: Desk) -> None:
    id = desk.push(groupId="g")
    token = desk.pull()["token"]
    desk.do("FAIL", id=id, token=token, error="429", retryAfter=300)
    assert desk.pull()["job"] is None
    assert desk.job(id)["attempts"] == 0
    desk.later(300)
    assert desk.pull()["job"]["id"] == id
    assert desk.refused("FAIL", id=id, retryAfter=-1) == "retryAfter must be at least 0"
