"""Section 8 of the scenarios: messages that are too old."""

from __future__ import annotations

from tests.broker.room import room
from tests.server.offline import GatedStore

from tandemq.wires.sniff import Wire

TEN = {"messageTtl": "00:00:10"}


async def test_s_100_what_is_too_old_is_not_delivered(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("q", **TEN)
        await p.publish("q", "old")
        await r.pass_time(5)
        await p.publish("q", "young")
        await r.pass_time(6)
        await a.subscribe("q")
        assert await a.delivered() == ["young"]
        assert r.counters.dropped == 1


async def test_s_100_with_dead_letters_it_becomes_one(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("q", **TEN, enableDeadLetterQueue=True)
        await p.publish("q", "m")
        await r.pass_time(11)
        await a.subscribe("q", "q.dlq")
        told = await a.expect("Deliver", "m", queue="q.dlq", payload=1, headers={
            "x-death-queue": "q", "x-death-reason": "MessageExpired", "x-death-time": "*",
            "x-attempts": "0",
        })  # fmt: skip
        assert told["id"] == "m"
        assert await p.waiting("q") == 0


async def test_what_waits_is_removed_within_a_second_though_nobody_asks(wire: Wire) -> None:
    async with room(wire) as r:
        p = await r.guest()
        await p.create("q", **TEN)
        await p.publish("q", "m")
        await r.pass_time(9.9)
        assert r.stored == 1
        await r.pass_time(1.1)
        assert r.stored == 0


async def test_s_101_what_is_too_old_is_not_delivered_again(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("q", messageTtl="00:00:20", enableDeadLetterQueue=True)
        await a.subscribe("q")
        await p.publish("q", "m")
        await r.pass_time(29)
        assert r.in_flight == 1  # what is held is not cut off
        await r.pass_time(600)
        assert [at for at, _ in a.times] == [0]
        (dead,) = r.engine.queues["q.dlq"].ready
        assert dead.letter is not None
        assert (dead.letter.headers or {})["x-death-reason"] == "MessageExpired"


async def test_an_answer_in_time_for_the_subscriber_counts_however_old_it_is(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("q", **TEN)
        await a.subscribe("q")
        await p.publish("q", "m")
        await r.pass_time(25)
        a.ack("m")
        assert (r.stored, r.counters.acknowledged) == (0, 1)


async def test_a_copy_that_is_too_old_is_not_delivered_again(wire: Wire) -> None:
    async with room(wire) as r:
        p, a, b = await r.many(3)
        await p.create("q", messageTtl="00:00:20", mode=1)
        await a.subscribe("q")
        await b.subscribe("q")
        await p.publish("q", "m")
        a.ack("m")
        await r.pass_time(600)
        assert [at for at, _ in b.times] == [0]
        assert r.stored == 0


async def test_the_age_goes_on_while_the_server_is_down(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p = await r.guest()
        await p.create("q", **TEN)
        await p.publish("q", "m")
    async with room(wire, store) as r:
        await r.pass_time(11)
        a = await r.guest()
        await a.subscribe("q")
        await a.silence()
        assert r.stored == 0
