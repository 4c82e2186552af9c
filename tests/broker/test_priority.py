"""Section 6 of the scenarios: the most urgent first, equals in their order."""

from __future__ import annotations

from time import perf_counter

import pytest
from tests.broker.room import Room, room

from tandemq.engine import post
from tandemq.model.broker import WINDOW
from tandemq.model.message import Letter
from tandemq.wires.sniff import Wire

LEVELS = ["Low", "Normal", "High", "Critical"]
ROUND_ROBIN, PRIORITY = 0, 3


async def test_the_most_urgent_come_first(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("q", mode=PRIORITY)
        for n, level in enumerate(LEVELS * 2):
            await p.publish("q", f"{level}{n // 4}", headers={"priority": level})
        await a.subscribe("q")
        expected = [f"{level}{n}" for level in reversed(LEVELS) for n in range(2)]
        assert await a.delivered() == expected


@pytest.mark.parametrize("level", LEVELS)
async def test_s_071_equals_come_in_the_order_of_their_publication(wire: Wire, level: str) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("q", mode=PRIORITY)
        ids = [f"m{n}" for n in range(100)]
        for id in ids:
            p.send("Publish", id, queue="q", payload=1, headers={"priority": level})
        await a.subscribe("q")
        assert await a.delivered() == ids


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ("sideways", 1),
        ("", 1),
        ("9", 1),
        ("-1", 1),
        ("1.0", 1),
        *((str(n), n) for n in range(4)),
        *((name.lower(), n) for n, name in enumerate(LEVELS)),
        *((name.upper(), n) for n, name in enumerate(LEVELS)),
    ],
)
async def test_s_072_what_is_no_priority_is_normal(wire: Wire, said: str, level: int) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("q", mode=PRIORITY)
        for n, name in enumerate(LEVELS):
            await p.publish("q", f"before{n}", headers={"priority": name})
        p.send("Publish", "p1", queue="q", payload=1, headers={"priority": said})
        await p.expect("PublishAck", "p1", queue="q")
        await a.subscribe("q")
        got = await a.delivered()
        assert got[got.index("p1") - 1] == f"before{level}"


async def test_s_074_other_modes_deliver_in_the_order_of_publication(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("q", mode=ROUND_ROBIN)
        for level in LEVELS:
            await p.publish("q", level, headers={"priority": level})
        await a.subscribe("q")
        assert await a.delivered() == LEVELS
        assert r.counters.delivered == 4


def fill(r: Room, queue: str, count: int) -> None:
    """Publish so many messages of all levels, past the wire."""
    q = r.engine.queues[queue]
    for n in range(count):
        post.post(r.engine, q, Letter(f"m{n}", None), b"1", n % 4, r.clock.now)


async def taking(r: Room, queue: str) -> float:
    """The least time (s) in which an answer is followed by the next message."""
    a = await r.guest()
    await a.subscribe(queue)
    held = await a.delivered()
    assert held == [f"m{n}" for n in range(3, 4 * WINDOW, 4)]  # its window, all critical
    took = []
    for id in held[:200]:
        began = perf_counter()
        a.ack(id)
        took.append(perf_counter() - began)
    assert len(await a.delivered()) == 200
    return min(took)


async def test_s_075_taking_from_a_large_queue_costs_what_it_costs_from_a_small_one() -> None:
    async with room(Wire.JSON) as r:
        p = await r.guest()
        for queue, count in (("small", 5_000), ("large", 100_000)):
            await p.create(queue, mode=PRIORITY, maxQueueSize=2 * count)
            fill(r, queue, count)
        small, large = await taking(r, "small"), await taking(r, "large")
        assert large < 5 * small  # 20 times as many wait
