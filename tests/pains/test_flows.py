"""Reports of parents that waited for ever, and of waiting for many jobs that never ended."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.support.server import Server, figure, is_own
from tests.support.wire import Wire


def family(wire: Wire, queue: str, *, parent: str = "", **child: Any) -> tuple[str, str, str]:
    """A parent of two children, the first of which has the given options."""
    p, a, b = (f"{queue}-{name}" for name in "pab")
    above, ours = queue + "-parent", {"onChildFailure": parent} if parent else {}
    link = {"__parentId": p, "__parentQueue": above}
    job = {"name": "n", "data": link, "parentId": p, "maxAttempts": 1}
    top = {
        "name": "n",
        "data": {"__childrenIds": [a, b]},
        "childrenIds": [a, b],
        "dependsOn": [a, b],
    }
    jobs = [
        {"id": p, "queue": above, "input": top},
        {"id": a, "queue": queue, "input": {**job, "priority": 1, **child}},
        {"id": b, "queue": queue, "input": job},
    ]
    wire.do("PUSHF", jobs=jobs, **ours)
    return p, a, b


def settle(wire: Wire, queue: str, job_id: str, command: str) -> None:
    answer = wire.pull(queue)
    assert answer["job"]["id"] == job_id
    wire.do(command, id=job_id, token=answer["token"], error="broke", result="r")


OUTCOMES: dict[str, tuple[dict[str, Any], str, str]] = {
    "default": ({}, "waiting-children", "waiting-children"),
    "fail": ({"failParentOnFailure": True}, "failed", "failed"),
    "continue": ({"continueParentOnFailure": True}, "waiting", "waiting"),
    "ignore": ({"ignoreDependencyOnFailure": True}, "waiting-children", "waiting"),
    "remove": ({"removeDependencyOnFailure": True}, "waiting-children", "waiting"),
}
"""Policy -> its flag, the parent's state when the child has failed, and when both have ended."""


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("policy", sorted(OUTCOMES))
def test_a_parent_leaves_its_wait_as_the_policy_of_its_failed_child_says(
    wire: Wire, queue: str, policy: str, removed: bool
) -> None:
    flag, soon, then = OUTCOMES[policy]
    parent, first, second = family(wire, queue, removeOnFail=removed, **flag)
    settle(wire, queue, first, "FAIL")
    assert wire.state(first) == ("unknown" if removed else "failed")
    assert wire.state(parent) == soon
    settle(wire, queue, second, "ACK")
    assert wire.state(parent) == then


@pytest.mark.skipif(not is_own(), reason="an option of this server")
@pytest.mark.parametrize("policy", sorted(set(OUTCOMES) - {"default"}))
def test_a_policy_can_be_given_for_a_whole_flow(wire: Wire, queue: str, policy: str) -> None:
    _, soon, then = OUTCOMES[policy]
    parent, first, second = family(wire, queue, parent=policy)
    settle(wire, queue, first, "FAIL")
    assert wire.state(parent) == soon
    settle(wire, queue, second, "ACK")
    assert wire.state(parent) == then


def test_a_parent_without_a_policy_goes_on_when_its_child_is_tried_again(
    wire: Wire, queue: str
) -> None:
    parent, first, second = family(wire, queue)
    settle(wire, queue, first, "FAIL")
    settle(wire, queue, second, "ACK")
    assert wire.state(parent) == "waiting-children"
    assert wire.do("RetryDlq", queue=queue, jobId=first)["count"] == 1
    settle(wire, queue, first, "ACK")
    assert wire.state(parent) == "waiting"


def test_a_parent_that_failed_with_its_child_is_cleaned_away_like_any_dead_letter(
    wire: Wire, queue: str
) -> None:
    parent, first, second = family(wire, queue, failParentOnFailure=True)
    settle(wire, queue, first, "FAIL")
    settle(wire, queue, second, "ACK")
    assert wire.state(parent) == "failed"
    wire.do("SetDlqConfig", queue=queue + "-parent", config={"maxAge": 1})
    deadline = time.monotonic() + 10
    while wire.state(parent) != "unknown":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert wire.counts(queue + "-parent") == {}


@pytest.mark.slow
def test_waiting_for_many_jobs_ends_with_the_last_of_them(
    server: Server, wire: Wire, queue: str
) -> None:
    done, last = figure("TANDEMQ_TEST_WAITS", short=2_000, long=10_000), 100
    finished = []
    for _ in range(0, done, 500):
        finished += wire.do("PUSHB", queue=queue, jobs=[{"data": 1}] * 500)["ids"]
        taken = wire.do("PULLB", queue=queue, owner="w", count=500)
        ids = [job["id"] for job in taken["jobs"]]
        wire.do("ACKB", ids=ids, tokens=taken["tokens"])
    wire.do("PUSHB", queue=queue, jobs=[{"data": 1}] * last)
    taken = wire.do("PULLB", queue=queue, owner="w", count=last)
    ids = [job["id"] for job in taken["jobs"]]
    wait = [{"cmd": "WaitJob", "id": id, "timeout": 60_000} for id in [*finished, *ids]]
    with server.connect() as one, server.connect() as two:  # fifty may wait on each connection
        sent = [(one, one.send_all(wait[: done + 50])), (two, two.send_all(wait[done + 50 :]))]
        assert wire.ping()
        wire.do("ACKB", ids=ids, tokens=taken["tokens"])
        acked = time.monotonic()
        answers = [answer for waiter, reqs in sent for answer in waiter.receive_all(reqs)]
        assert time.monotonic() - acked < 3
    assert len(answers) == done + last
    assert all(answer["completed"] for answer in answers)
