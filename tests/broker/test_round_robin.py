"""Section 3 of the scenarios: one message for one subscriber after the other."""

from __future__ import annotations

from tests.broker.room import Guest, Room, room
from tests.support.vibe import BOTH

from tandemq.wires.sniff import Wire

FOUR = ["m1", "m2", "m3", "m4"]


async def subscribed(r: Room, count: int, queue: str = "q") -> list[Guest]:
    guests = await r.many(count)
    for guest in guests:
        await guest.subscribe(queue)
    return guests


async def test_s_040_subscribers_take_turns(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await subscribed(r, 2)
        await (await r.guest()).publish("q", *FOUR)
        assert await a.delivered() == ["m1", "m3"]
        assert await b.delivered() == ["m2", "m4"]


async def test_subscribers_of_both_wires_take_turns() -> None:
    async with room(Wire.JSON) as r:
        a, b = [await r.guest(each) for each in BOTH]
        await a.subscribe("q")
        await b.subscribe("q")
        await a.publish("q", *FOUR[:2])
        await b.publish("q", *FOUR[2:])
        assert await a.delivered() == ["m1", "m3"]
        assert await b.delivered() == ["m2", "m4"]


async def test_s_041_three_subscribers_share_three_hundred_messages(wire: Wire) -> None:
    async with room(wire) as r:
        guests = await subscribed(r, 3)
        publisher = await r.guest()
        ids = [f"m{n}" for n in range(300)]
        for id in ids:
            publisher.send("Publish", id, queue="q", payload=1)
        got = [await guest.delivered() for guest in guests]
        assert got == [ids[n::3] for n in range(3)]


async def test_s_042_who_joins_is_last_and_then_they_alternate(wire: Wire) -> None:
    async with room(wire) as r:
        (a,), p = await subscribed(r, 1), await r.guest()
        await p.publish("q", "m1")
        (b,) = await subscribed(r, 1)
        await p.publish("q", "m2", "m3", "m4", "m5")
        assert await a.delivered() == ["m1", "m2", "m4"]
        assert await b.delivered() == ["m3", "m5"]


async def test_s_043_what_a_leaver_held_comes_before_what_is_new(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await subscribed(r, 2)
        p = await r.guest()
        await p.publish("q", "m1", "m2")
        assert (await a.delivered(), await b.delivered()) == (["m1"], ["m2"])
        await b.break_off()
        await p.publish("q", "m3")
        assert await a.delivered() == ["m2", "m3"]


async def test_a_leaver_does_not_disturb_whose_turn_it_is(wire: Wire) -> None:
    async with room(wire) as r:
        a, b, c = await subscribed(r, 3)
        p = await r.guest()
        await p.publish("q", "m1")
        a.ack("m1")
        a.send("Unsubscribe", "u", queue="q")
        await p.publish("q", "m2", "m3", "m4")
        assert await b.delivered() == ["m2", "m4"]
        assert await c.delivered() == ["m3"]


async def test_s_045_a_subscriber_that_does_not_read_is_passed_over(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await subscribed(r, 2)
        p = await r.guest()
        a.transport.peer_reads = False
        large = "x" * 600_000
        await p.publish("q", "m1", "m2", "m3", "m4", payload=large)
        assert a.connection.stuck
        assert await a.delivered() == ["m1", "m3"]  # what was on its way when it stopped reading
        await b.delivered()
        await p.publish("q", "m5", "m6")
        assert await b.delivered() == ["m5", "m6"]
        b.ack("m2", "m4", "m5", "m6")
        before = r.counters.errors
        await r.pass_time(r.server.settings.slow_timeout + 1)
        assert a.transport.aborted
        assert r.counters.errors == before + 1
        assert {"m1", "m3"} <= set(await b.delivered())


async def test_s_046_without_subscribers_messages_wait_in_order(wire: Wire) -> None:
    async with room(wire) as r:
        (a,), p = await subscribed(r, 1), await r.guest()
        await p.publish("q", "m1", "m2")
        await a.break_off()
        await p.publish("q", "m3", "m4")
        (b,) = await subscribed(r, 1)
        assert await b.delivered() == FOUR


async def test_five_thousand_subscribers_of_one_queue(wire: Wire) -> None:
    async with room(wire) as r:
        guests = [r.stranger() for _ in range(5_000)]
        for guest in guests:
            guest.send("Connect", "c")
            guest.send("Subscribe", "s", queue="q")
        publisher = await r.guest()
        await publisher.publish("q", *(f"m{n}" for n in range(10)))
        await r.settle()
        got = [[f["id"] for f in guest.read() if f["type"] == "Deliver"] for guest in guests]
        assert got == [[f"m{n}"] for n in range(10)] + [[]] * 4_990
