"""Reports of priorities that were lost or mixed up on the way back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.patience import eventually
from tests.support.server import Server
from tests.support.wire import Wire


def drain(wire: Wire, queue: str) -> list[object]:
    order = []
    while job := (answer := wire.pull(queue))["job"]:
        order.append(job["data"])
        wire.do("ACK", id=job["id"], token=answer["token"])
    return order


@pytest.mark.parametrize("priority", [0, 5, -5])
@pytest.mark.parametrize("how", ["retryAfter", "gone"])
def test_a_job_that_is_given_back_stands_before_its_equals_again(
    server: Server, wire: Wire, queue: str, priority: int, how: str
) -> None:
    first, *_ = [wire.push(queue, n, priority=priority) for n in range(3)]
    with server.connect() as other:
        answer = other.pull(queue)
        assert answer["job"]["id"] == first
        if how == "retryAfter":
            other.do("FAIL", id=first, token=answer["token"], retryAfter=0)
    eventually(lambda: wire.state(first) != "active", "it is given back", within=5)
    assert drain(wire, queue) == [0, 1, 2]


@pytest.mark.parametrize("backoff", [0, 30])
def test_a_job_that_is_tried_again_keeps_its_priority(wire: Wire, queue: str, backoff: int) -> None:
    urgent = wire.push(queue, "urgent", priority=50, backoff={"type": "fixed", "delay": backoff})
    for n in range(3):
        wire.push(queue, n, priority=25)
    wire.do("FAIL", id=urgent, token=wire.pull(queue)["token"], error="once")
    eventually(lambda: wire.state(urgent) == "prioritized", "its back-off ends", within=5)
    assert wire.do("GetJob", id=urgent)["job"]["priority"] == 50
    assert drain(wire, queue) == ["urgent", 0, 1, 2]


BY_PUSH: dict[str, Callable[[Wire, str, str, dict[str, int]], object]] = {
    "PUSH": lambda wire, queue, name, how: wire.push(queue, name, **how),
    "PUSHB": lambda wire, queue, name, how: wire.do(
        "PUSHB", queue=queue, jobs=[{"data": name, **how}]
    ),
}


@pytest.mark.parametrize("command", sorted(BY_PUSH))
def test_no_priority_is_priority_zero_and_higher_goes_first(
    wire: Wire, queue: str, command: str
) -> None:
    push = BY_PUSH[command]
    push(wire, queue, "two", {"priority": 2})
    push(wire, queue, "none", {})
    push(wire, queue, "minus", {"priority": -1})
    push(wire, queue, "zero", {"priority": 0})
    push(wire, queue, "two again", {"priority": 2})
    assert wire.counts(queue) == {"prioritized": 2, "waiting": 3}
    assert drain(wire, queue) == ["two", "two again", "none", "zero", "minus"]
