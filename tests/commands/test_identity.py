"""What PUSH and PUSHB say of keys and families: what is read, what is shown, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import Desk
from tests.support.wire import UNDEFINED


@pytest.mark.parametrize(
    ("key", "held"), [("k", "k"), ("", None), (7, "7"), (None, None), ([1], None), (True, None)]
)
def test_a_key_is_a_text_that_is_not_empty(desk: Desk, key: Any, held: str | None) -> None:
    id = desk.push(uniqueKey=key)
    assert desk.job(id)["uniqueKey"] == held
    assert (desk.push(uniqueKey=key) == id) == (held is not None)


def test_what_is_asked_of_a_key_is_shown(desk: Desk) -> None:
    dedup = {"ttl": 5000, "extend": True, "replace": False}
    job = desk.job(desk.push(uniqueKey="k", dedup=dedup, debounceId="d", debounceTtl=7))
    assert (job["deduplicationTtl"], job["deduplicationExtend"]) == (5000, True)
    assert (job["deduplicationReplace"], job["debounceId"], job["debounceTtl"]) == (False, "d", 7)


@pytest.mark.parametrize("dedup", [None, {}, "x", 5, [], {"ttl": "soon"}, {"extend": 0}])
def test_odd_values_count_as_absent(desk: Desk, dedup: Any) -> None:
    id = desk.push(uniqueKey="k", dedup=dedup)
    job = desk.job(id)
    assert (job["deduplicationTtl"], job["deduplicationExtend"]) == (None, False)
    assert desk.push(uniqueKey="k") == id


def test_what_is_undefined_is_absent(desk: Desk) -> None:
    undefined = dict.fromkeys(("uniqueKey", "dedup", "dependsOn", "parentId"), UNDEFINED)
    job = desk.job(desk.push(**undefined, failParentOnFailure=UNDEFINED))
    assert (job["uniqueKey"], job["dependsOn"], job["parentId"]) == (None, [], None)


def test_a_policy_is_one_of_four(desk: Desk) -> None:
    words = "dedup.policy must be one of drop, replace, coalesce, queue-one"
    assert desk.refused("PUSH", queue="q", uniqueKey="k", dedup={"policy": "first"}) == words
    jobs = [{"data": 1}, {"data": 2, "uniqueKey": "k", "dedup": {"policy": "first"}}]
    assert desk.refused("PUSHB", queue="q", jobs=jobs) == f"jobs[1]: {words}"


def test_coalescing_keeps_the_job_and_takes_the_new_data(desk: Desk) -> None:
    dedup = {"policy": "coalesce"}
    id = desk.push(data={"n": 1}, uniqueKey="k", dedup=dedup)
    assert desk.push(data={"n": 2}, uniqueKey="k", dedup=dedup) == id
    assert desk.job(id)["data"] == {"n": 2}


def test_one_runs_and_one_waits(desk: Desk) -> None:
    dedup = {"policy": "queue-one"}
    first, token = desk.active(uniqueKey="k", dedup=dedup)
    second = desk.push(uniqueKey="k", dedup=dedup)
    third = desk.push(uniqueKey="k", dedup=dedup)
    assert desk.state(second) == "unknown"
    assert desk.pull()["job"] is None
    desk.do("ACK", id=first, token=token)
    assert desk.pull()["job"]["id"] == third


def test_a_kept_key_outlives_a_retry(desk: Desk) -> None:
    id, token = desk.active(uniqueKey="k", dedup={"keep": True}, backoff=60_000)
    desk.do("FAIL", id=id, token=token)
    assert desk.push(uniqueKey="k") == id


def test_dependencies_are_waited_for_and_shown(desk: Desk) -> None:
    first = desk.push()
    second = desk.push(dependsOn=[first])
    assert desk.state(second) == "waiting-children"
    job = desk.job(second)
    assert job["dependsOn"] == [first]
    assert [step["state"] for step in job["timeline"]] == ["waiting-children"]


@pytest.mark.parametrize("value", [None, [], "", False, 0])
def test_nothing_is_no_dependency(desk: Desk, value: Any) -> None:
    assert desk.state(desk.push(dependsOn=value)) == "waiting"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x", "Dependency job not found: x"),
        (["ghost"], "Dependency job not found: ghost"),
        ([7], "Dependency job not found: 7"),
        (7, "dependsOn must be a list of job ids"),
        ([[]], "dependsOn must be a list of job ids"),
    ],
)
def test_a_dependency_must_exist(desk: Desk, value: Any, words: str) -> None:
    assert desk.refused("PUSH", queue="q", data=1, dependsOn=value) == words
    assert desk.do("Count", queue="q")["count"] == 0


@pytest.mark.parametrize("field", ["dependsOn", "childrenIds"])
@pytest.mark.parametrize("cmd", ["PUSH", "PUSHB"])
def test_the_letters_of_a_text_are_ids_if_they_are_few(desk: Desk, cmd: str, field: str) -> None:
    for letter in "ab":
        desk.push(jobId=letter)
    for text, taken in (("ab", True), ("ab" * 50, True), ("ab" * 50 + "a", False)):
        job = {field: text}
        request = {"queue": "q", **job} if cmd == "PUSH" else {"queue": "q", "jobs": [job]}
        if taken:
            desk.do(cmd, **request)
        else:
            words = desk.refused(cmd, **request)
            assert words.endswith(f"{field} must be a list of job ids")


def test_members_of_a_batch_name_each_other(desk: Desk) -> None:
    jobs = [{"data": 1, "dependsOn": ["b"]}, {"data": 2, "customId": "b"}]
    ids = desk.do("PUSHB", queue="q", jobs=jobs)["ids"]
    assert [desk.state(id) for id in ids] == ["waiting-children", "waiting"]


def test_a_batch_with_a_member_that_cannot_be_is_refused_as_a_whole(desk: Desk) -> None:
    jobs = [{"data": 1}, {"data": 1, "customId": "c", "dependsOn": ["c"]}]
    assert desk.refused("PUSHB", queue="q", jobs=jobs) == "jobs[1]: Job cannot depend on itself: c"
    assert desk.do("Count", queue="q")["count"] == 0


@pytest.mark.parametrize(
    "flag",
    [
        "failParentOnFailure",
        "continueParentOnFailure",
        "ignoreDependencyOnFailure",
        "removeDependencyOnFailure",
    ],
)
def test_a_policy_for_the_parent_is_shown(desk: Desk, flag: str) -> None:
    job = desk.job(desk.push(**{flag: True}, childrenIds=["x"]))
    assert [name for name in job if name.endswith("OnFailure") and job[name]] == [flag]
    assert job["childrenIds"] == ["x"]


def test_a_parents_id_alone_is_stored_without_any_check(desk: Desk) -> None:
    assert desk.job(desk.push(parentId="nobody"))["parentId"] == "nobody"
