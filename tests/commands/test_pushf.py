"""PUSHF: a whole flow is added at once, and shown as it was added."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import NOW, Desk

from tandemq.commands import pushf


def job(id: str, queue: str = "q", **fields: Any) -> dict[str, Any]:
    return {"id": id, "queue": queue, "input": {"name": "n", "data": {"v": 1}, **fields}}


def child(id: str, parent: str, **fields: Any) -> dict[str, Any]:
    data = {"__parentId": parent, "__parentQueue": "p"}
    return job(id, parentId=parent, **{"data": data, **fields})


def parent(id: str, *children: str, **fields: Any) -> dict[str, Any]:
    ids = list(children)
    data = {"__childrenIds": ids}
    return job(id, "p", **{"data": data, "childrenIds": ids, "dependsOn": ids, **fields})


def add(desk: Desk, *jobs: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    added: list[dict[str, Any]] = desk.do("PUSHF", jobs=list(jobs), **fields)["data"]["jobs"]
    return added


def fail(desk: Desk, id: str) -> None:
    answer = desk.pull()
    assert answer["job"]["id"] == id
    desk.do("FAIL", id=id, token=answer["token"], error="broke")


def test_no_jobs_are_a_flow(desk: Desk) -> None:
    assert add(desk) == []


def test_a_flow_is_shown_in_the_order_of_the_request(desk: Desk) -> None:
    top, leaf = add(desk, parent("p", "c"), child("c", "p"))
    assert (top["id"], leaf["id"]) == ("p", "c")
    assert (top["dependsOn"], top["childrenIds"]) == (["c"], ["c"])
    assert (leaf["parentId"], leaf["customId"]) == ("p", None)
    assert [job["timeline"][0]["state"] for job in (top, leaf)] == ["waiting-children", "waiting"]


def test_what_is_shown_is_what_a_reader_gets(desk: Desk) -> None:
    options = {"priority": 5, "delay": 9, "backoff": {"type": "fixed", "delay": 7}, "tags": ["t"]}
    for shown in add(desk, parent("p", "c"), child("c", "p"), job("x", customId="x", **options)):
        read = desk.job(shown["id"])
        assert shown == {name: read[name] for name in shown}
        assert len(shown) == 47


def test_a_policy_costs_a_job_nothing_of_what_it_is(desk: Desk) -> None:
    _, leaf = add(desk, parent("p", "c"), child("c", "p", ignoreDependencyOnFailure=True))
    assert leaf["ignoreDependencyOnFailure"]


def test_a_job_without_a_name_may_have_it_in_its_data(desk: Desk) -> None:
    first = {"id": "a", "queue": "q", "input": {"data": {"x": 1}}}
    second = {"id": "b", "queue": "q", "input": {"data": {"name": "old", "x": 2}}}
    added = add(desk, first, second)
    assert [(job["name"], job["data"]) for job in added] == [
        ("default", {"x": 1}),
        ("old", {"x": 2}),
    ]


def test_a_moment_in_the_past_is_taken_over(desk: Desk) -> None:
    [shown] = add(desk, job("a", timestamp=NOW - 500, delay=100))
    assert (shown["createdAt"], shown["runAt"]) == (NOW - 500, NOW - 400)


def test_a_taken_id_refuses_the_flow(desk: Desk) -> None:
    add(desk, job("a", removeOnComplete=True))
    for _ in range(2):  # while it waits, and when it is completed and gone
        words = desk.refused("PUSHF", jobs=[job("z"), job("a")])
        assert words == "Flow job a already exists"
        assert desk.state("z") == "unknown"
        if desk.state("a") == "waiting":
            desk.do("ACK", id="a", token=desk.pull()["token"])


def test_a_flow_has_at_most_ten_thousand_jobs(desk: Desk) -> None:
    jobs = [job(str(n)) for n in range(10_001)]
    assert desk.refused("PUSHF", jobs=jobs) == "flow exceeds the 10000 job limit"
    assert len(add(desk, *jobs[1:])) == 10_000


def test_a_flow_has_a_bound_for_all_its_data(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushf, "TOTAL_LIMIT", 10)
    words = desk.refused("PUSHF", jobs=[job("a"), job("b"), job("c")])
    assert words == "flow data is too large (max 64MB per atomic batch)"


def test_a_flow_is_one_change(desk: Desk) -> None:
    add(desk, parent("p", "c"), child("c", "p"))
    assert desk.engine.owes_sync
    assert {m.id for m in desk.engine.take().changed.values()} == {"p", "c"}


@pytest.mark.parametrize(
    ("policy", "state"),
    [("fail", "failed"), ("continue", "waiting"), ("ignore", "waiting"), ("remove", "waiting")],
)
def test_a_flow_may_choose_what_failed_children_do(desk: Desk, policy: str, state: str) -> None:
    add(desk, parent("p", "c"), child("c", "p", maxAttempts=1), onChildFailure=policy)
    fail(desk, "c")
    assert desk.state("p") == state


def test_a_childs_own_policy_is_stronger_than_the_flows(desk: Desk) -> None:
    leaf = child("c", "p", maxAttempts=1, ignoreDependencyOnFailure=True)
    add(desk, parent("p", "c"), leaf, onChildFailure="fail")
    fail(desk, "c")
    assert desk.state("p") == "waiting"


def test_a_flows_policy_is_one_of_four(desk: Desk) -> None:
    words = desk.refused("PUSHF", jobs=[job("a")], onChildFailure="explode")
    assert words == "onChildFailure must be one of fail, continue, ignore, remove"


def test_a_failure_goes_up_as_far_as_it_was_asked(desk: Desk) -> None:
    middle = parent("m", "c", parentId="top", failParentOnFailure=True)
    middle["input"]["data"] |= {"__parentId": "top", "__parentQueue": "p"}
    leaf = child("c", "m", maxAttempts=1, failParentOnFailure=True, cascadeOnFailure=True)
    add(desk, parent("top", "m"), middle, leaf)
    fail(desk, "c")
    assert (desk.state("m"), desk.state("top")) == ("failed", "failed")


def test_a_cancelled_child_fails_its_parent_where_asked(desk: Desk) -> None:
    leaf = child("c", "p", failParentOnFailure=True, failOnRemoval=True)
    add(desk, parent("p", "c"), leaf)
    desk.do("Cancel", id="c")
    assert desk.state("p") == "failed"
    assert desk.job("p")["failedReason"] == "Child job c failed: the job was removed"


def test_limits_that_a_job_sets_for_itself_hold_in_a_flow_too(desk: Desk) -> None:
    def planned(**input: object) -> list[dict[str, object]]:
        return [{"id": "a", "queue": "q", "input": {"data": {"a": "x" * 9}, **input}}]

    words = "Job data too large (its sizeLimit is 10 bytes)"
    assert desk.refused("PUSHF", jobs=planned(sizeLimit=10)) == words
    words = "maxStalls must be between 0 and 1000"
    assert desk.refused("PUSHF", jobs=planned(maxStalls=-1)) == words
    desk.do("PUSHF", jobs=planned(maxStalls=0, maxInterruptions=4))
    options = desk.engine.messages["a"].options
    assert (options.max_stalls, options.max_interruptions) == (0, 4)
