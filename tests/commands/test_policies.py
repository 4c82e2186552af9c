"""GetQueuePolicy and SetQueuePolicy."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from tests.commands.desk import NOW, WAYS, Desk

from tandemq.engine import overflow, post, subscriptions
from tandemq.model.broker import Mode, Overflow, Policy
from tandemq.model.message import Letter


@pytest.fixture(params=WAYS)
def desk(request: pytest.FixtureRequest) -> Desk:
    return Desk(request.param)


def policy(desk: Desk, queue: str = "q") -> dict[str, Any]:
    found: dict[str, Any] = desk.do("GetQueuePolicy", queue=queue)["data"]["policy"]
    return found


def change(desk: Desk, queue: str = "q", **changes: Any) -> dict[str, Any]:
    changed: dict[str, Any] = desk.do("SetQueuePolicy", queue=queue, policy=changes)["data"]
    return dict(changed["policy"])


def publish(desk: Desk, queue: str = "q") -> None:
    q = post.opened(desk.engine, queue, NOW, Policy())
    post.post(desk.engine, q, Letter("m", None), b"1", post.NORMAL, NOW)


def test_what_nobody_has_decided_about_is_a_job_queue(desk: Desk) -> None:
    seen = policy(desk)
    assert (seen["kind"], seen["maxSize"], seen["deadLetters"]) == ("jobs", 2_147_483_647, True)
    assert "q" not in desk.engine.queues


def test_what_is_not_named_stays(desk: Desk) -> None:
    publish(desk)
    before = policy(desk)
    after = change(desk, maxSize=7, overflow="block-publisher", ttl=1500.5)
    assert after == {**before, "maxSize": 7, "overflow": "block-publisher", "ttl": 1500.5}
    assert policy(desk) == after
    kept = desk.engine.queues["q"].settings.broker
    assert kept is not None
    assert (kept.max_size, kept.overflow) == (7, Overflow.BLOCK_PUBLISHER)
    assert change(desk, ttl=None)["ttl"] is None


def test_an_empty_job_queue_becomes_a_brokers(desk: Desk) -> None:
    assert change(desk, mode="fan-out-with-ack", deadLetters=True)["kind"] == "broker"
    kept = desk.engine.queues["q"].settings.broker
    assert kept == Policy(Mode.FAN_OUT_WITH_ACK, dead_letters=True, created=NOW)
    assert desk.engine.queues["q"].fans_out


def test_more_room_lets_those_in_who_wait_for_some(desk: Desk) -> None:
    change(desk, maxSize=1, overflow="block-publisher")
    publish(desk)
    let_in: list[int] = []

    def accept(now: int) -> bool:
        let_in.append(now)
        return True

    blocked = overflow.Blocked("q", 9, 1, accept, NOW + 8000)
    desk.engine.blocked["q"] = deque([blocked])
    overflow.waits(desk.engine, blocked)
    change(desk, maxSize=2)
    assert let_in == [NOW]


def test_a_queue_with_jobs_stays_a_job_queue(desk: Desk) -> None:
    desk.push()
    assert "holds jobs" in desk.refused("SetQueuePolicy", queue="q", policy={"maxSize": 5})
    assert desk.engine.queues["q"].settings.broker is None


def test_the_mode_changes_only_where_nobody_would_miss_it(desk: Desk) -> None:
    publish(desk)
    modes = {"mode": "fan-out-with-ack"}
    assert "cannot change" in desk.refused("SetQueuePolicy", queue="q", policy=modes)
    assert change(desk, mode="round-robin")["mode"] == "round-robin"  # which it has
    subscriptions.subscribe(desk.engine, "q", 1, 10, NOW, "c1")
    subscriptions.acknowledge(desk.engine, 1, "m", NOW)
    assert "cannot change" in desk.refused("SetQueuePolicy", queue="q", policy=modes)
    subscriptions.unsubscribe(desk.engine, "q", 1, NOW)
    assert change(desk, **modes)["mode"] == "fan-out-with-ack"


def test_dead_letters_are_not_lost_sight_of(desk: Desk) -> None:
    change(desk, maxSize=1, deadLetters=True, overflow="redirect-to-dlq")
    publish(desk)
    publish(desk)
    assert desk.do("GetDlqStats", queue="q")["data"]["stats"]["total"] == 1
    no_letters = {"deadLetters": False, "overflow": "drop-oldest"}
    assert "has dead letters" in desk.refused("SetQueuePolicy", queue="q", policy=no_letters)
    desk.do("PurgeDlq", queue="q")
    assert change(desk, **no_letters)["deadLetters"] is False


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (None, "object"),
        ([], "object"),
        ({"mode": "all"}, "mode must be one of round-robin"),
        ({"overflow": "panic"}, "overflow must be one of drop-oldest"),
        ({"overflow": "redirect-to-dlq"}, "needs deadLetters"),
        ({"maxSize": 0}, "maxSize"),
        ({"maxSize": 1 << 31}, "maxSize"),
        ({"maxSize": "5"}, "maxSize"),
        ({"ttl": 0}, "ttl"),
        ({"ackWait": -1}, "ackWait"),
        ({"maxAttempts": -1}, "maxAttempts"),
        ({"deadLetters": 1}, "deadLetters"),
        ({"maxsize": 5}, "maxsize"),
    ],
)
def test_what_makes_no_sense_is_told_and_changes_nothing(desk: Desk, asked: Any, says: str) -> None:
    assert says in desk.refused("SetQueuePolicy", queue="q", policy=asked)
    assert "q" not in desk.engine.queues
    assert "invalid characters" in desk.refused("SetQueuePolicy", queue="a b", policy={})
