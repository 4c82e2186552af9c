"""PUSH, PUSHB and PUSHF where they cannot come in at once: full queues, scarce memory."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.market import LATER, SUBSCRIBER, WORKER, Market

from tandemq.model.broker import UNBOUNDED, Overflow

# -- the walls of publishers -----------------------------------------------------------------------


def pushes(cmd: str, *ids: str, queue: str = "q", full: bool = False) -> dict[str, Any]:
    """The fields of a command that pushes these; in its full shape it asks for more."""
    more: dict[str, Any] = {"priority": 0, "maxAttempts": 5} if full else {}
    jobs = [{"data": {"n": id}, "name": id, **more} for id in ids]
    if cmd == "PUSH":
        [job] = jobs
        return {"queue": queue, **job}
    if cmd == "PUSHB":
        return {"queue": queue, "jobs": jobs}
    planned = zip(ids, jobs, strict=True)
    return {"jobs": [{"id": f"flow-{id}", "queue": queue, "input": job} for id, job in planned]}


SHAPES = [(cmd, full) for cmd in ("PUSH", "PUSHB", "PUSHF") for full in (False, True)]
every_push = pytest.mark.parametrize(("cmd", "full"), SHAPES)
BLOCK = {"overflow": Overflow.BLOCK_PUBLISHER}
LIMIT = 100_000


def fill(market: Market, per_cent: int) -> None:
    pressure = market.engine.pressure
    if not pressure.limit:
        pressure.limit = LIMIT
        pressure._stay()
    pressure.grow(market.engine, LIMIT * per_cent // 100 - pressure.used)


@every_push
def test_a_push_waits_while_memory_is_held_and_comes_in_in_order(
    market: Market, cmd: str, full: bool
) -> None:
    fill(market, 91)
    assert market.waits(cmd, **pushes(cmd, "a", full=full))
    assert market.publish("b", conn=1) is LATER
    assert market.waits("PUSH", **pushes("PUSH", "c"))
    assert market.waiting() == []
    fill(market, 10)
    assert market.waits(cmd, **pushes(cmd, "d", full=full)), "it may not overtake"
    market.look()
    assert [answer["ok"] for _, answer in market.answers] == [True] * 3
    assert market.waiting() == ["a", "b", "c", "d"]
    market.do(cmd, **pushes(cmd, "e", full=full))


@every_push
def test_a_push_is_answered_late_while_memory_is_scarce(
    market: Market, cmd: str, full: bool
) -> None:
    fill(market, 85)
    assert market.waits(cmd, **pushes(cmd, "a", full=full))
    assert market.waiting() == ["a"]
    assert list(market.told()) == []
    market.later(500)
    [(_, answer)] = market.told()
    assert answer["ok"]


@every_push
def test_a_push_is_refused_when_memory_is_full(market: Market, cmd: str, full: bool) -> None:
    market.create()
    fill(market, 95)
    assert "memory" in market.refused(cmd, **pushes(cmd, "a", full=full)).lower()
    assert market.waiting() == []


@every_push
def test_whoever_waits_for_memory_is_refused_when_it_is_full(
    market: Market, cmd: str, full: bool
) -> None:
    fill(market, 91)
    assert market.waits(cmd, **pushes(cmd, "a", full=full))
    fill(market, 96)
    [(_, answer)] = market.told()
    assert "memory" in answer["error"].lower()


@every_push
def test_a_push_waits_for_memory_no_longer_than_that(market: Market, cmd: str, full: bool) -> None:
    fill(market, 91)
    assert market.waits(cmd, **pushes(cmd, "a", full=full))
    market.later(7_999)
    assert list(market.told()) == []
    market.later(1)
    [(_, answer)] = market.told()
    assert answer["ok"] is False
    fill(market, 0)
    assert list(market.told()) == []
    assert market.waiting() == []


@every_push
@pytest.mark.parametrize("wall", ["memory", "queue"])
def test_who_leaves_pushes_nothing(market: Market, cmd: str, full: bool, wall: str) -> None:
    market.create(max_size=1, **BLOCK)
    market.publish("first")
    if wall == "memory":
        fill(market, 91)
    assert market.waits(cmd, conn=WORKER, **pushes(cmd, "a", full=full))
    market.leave(WORKER)
    fill(market, 0)
    job, token = market.pulled()
    market.do("ACK", id=job["id"], token=token)
    assert list(market.told()) == []
    assert market.waiting() == []


@every_push
def test_a_push_into_a_full_queue_is_refused_or_waits_as_its_publishers_do(
    market: Market, cmd: str, full: bool
) -> None:
    for strategy in Overflow:
        queue = f"q{strategy}"
        market.create(queue, max_size=1, overflow=strategy)
        market.publish("first", queue)
        if strategy is Overflow.BLOCK_PUBLISHER:
            assert market.waits(cmd, **pushes(cmd, "a", queue=queue, full=full))
        else:
            assert "full" in market.refused(cmd, **pushes(cmd, "a", queue=queue, full=full))
        assert market.waiting(queue) == ["first"]


@every_push
def test_a_push_that_waits_for_room_comes_in_before_whoever_comes_later(
    market: Market, cmd: str, full: bool
) -> None:
    market.create(max_size=1, **BLOCK)
    market.publish("first")
    assert market.waits(cmd, **pushes(cmd, "a", full=full))
    market.pulled()
    assert market.publish("b") is LATER, "there is room, but not for it"
    assert market.waits("PUSH", **pushes("PUSH", "c"))
    market.look()
    assert [answer["ok"] for _, answer in market.answers] == [True]
    assert market.waiting() == ["a"]
    market.pulled()
    assert market.look().replies == [(9, True)]
    assert market.waiting() == ["b"]


@pytest.mark.parametrize("cmd", ["PUSHB", "PUSHF"])
@pytest.mark.parametrize("full", [False, True])
def test_many_come_in_together_or_not_at_all(market: Market, cmd: str, full: bool) -> None:
    market.create(max_size=3, **BLOCK)
    market.publish("first")
    assert market.waits(cmd, **pushes(cmd, "a", "b", "c", full=full))
    assert market.waiting() == ["first"]
    market.pulled()
    assert [answer["ok"] for _, answer in market.told()] == [True]
    assert market.waiting() == ["a", "b", "c"]
    assert "full" in market.refused(cmd, **pushes(cmd, "d", "e", "f", "g", full=full))
    assert market.waiting() == ["a", "b", "c"]


def test_a_flow_looks_at_every_queue_first(market: Market) -> None:
    market.create("a", max_size=1, **BLOCK)
    market.create("b", max_size=1, **BLOCK)
    market.publish("in a", "a")
    market.publish("in b", "b")
    jobs = [
        {"id": f"{queue}-{n}", "queue": queue, "input": {"data": {}, "name": "n"}}
        for n, queue in enumerate(("free", "a", "b"))
    ]
    assert market.waits("PUSHF", jobs=jobs)
    assert market.info("free") is None
    market.pulled("a")
    assert list(market.told()) == []
    assert market.info("free") is None
    market.pulled("b")
    [(_, answer)] = market.told()
    assert answer["ok"]
    assert [market.waiting(queue) for queue in ("free", "a", "b")] == [["n"], ["n"], ["n"]]


@pytest.mark.parametrize("cmd", ["PUSH", "PUSHB"])
def test_a_name_for_a_job_that_is_there_needs_no_room(market: Market, cmd: str) -> None:
    market.create(max_size=1, overflow=Overflow.DROP_NEWEST)
    id = market.push(jobId="mine")
    if cmd == "PUSH":
        assert market.push(jobId="mine") == id
    else:
        jobs = [{"data": 1, "customId": "mine"}, {"data": 1, "customId": "mine"}]
        assert market.do("PUSHB", queue="q", jobs=jobs)["ids"] == [id, id]


def test_keys_that_are_held_need_no_room(market: Market) -> None:
    market.create(max_size=1, overflow=Overflow.DROP_NEWEST)
    id = market.push(uniqueKey="k")
    jobs = [{"data": 1, "uniqueKey": "k"}, {"data": 2, "uniqueKey": "k"}]
    assert market.do("PUSHB", queue="q", jobs=jobs)["ids"] == [id, id]


def test_a_repeated_job_comes_again_into_a_full_queue(market: Market) -> None:
    market.create(max_size=1, overflow=Overflow.DROP_NEWEST)
    market.push(repeat={"every": 1_000})
    job, token = market.pulled()
    market.publish("in its place")
    market.do("ACK", id=job["id"], token=token)
    assert market.info().waiting == 2


@pytest.mark.parametrize("push", ["PUSH", "PUSHB", "PUSHF"])
def test_any_push_into_an_undecided_queue_makes_it_a_job_queue(market: Market, push: str) -> None:
    market.subscribe(SUBSCRIBER)
    market.do(push, **pushes(push, "only"))
    assert market.info().policy.max_size == UNBOUNDED
