"""WhoAmI, Pulse, FindQueues and ListSubscribers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import Desk
from tests.commands.market import FAN_OUT, OTHER, SUBSCRIBER, Market

from tandemq.engine import sweeps, users
from tandemq.model.permission import Operation

EVERYTHING = [str(operation) for operation in Operation]


def as_user(desk: Desk, entries: dict[str, tuple[Operation, ...]]) -> None:
    users.create(desk.engine, "ann", "hash", desk.now)
    for pattern, held in entries.items():
        users.grant(desk.engine, "ann", pattern, held)
    caller = desk.caller(1)
    caller.trusted, caller.user = False, "ann"


def names(desk: Desk, **fields: Any) -> list[str]:
    return [q["name"] for q in desk.do("FindQueues", **fields)["queues"]]


def test_an_open_server_lets_everybody_do_everything(desk: Desk) -> None:
    desk.host.accounts.open = True
    assert desk.do("WhoAmI") == {
        "user": None, "superuser": True, "open": True, "may": EVERYTHING,
    }  # fmt: skip


def test_a_user_is_told_what_was_granted(desk: Desk) -> None:
    look = (Operation.GET_QUEUE_INFO, Operation.LIST_QUEUES)
    as_user(desk, {"*": look, "mail": (Operation.PURGE_QUEUE,)})
    told = desk.do("WhoAmI")
    assert (told["user"], told["superuser"], told["open"]) == ("ann", False, False)
    assert set(told["may"]) == {"GetQueueInfo", "ListQueues", "PurgeQueue"}
    assert set(desk.do("WhoAmI", queue="mail")["may"]) == set(told["may"])
    assert set(desk.do("WhoAmI", queue="other")["may"]) == {"GetQueueInfo", "ListQueues"}


def test_a_queue_is_shown_with_its_counts(desk: Desk) -> None:
    desk.push("mail")
    desk.push("mail", priority=1)
    desk.active("busy")
    desk.waits("PULL", queue="idle", timeout=5_000, conn=2)
    desk.do("Pause", queue="paused")
    shown = {q["name"]: q for q in desk.do("FindQueues")["queues"]}
    assert sorted(shown) == ["busy", "idle", "mail", "paused"]
    assert shown["mail"]["counts"] == {
        "waiting": 1, "prioritized": 1, "delayed": 0, "active": 0, "completed": 0, "failed": 0,
        "waiting-children": 0, "paused": 0,
    }  # fmt: skip
    assert shown["busy"]["counts"]["active"] == 1
    assert (shown["idle"]["pulls"], shown["idle"]["subscribers"]) == (1, 0)
    assert shown["paused"]["paused"] is True


def test_queues_are_found_by_name_in_pages(desk: Desk) -> None:
    for n in range(5):
        desk.push(f"Mail-{n}")
    desk.push("other")
    page = desk.do("FindQueues", text="mail", offset=1, limit=2)
    assert [q["name"] for q in page["queues"]] == ["Mail-1", "Mail-2"]
    assert (page["total"], page["offset"], page["limit"]) == (5, 1, 2)
    assert names(desk, text="mail", offset=9) == []
    assert names(desk, limit=0) == []
    assert desk.do("FindQueues", limit=9_999)["limit"] == 200


def test_the_fullest_come_first_if_asked(desk: Desk) -> None:
    for queue, n in (("a", 1), ("b", 3), ("c", 2)):
        for _ in range(n):
            desk.push(queue)
    desk.push("d", delay=1_000)
    assert names(desk, sort="waiting")[:3] == ["b", "c", "a"]
    assert names(desk, sort="waiting", offset=1, limit=1) == ["c"]
    assert names(desk, sort="delayed")[0] == "d"
    assert names(desk, sort="name") == ["a", "b", "c", "d"]
    assert "sort must be name or one of waiting, active" in desk.refused("FindQueues", sort="x")
    assert "sort must be" in desk.refused("FindQueues", sort=[])


def test_the_pulse_counts_jobs_and_tells_rates(desk: Desk) -> None:
    desk.push("a")
    desk.push("b", delay=1_000)
    desk.active("c")
    told = desk.do("Pulse")
    assert told["counts"] == {
        "waiting": 1, "active": 1, "delayed": 1, "completed": 0, "failed": 0,
        "waiting-children": 0,
    }  # fmt: skip
    assert (told["queues"], told["schedules"], told["connections"]) == (3, 0, 7)
    assert told["rates"]["pushPerSec"] == 1.5


def test_a_user_feels_the_pulse_of_queues_that_may_be_listed(desk: Desk) -> None:
    assert desk.do("Pulse")["counts"]["waiting"] == 0
    desk.push("mine")
    desk.push("theirs")
    as_user(desk, {"mine": (Operation.LIST_QUEUES,)})
    told = desk.do("Pulse")
    assert (told["queues"], told["counts"]["waiting"]) == (1, 1)
    assert "rates" not in told


def test_a_user_finds_queues_that_may_be_listed(desk: Desk) -> None:
    desk.push("mine")
    desk.push("theirs")
    as_user(desk, {"mine": (Operation.LIST_QUEUES,)})
    assert names(desk) == ["mine"]
    assert desk.do("FindQueues")["total"] == 1


@pytest.fixture
def crowd(market: Market) -> Market:
    market.create("news", **FAN_OUT)
    market.create("work")
    market.subscribe(SUBSCRIBER, OTHER, queue="news")
    market.subscribe(SUBSCRIBER, queue="work")
    market.publish("m1", queue="work")
    market.look()
    return market


def test_subscribers_are_shown_by_queue(crowd: Market) -> None:
    told = crowd.do("ListSubscribers")
    assert told["total"] == 3
    shown = [(s["queue"], s["connection"], s["name"], s["held"]) for s in told["subscribers"]]
    assert shown == [("news", 1, "c1", 0), ("news", 2, "c2", 0), ("work", 1, "c1", 1)]
    assert told["subscribers"][0]["mode"] == "fan-out-with-ack"
    assert told["subscribers"][2]["heldBytes"] == 1


def test_subscribers_come_in_pages_and_of_one_queue(crowd: Market) -> None:
    page = crowd.do("ListSubscribers", offset=1, limit=1)
    assert [(s["queue"], s["connection"]) for s in page["subscribers"]] == [("news", 2)]
    assert crowd.do("ListSubscribers", queue="work")["total"] == 1
    assert crowd.do("ListSubscribers", queue="none") == {
        "subscribers": [], "total": 0, "offset": 0, "limit": 50,
    }  # fmt: skip


def test_a_user_sees_subscribers_of_granted_queues(crowd: Market) -> None:
    as_user(crowd, {"work": (Operation.GET_QUEUE_INFO,)})
    assert [s["queue"] for s in crowd.do("ListSubscribers")["subscribers"]] == ["work"]
    assert crowd.do("ListSubscribers", queue="news")["total"] == 0


def test_many_queues_are_looked_through_in_slices(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "SLICE", 2)
    for n in range(5):
        desk.push(f"q{n}")
    assert desk.waits("Pulse", conn=2)
    assert desk.waits("FindQueues", conn=2, limit=1, offset=4)
    for _ in range(3):
        desk.later(1)
    (_, pulse), (_, found) = desk.told()
    assert (pulse["queues"], pulse["counts"]["waiting"]) == (5, 5)
    assert ([q["name"] for q in found["queues"]], found["total"]) == (["q4"], 5)
