"""Section 10 of the scenarios: publishers while too much is stored."""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.room import Guest, Room, room

from tandemq.engine.pressure import OVERHEAD, Level
from tandemq.model.health import Status
from tandemq.server.health import health
from tandemq.wires.sniff import Wire

LIMIT = 1_000_000  # bytes
ONE = 10_000  # what one message is accounted for
TEXT = "x" * (ONE - OVERHEAD - 2)  # its quotes are stored too
DROP_OLDEST, DROP_NEWEST, BLOCK, REDIRECT = range(4)


async def filled(r: Room, percent: int, **options: Any) -> tuple[Guest, Guest]:
    """A publisher, and a subscriber that holds messages which fill the memory so far."""
    a, p = await r.many(2)
    await a.subscribe("held")
    await p.create("q", **options)
    for n in range(percent):
        p.send("Publish", f"h{n}", queue="held", payload=TEXT)
        await r.settle()
    await r.pass_time(1)
    for guest in (a, p):
        guest.read().clear()
    assert r.engine.pressure.used == percent * ONE
    return p, a


async def test_below_the_first_mark_publishers_feel_nothing(wire: Wire) -> None:
    async with room(wire, max_memory=LIMIT) as r:
        p, _ = await filled(r, 78)
        assert r.engine.pressure.level is Level.CALM
        p.send("Publish", "m", queue="q", payload=TEXT)
        await p.expect("PublishAck", "m", queue="q")


async def test_from_80_percent_on_publishers_are_answered_late(wire: Wire) -> None:
    async with room(wire, max_memory=LIMIT) as r:
        p, a = await filled(r, 88)
        a.ack("h0", "h1")  # 86
        told = health(r.server, r.clock.now)
        assert (told.is_healthy, told.status) == (True, Status.DEGRADED)
        p.send("Publish", "m", queue="q", payload=TEXT)
        p.send("Ping", "k")
        await p.expect("Pong", "k")
        await p.silence()
        assert await a.waiting("q") == 1  # it is accepted already
        await r.pass_time(0.5)
        await p.expect("PublishAck", "m", queue="q")


async def test_s_121_from_90_percent_on_a_publish_is_held_and_the_rest_is_served(wire) -> None:
    async with room(wire, max_memory=LIMIT) as r:
        p, a = await filled(r, 90)
        assert r.engine.pressure.level is Level.HELD
        assert not health(r.server, r.clock.now).is_healthy
        p.send("Publish", "m", queue="q", payload=1)
        p.send("Ping", "k")
        await p.expect("Pong", "k")
        await p.subscribe("other")
        p.ack("nothing")
        assert await a.waiting("q") == 0
        assert (await a.ask("Ping", "k"))["type"] == "Pong"
        await r.pass_time(7)
        await p.silence()


async def test_s_121_a_held_publish_is_refused_in_the_end(wire: Wire) -> None:
    async with room(wire, max_memory=LIMIT) as r:
        p, _ = await filled(r, 90)
        p.send("Publish", "m", queue="q", payload=1)
        await r.pass_time(8)
        await p.expect("Error", "m", errorCode="QUEUE_FULL", errorMessage="*")
        assert not r.engine.pressure.held


async def test_s_122_held_publishes_are_accepted_in_order_when_there_is_room(wire: Wire) -> None:
    async with room(wire, max_memory=LIMIT) as r:
        p, a = await filled(r, 90)
        ids = [f"m{n}" for n in range(5)]
        for id in ids:
            p.send("Publish", id, queue="q", payload=1)
        a.ack(*(f"h{n}" for n in range(4)))
        await p.silence()  # 86: a level is left five points lower
        a.ack(*(f"h{n}" for n in range(4, 20)))
        for id in ids:
            assert (await p.answer(id))["type"] == "PublishAck"
        b = await r.guest()
        await b.subscribe("q")
        assert await b.delivered() == ids


async def test_what_a_held_publisher_had_is_discarded_when_it_goes(wire: Wire) -> None:
    async with room(wire, max_memory=LIMIT) as r:
        p, _ = await filled(r, 90)
        p.send("Publish", "m", queue="q", payload=TEXT)
        await p.break_off()
        assert not r.engine.pressure.held


async def brink(r: Room, **options: Any) -> Guest:
    """A publisher whose memory is full, after two messages for the queue."""
    p, _ = await filled(r, 0, **options)
    await p.publish("q", "old1", "old2", payload=TEXT)
    a = await r.guest()
    await a.subscribe("held")
    p.send("Publish", "large", queue="held", payload="x" * (LIMIT * 94 // 100))
    await r.settle()
    assert (await p.answer("large"))["type"] == "PublishAck"
    assert r.engine.pressure.level is Level.FULL
    p.read().clear()
    return p


async def test_s_123_from_95_percent_on_the_oldest_goes_for_each_new_one(wire: Wire) -> None:
    async with room(wire, max_memory=LIMIT) as r:
        p = await brink(r, overflowStrategy=DROP_OLDEST)
        p.send("Publish", "new", queue="q", payload=TEXT)
        await r.pass_time(1)
        await p.expect("PublishAck", "new", queue="q")
        b = await r.guest()
        await b.subscribe("q")
        assert await b.delivered() == ["old2", "new"]
        assert r.counters.dropped == 1


@pytest.mark.parametrize("strategy", [DROP_NEWEST, REDIRECT])
async def test_s_124_and_125_or_the_new_one_is_refused(wire: Wire, strategy: int) -> None:
    async with room(wire, max_memory=LIMIT) as r:
        p = await brink(r, overflowStrategy=strategy, enableDeadLetterQueue=True)
        assert await p.refused("Publish", "new", queue="q", payload=1) == (
            "QUEUE_FULL",
            "Queue 'q' is full.",
        )
        assert await p.waiting("q") == 2
        assert await p.waiting("q.dlq") == 0


async def test_from_95_percent_on_a_blocking_queue_holds_the_publisher(wire: Wire) -> None:
    async with room(wire, max_memory=LIMIT) as r:
        p = await brink(r, overflowStrategy=BLOCK)
        p.send("Publish", "new", queue="q", payload=1)
        await p.silence()
        await r.pass_time(8)
        await p.expect("Error", "new", errorCode="QUEUE_FULL", errorMessage="*")


async def test_s_126_a_level_does_not_flap() -> None:
    async with room(Wire.JSON, max_memory=LIMIT) as r:
        p, a = await filled(r, 79)
        before = r.engine.pressure.changes
        for n in range(50):
            p.send("Publish", f"x{n}", queue="held", payload=TEXT)
            await r.settle()
            a.ack(f"x{n}")
            await r.settle()
        assert r.engine.pressure.changes - before == 1
