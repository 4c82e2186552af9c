"""Sections 4 and 5 of the scenarios: one message for everybody, acknowledged or not."""

from __future__ import annotations

import pytest
from tests.broker.room import Guest, Room, room
from tests.server.offline import GatedStore
from tests.support.vibe import BOTH

from tandemq.wires.sniff import Wire

WITH_ACK, WITHOUT = 1, 2
EITHER = pytest.mark.parametrize("mode", [WITH_ACK, WITHOUT], ids=["with ack", "without"])


async def party(r: Room, mode: int = WITH_ACK, **options: object) -> tuple[Guest, ...]:
    """A publisher and three subscribers of a queue."""
    p, a, b, c = await r.many(4)
    await p.create("q", mode=mode, **options)
    for guest in (a, b, c):
        await guest.subscribe("q")
    return p, a, b, c


async def test_s_050_to_052_everybody_gets_a_copy_and_has_to_acknowledge_it(wire: Wire) -> None:
    async with room(wire) as r:
        p, a, b, c = await party(r)
        p.send("Publish", "f1", queue="q", payload="x")
        await p.expect("PublishAck", "f1", queue="q")
        for guest in (a, b, c):
            await guest.expect("Deliver", "f1", queue="q", payload="x")
        assert (r.counters.delivered, r.in_flight) == (3, 3)
        a.ack("f1")
        assert (r.in_flight, r.stored) == (2, 1)
        b.ack("f1")
        assert (r.in_flight, r.stored) == (1, 1)
        c.ack("f1")
        assert (r.in_flight, r.stored, r.counters.acknowledged) == (0, 0, 3)
        for guest in (a, b, c):
            await guest.silence()


@EITHER
async def test_subscribers_of_both_wires_get_the_same(mode: int) -> None:
    async with room(Wire.JSON) as r:
        p = await r.guest()
        await p.create("q", mode=mode)
        guests = [await r.guest(each) for each in BOTH * 2]
        for guest in guests:
            await guest.subscribe("q")
        await p.publish("q", "m", payload={"é": [1]}, headers={"h": "v"})
        for guest in guests:
            await guest.expect("Deliver", "m", queue="q", payload={"é": [1]}, headers={"h": "v"})


async def test_s_053_only_the_silent_one_is_asked_again(wire: Wire) -> None:
    async with room(wire) as r:
        p, a, b, c = await party(r)
        await p.publish("q", "f1", payload="x")
        for guest in (a, b, c):
            await guest.delivered()
        a.ack("f1")
        b.ack("f1")
        await r.pass_time(30)
        await c.expect("Deliver", "f1", queue="q", payload="x")
        await a.silence()
        await b.silence()


async def test_s_054_acknowledging_often_counts_once(wire: Wire) -> None:
    async with room(wire) as r:
        p, a, _, _ = await party(r)
        await p.publish("q", "f1")
        a.ack("f1", "f1", "f1")
        assert (r.in_flight, r.counters.acknowledged) == (2, 1)


async def test_s_056_if_all_leave_before_any_acknowledges_another_gets_it(wire: Wire) -> None:
    async with room(wire) as r:
        p, a, b, c = await party(r)
        await p.publish("q", "f1", "f2")
        for guest in (a, b, c):
            await guest.break_off()
        await r.settle()
        assert await p.waiting("q") == 2
        d = await r.guest()
        await d.subscribe("q")
        assert await d.delivered() == ["f1", "f2"]


async def test_if_one_acknowledged_and_the_rest_leave_it_is_done(wire: Wire) -> None:
    async with room(wire) as r:
        p, a, b, c = await party(r)
        await p.publish("q", "f1")
        a.ack("f1")
        await b.break_off()
        c.send("Unsubscribe", "u", queue="q")
        await r.settle()
        assert r.stored == 0


async def test_s_057_who_joins_later_gets_nothing_old(wire: Wire) -> None:
    async with room(wire) as r:
        p, a, b = await r.many(3)
        await p.create("q", mode=WITH_ACK)
        await a.subscribe("q")
        await p.publish("q", "f1")
        await b.subscribe("q")
        await p.publish("q", "f2")
        assert await a.delivered() == ["f1", "f2"]
        assert await b.delivered() == ["f2"]


@EITHER
async def test_s_058_without_subscribers_a_message_waits(wire: Wire, mode: int) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("q", mode=mode)
        await p.publish("q", "f1", "f2")
        assert await p.waiting("q") == 2
        await a.subscribe("q")
        assert await a.delivered() == ["f1", "f2"]


async def test_subscribers_that_never_answer_make_one_dead_letter(wire: Wire) -> None:
    async with room(wire) as r:
        p, a, b, c = await party(r, enableDeadLetterQueue=True)
        await p.publish("q", "f1")
        a.ack("f1")
        await r.pass_time(43)
        assert [len(guest.times) for guest in (a, b, c)] == [1, 3, 3]
        d = await r.guest()
        await d.subscribe("q.dlq")
        letter = await d.expect("Deliver", "f1", queue="q.dlq", payload=1, headers={
            "x-death-queue": "q", "x-death-reason": "MaxRetriesExceeded", "x-death-time": "*",
            "x-attempts": "3", "x-death-text": "*",
        })  # fmt: skip
        assert letter["headers"]["x-death-text"].count(":") == 2  # two addresses
        assert r.counters.dead_lettered == 1


async def test_s_060_copies_without_acknowledgment_are_not_tracked(wire: Wire) -> None:
    async with room(wire) as r:
        p, *guests = await party(r, WITHOUT)
        await p.publish("q", "n1")
        for guest in guests:
            assert await guest.delivered() == ["n1"]
        assert (r.in_flight, r.stored, r.counters.delivered) == (0, 0, 3)


async def test_s_061_stray_acknowledgments_are_harmless(wire: Wire) -> None:
    async with room(wire) as r:
        p, a, _, _ = await party(r, WITHOUT)
        await p.publish("q", "n1")
        await a.delivered()
        a.ack("n1", "n1")
        await a.silence()
        assert r.counters.acknowledged == 0


async def test_s_062_nothing_is_ever_delivered_again(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p, *guests = await party(r, WITHOUT)
        await p.publish("q", "n1", "n2")
        for guest in guests:
            assert await guest.delivered() == ["n1", "n2"]
        await r.pass_time(600)
        for guest in guests:
            await guest.silence()
    async with room(wire, store) as r:
        a = await r.guest()
        await a.subscribe("q")
        await a.silence()
        assert r.stored == 0
