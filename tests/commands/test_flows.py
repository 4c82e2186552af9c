"""Commands about families of jobs: links, results, pruning, and their refusals."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import Desk


def linked(desk: Desk, **options: Any) -> tuple[str, str]:
    parent, child = desk.push("p", {"x": 1}), desk.push("q", {"y": 2}, **options)
    desk.do("UpdateParent", childId=child, parentId=parent)
    return parent, child


def finish(desk: Desk, id: str, **fields: Any) -> None:
    answer = desk.pull()
    assert answer["job"]["id"] == id
    desk.do(fields.pop("cmd", "ACK"), id=id, token=answer["token"], **fields)


def test_a_child_is_linked(desk: Desk) -> None:
    parent, child = linked(desk)
    job = desk.job(parent)
    assert (job["state"], job["childrenIds"], job["dependsOn"]) == (
        "waiting-children",
        [child],
        [child],
    )
    assert job["data"] == {"x": 1, "__childrenIds": [child]}
    assert desk.job(child)["data"] == {"y": 2, "__parentId": parent, "__parentQueue": "p"}


def test_a_link_needs_two_jobs(desk: Desk) -> None:
    id = desk.push()
    ask = "UpdateParent"
    assert desk.refused(ask, childId=id, parentId="no") == "Parent job not found: no"
    assert desk.refused(ask, childId="no", parentId=id) == "Child job not found: no"
    assert desk.refused(ask, childId=id) == "Parent job not found: undefined"
    assert desk.refused(ask) == "A flow job cannot be its own parent"
    assert desk.refused(ask, childId=id, parentId=id) == "A flow job cannot be its own parent"


def test_a_running_parent_takes_no_child(desk: Desk) -> None:
    parent, _ = desk.active("p")
    words = desk.refused("UpdateParent", childId=desk.push(), parentId=parent)
    assert words == f"Parent job {parent} is not linkable"


def test_the_results_of_children_are_told(desk: Desk) -> None:
    parent, child = linked(desk)
    assert desk.do("GetChildrenValues", id=parent)["data"] == {"values": {}}
    finish(desk, child, result={"deep": [1, 2.5, None]})
    values = desk.do("GetChildrenValues", id=parent)["data"]["values"]
    assert values == {f"q:{child}": {"deep": [1, 2.5, None]}}
    assert desk.state(parent) == "waiting"


def test_the_result_of_a_removed_child_stands_under_its_id(desk: Desk) -> None:
    parent, child = linked(desk, removeOnComplete=True)
    finish(desk, child, result="r")
    assert desk.do("GetChildrenValues", id=parent)["data"] == {"values": {child: "r"}}


@pytest.mark.parametrize(
    ("flag", "ask"),
    [
        ("continueParentOnFailure", "GetFailedChildrenValues"),
        ("ignoreDependencyOnFailure", "GetIgnoredChildrenFailures"),
    ],
)
def test_the_errors_of_children_are_told(desk: Desk, flag: str, ask: str) -> None:
    parent, child = linked(desk, maxAttempts=1, **{flag: True})
    assert desk.do(ask, id=parent)["values"] == {}
    finish(desk, child, cmd="FAIL", error="broke")
    assert desk.do(ask, id=parent)["values"] == {f"q:{child}": "broke"}
    assert desk.state(parent) == "waiting"


@pytest.mark.parametrize("ask", ["GetFailedChildrenValues", "GetIgnoredChildrenFailures"])
def test_what_has_no_children_has_no_errors(desk: Desk, ask: str) -> None:
    for id in (desk.push(), "nobody", None):
        assert desk.do(ask, id=id)["values"] == {}


def test_a_child_is_parted(desk: Desk) -> None:
    parent, child = linked(desk)
    assert desk.do("RemoveChildDependency", id=child) == {"removed": True}
    assert desk.state(parent) == "waiting"
    assert desk.job(parent)["dependsOn"] == []
    words = desk.refused("RemoveChildDependency", id=child)
    assert words == f"Job {child} has no parent"
    assert desk.refused("RemoveChildDependency", id="no") == "Job not found: no"
    assert desk.refused("RemoveChildDependency") == "Job not found: undefined"


def test_children_that_have_not_begun_are_removed(desk: Desk) -> None:
    parent, child = linked(desk)
    desk.do("RemoveUnprocessedChildren", id=parent)
    assert (desk.state(child), desk.state(parent)) == ("unknown", "waiting")
    for id in ("nobody", None):
        desk.do("RemoveUnprocessedChildren", id=id)
