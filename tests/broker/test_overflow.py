"""Section 9 of the scenarios: full queues."""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.room import Guest, Room, room
from tests.server.offline import GatedStore
from tests.support.vibe import BOTH, encoded

from tandemq.wires.sniff import Wire

DROP_OLDEST, DROP_NEWEST, BLOCK, REDIRECT = range(4)
FULL = ("QUEUE_FULL", "Queue 'q' is full.")
OPTIONS = {"maxQueueSize": 2}


async def full(r: Room, strategy: int, *, size: int = 2, **options: Any) -> Guest:
    """A publisher that has filled a queue."""
    p = await r.guest()
    await p.create("q", maxQueueSize=size, overflowStrategy=strategy, **options)
    await p.publish("q", *(f"m{n}" for n in range(size)))
    return p


async def content(r: Room, queue: str = "q") -> list[str]:
    """The ids of what waits in a queue, told by a subscriber that leaves it as it was."""
    a = await r.guest()
    await a.subscribe(queue)
    found = await a.delivered()
    a.send("Disconnect")
    await r.settle()
    return found


async def test_s_110_the_oldest_goes_and_does_not_return(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p = await full(r, DROP_OLDEST)
        await p.publish("q", "c")
        assert await content(r) == ["m1", "c"]
        assert (r.counters.dropped, r.stored) == (1, 2)
    assert len(store.rows) == 2
    async with room(wire, store) as r:
        assert await content(r) == ["m1", "c"]


async def test_of_several_levels_the_oldest_of_the_lowest_goes(wire: Wire) -> None:
    async with room(wire) as r:
        p = await r.guest()
        await p.create("q", mode=3, maxQueueSize=3)
        for id, level in (("high", "High"), ("low", "Low"), ("low2", "Low"), ("new", "Normal")):
            await p.publish("q", id, headers={"priority": level})
        assert await content(r) == ["high", "new", "low2"]


async def test_s_111_the_newest_is_refused(wire: Wire) -> None:
    async with room(wire) as r:
        p = await full(r, DROP_NEWEST)
        assert await p.refused("Publish", "c3", queue="q", payload=3) == FULL
        assert await content(r) == ["m0", "m1"]
        assert r.counters.errors == 1


async def test_s_112_a_blocked_publisher_waits_and_the_rest_goes_on(wire: Wire) -> None:
    async with room(wire) as r:
        p = await full(r, BLOCK)
        p.send("Publish", "c4", queue="q", payload=3)
        p.send("Ping", "k9")
        await p.expect("Pong", "k9")
        await r.pass_time(5)
        await p.silence()
        assert await p.waiting("q") == 2
        a = await r.guest()
        await a.subscribe("q")
        await p.expect("PublishAck", "c4", queue="q")
        assert await a.delivered() == ["m0", "m1", "c4"]


async def test_blocked_publishers_are_let_in_one_by_one_in_their_order(wire: Wire) -> None:
    async with room(wire) as r:
        await full(r, BLOCK)
        publishers = await r.many(3)
        for n, p in enumerate(publishers):
            p.send("Publish", f"w{n}", queue="q", payload=1)
        a = await r.guest()
        await a.subscribe("q")
        assert await a.delivered() == ["m0", "m1", "w0", "w1", "w2"]
        for n, p in enumerate(publishers):
            await p.expect("PublishAck", f"w{n}", queue="q")


async def test_a_blocked_publisher_is_refused_when_it_has_waited_too_long(wire: Wire) -> None:
    async with room(wire) as r:
        p = await full(r, BLOCK)
        p.send("Publish", "c", queue="q", payload=3)
        await r.pass_time(7.9)
        await p.silence()
        await r.pass_time(0.1)
        assert (await p.answer("c"))["errorCode"] == "QUEUE_FULL"
        assert await content(r) == ["m0", "m1"]


async def test_s_114_what_a_blocked_publisher_had_is_discarded_when_it_goes(wire: Wire) -> None:
    async with room(wire) as r:
        p = await full(r, BLOCK)
        p.send("Publish", "c", queue="q", payload="x" * 100_000)
        await r.settle()
        assert r.engine.blocked
        await p.break_off()
        assert not r.engine.blocked
        assert await content(r) == ["m0", "m1"]
        assert r.stored == 2


async def test_many_blocked_publishes_of_one_connection_are_bounded(wire: Wire) -> None:
    async with room(wire) as r:
        p = await full(r, BLOCK)
        frame = encoded(wire, "Publish", "w", queue="q", payload="x" * 1000)
        for _ in range(300):
            p.send_raw(frame * 10)
            await r.settle()
            if not p.transport.reading:
                break
        assert not p.transport.reading
        assert sum(map(len, r.engine.blocked.values())) <= 1_000


async def test_deleting_a_full_queue_refuses_who_waits_for_room(wire: Wire) -> None:
    async with room(wire) as r:
        p = await full(r, BLOCK)
        p.send("Publish", "c", queue="q", payload=3)
        await (await r.guest()).ask("DeleteQueue", queue="q")
        assert (await p.answer("c"))["errorCode"] == "QUEUE_FULL"


async def test_what_does_not_fit_can_become_a_dead_letter(wire: Wire) -> None:
    async with room(wire) as r:
        p = await full(r, REDIRECT, enableDeadLetterQueue=True)
        await p.publish("q", "c")
        a = await r.guest()
        await a.subscribe("q.dlq")
        told = await a._wait_for(lambda _: True)
        assert (told["id"], told["headers"]["x-death-reason"]) == ("c", "QueueOverflow")
        assert await content(r) == ["m0", "m1"]


async def test_redirecting_needs_dead_letters(wire: Wire) -> None:
    async with room(wire) as r:
        p = await r.guest()
        options = {"overflowStrategy": REDIRECT}
        code, _ = await p.refused("CreateQueue", queue="q", payload=options)
        assert code == "INVALID_PAYLOAD"
        assert not r.engine.queues


@pytest.mark.parametrize("strategy", [DROP_OLDEST, DROP_NEWEST, BLOCK, REDIRECT])
async def test_s_116_what_somebody_holds_does_not_count(wire: Wire, strategy: int) -> None:
    async with room(wire) as r:
        a, p = await r.many(2)
        options = {"maxQueueSize": 2, "overflowStrategy": strategy}
        await p.create("q", **options, enableDeadLetterQueue=True)
        await a.subscribe("q")
        await p.publish("q", *(f"held{n}" for n in range(5)))
        assert len(await a.delivered()) == 5
        b = await r.guest()
        a.transport.peer_reads = False
        a.connection.pause_writing()  # it takes no more
        await p.publish("q", "m1", "m2")
        assert await p.waiting("q") == 2
        await b.subscribe("q")
        assert await b.delivered() == ["m1", "m2"]


@pytest.mark.parametrize("strategy", [DROP_OLDEST, DROP_NEWEST, REDIRECT])
async def test_a_job_is_never_dropped_for_room(strategy: int) -> None:
    async with room(Wire.JSON) as r:
        p = await r.guest()
        options = {"maxQueueSize": 2, "overflowStrategy": strategy}
        await p.create("q", **options, enableDeadLetterQueue=True)
        worker = r.worker()
        ids = [await worker.push("q") for _ in range(2)]
        await p.ask("Publish", "m", queue="q", payload=1)
        assert [await worker.state(id) for id in ids] == ["waiting", "waiting"]


async def test_publishers_of_both_wires_wait_in_one_line() -> None:
    async with room(Wire.JSON) as r:
        await full(r, BLOCK)
        publishers = [await r.guest(each) for each in BOTH * 2]
        for n, p in enumerate(publishers):
            p.send("Publish", f"w{n}", queue="q", payload=1)
        a = await r.guest()
        await a.subscribe("q")
        assert await a.delivered() == ["m0", "m1", "w0", "w1", "w2", "w3"]
