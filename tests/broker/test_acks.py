"""Section 7 of the scenarios: answers, silence, and what becomes of a message in the end."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from tests.broker.room import Guest, Room, room
from tests.server.offline import GatedStore
from tests.support.vibe import ANY

from tandemq.engine import dlq
from tandemq.wires.sniff import Wire

NACK = {"supported-extensions": "nack"}


async def pair(r: Room, queue: str = "q", **options: Any) -> tuple[Guest, Guest]:
    """A publisher, and the one subscriber of a queue."""
    p, a = await r.many(2)
    await p.create(queue, **options)
    await a.subscribe(queue)
    return p, a


def moments(guest: Guest) -> list[float]:
    """When something was delivered to a guest, in s."""
    guest.unread.clear()
    return [at for at, _ in guest.times]


async def why(r: Room) -> dict[str, str]:
    """The headers of the oldest message in the dead letter queue of q."""
    d = await r.guest()
    await d.subscribe("q.dlq")
    told: dict[str, str] = (await d.expect("Deliver", queue="q.dlq", payload=1, headers=ANY))[
        "headers"
    ]
    return told


async def bring_back(r: Room) -> None:
    """Send the dead letters of q back."""
    now = r.server.begin()
    for m in dlq.first(r.engine, "q", 100):
        assert dlq.bring_back(r.engine, m, now)
    await r.settle()


# -- the schedule ----------------------------------------------------------------------------------


async def test_s_080_and_081_three_deliveries_and_then_a_dead_letter(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await pair(r, enableDeadLetterQueue=True)
        await p.publish("q", "m1")
        await r.pass_time(41.9)
        assert moments(a) == [0, 30, 34]
        assert (r.in_flight, r.counters.dead_lettered) == (1, 0)
        await r.pass_time(0.1)
        assert (r.in_flight, r.counters.dead_lettered, r.counters.retried) == (0, 1, 2)
        headers = await why(r)
        assert headers["x-death-reason"] == "MaxRetriesExceeded"
        assert headers["x-attempts"] == "3"
        await r.pass_time(600)
        assert moments(a) == [0, 30, 34]


async def test_s_083_the_series_of_waits(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await pair(r, enableDeadLetterQueue=True, maxRetryAttempts=9)
        await p.publish("q", "m1")
        await r.pass_time(513.9)
        waits = [0, 30, 4, 8, 16, 32, 64, 120, 120]
        assert moments(a) == list(accumulate(waits)) == [0, 30, 34, 42, 58, 90, 154, 274, 394]
        assert r.counters.dead_lettered == 0
        await r.pass_time(0.1)
        assert r.counters.dead_lettered == 1


@pytest.mark.parametrize("attempts", [0, 1])
async def test_nothing_is_delivered_less_than_once(wire: Wire, attempts: int) -> None:
    async with room(wire) as r:
        p, a = await pair(r, enableDeadLetterQueue=True, maxRetryAttempts=attempts)
        await p.publish("q", "m1")
        await r.pass_time(600)
        assert moments(a) == [0]
        assert r.counters.dead_lettered == 1


async def test_the_schedule_is_the_servers_to_set(wire: Wire) -> None:
    settings = {"ack_timeout": 5.0, "retry_delay": 1.0, "retry_delay_max": 3.0}
    async with room(wire, **settings) as r:
        p, a = await r.many(2)
        await a.subscribe("q")
        await p.publish("q", "m1")
        await r.pass_time(60)
        assert moments(a) == [0, 5, 7]
        assert r.stored == 0


async def test_every_delivery_may_have_the_full_time(wire: Wire) -> None:
    async with room(wire, full_ack_timeout=True) as r:
        p, a = await r.many(2)
        await a.subscribe("q")
        await p.publish("q", "m1")
        await r.pass_time(600)
        assert moments(a) == [0, 30, 60]


# -- answers ---------------------------------------------------------------------------------------


async def test_s_084_an_answer_to_the_second_delivery_stops_everything(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await pair(r, enableDeadLetterQueue=True)
        await p.publish("q", "m1")
        await r.pass_time(31)
        a.ack("m1")
        await r.pass_time(600)
        assert moments(a) == [0, 30]
        assert (r.counters.dead_lettered, r.stored) == (0, 0)


async def test_s_085_an_answer_after_the_end_is_ignored(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await pair(r, enableDeadLetterQueue=True)
        await p.publish("q", "m1")
        await r.pass_time(43)
        a.unread.clear()
        a.ack("m1")
        await a.silence()
        assert await p.waiting("q.dlq") == 1
        assert r.counters.acknowledged == 0


async def test_s_086_an_answer_to_an_unknown_message_is_ignored(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        a.ack("no-such-message")
        await a.silence()
        assert (await a.ask("Ping", "k"))["type"] == "Pong"


async def test_s_087_an_answer_of_a_stranger_changes_nothing(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await pair(r)
        b = await r.guest()
        await b.subscribe("other")
        await p.publish("q", "m1")
        b.ack("m1")
        p.ack("m1")
        await r.pass_time(30)
        assert moments(a) == [0, 30]
        assert r.counters.acknowledged == 0


async def test_a_message_is_acknowledged_in_the_manner_of_the_documents_too(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await pair(r)
        await p.publish("q", "m1")
        a.send("Ack", "other", headers={"messageId": "m1"})
        await a.delivered()
        await a.silence()
        assert r.stored == 0


async def test_a_message_that_is_given_back_comes_again(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.guest(), await r.guest(**NACK)
        await a.subscribe("q")
        await p.publish("q", "m1")
        a.send("Nack", "m1", headers={"delay": "2000"})
        await r.pass_time(3)
        assert moments(a) == [0, 2]


# -- to whom ---------------------------------------------------------------------------------------


async def test_s_090_it_goes_to_the_same_connection_again(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await pair(r)
        b = await r.guest()
        await b.subscribe("q")
        await p.publish("q", "m1")
        await r.pass_time(41)
        assert (moments(a), moments(b)) == ([0, 30, 34], [])


@pytest.mark.parametrize("manner", ["breaks", "says goodbye", "unsubscribes"])
async def test_s_091_if_the_holder_goes_another_gets_it_with_its_attempts(wire, manner) -> None:
    async with room(wire) as r:
        p, a = await pair(r, enableDeadLetterQueue=True)
        b = await r.guest()
        await b.subscribe("q")
        await p.publish("q", "m1")
        await r.pass_time(31)
        if manner == "breaks":
            await a.break_off()
        elif manner == "says goodbye":
            a.send("Disconnect")
        else:
            a.send("Unsubscribe", queue="q")
        await r.pass_time(42)
        assert moments(b)[:2] == [31, 35]  # the second attempt, so 4 s, then the third
        assert r.counters.dead_lettered == 1


async def test_s_097_one_stuck_subscriber_delays_nobody(wire: Wire) -> None:
    async with room(wire, slow_timeout=1000.0) as r:
        p, a = await pair(r)
        b = await r.guest()
        a.transport.peer_reads = False
        for n in range(4):
            await p.publish("q", f"m{n}", payload="x" * 700_000)
        assert a.connection.stuck
        await b.subscribe("own")
        await p.publish("own", "m")
        await r.pass_time(40)
        assert moments(b) == [0, 30, 34]


# -- dead letters ----------------------------------------------------------------------------------


async def test_s_093_a_dead_letter_queue_of_any_name(wire: Wire) -> None:
    async with room(wire) as r:
        p, _ = await pair(r, enableDeadLetterQueue=True, deadLetterQueueName="my-dlq")
        d = await r.guest()
        await d.subscribe("my-dlq")
        await p.publish("q", "m1", payload={"a": 1}, headers={"own": "header"})
        await r.pass_time(43)
        told = (await d.expect("Deliver", "m1", queue="my-dlq", payload={"a": 1}, headers={
            "own": "header", "x-death-queue": "q", "x-death-reason": "MaxRetriesExceeded",
            "x-death-time": "*", "x-attempts": "3",
        }))["headers"]  # fmt: skip
        assert told["x-death-time"].endswith("Z")
        assert "my-dlq" in (await p.ask("ListQueues"))["payload"]
        await r.pass_time(600)
        assert await p.waiting("q.dlq") == 0


async def test_s_094_one_dead_letter_is_brought_back_as_it_was(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await pair(r, enableDeadLetterQueue=True)
        await p.publish("q", "m1", payload="x", headers={"own": "header"})
        await r.pass_time(43)
        a.unread.clear()
        await bring_back(r)
        await a.expect("Deliver", "m1", queue="q", payload="x", headers={"own": "header"})
        assert await p.waiting("q.dlq") == 0
        await r.pass_time(41)
        assert moments(a)[3:] == [43, 73, 77]  # its attempts begin anew
        a.ack("m1")
        assert r.stored == 0


@pytest.mark.parametrize("back", [True, False], ids=["brought back", "purged"])
async def test_s_095_all_dead_letters_are_brought_back_or_purged(wire: Wire, back: bool) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p, a = await pair(r, enableDeadLetterQueue=True)
        await p.publish("q", "m1", "m2", "m3")
        await r.pass_time(43)
        assert await p.waiting("q.dlq") == 3
        a.send("Disconnect")
        if back:
            await bring_back(r)
        else:
            assert (await p.ask("DeleteQueue", queue="q.dlq"))["type"] == "DeleteQueue"
        assert (await p.waiting("q"), await p.waiting("q.dlq")) == (3 * back, 0)
    assert len(store.rows) == 3 * back


async def test_s_096_a_message_without_payload_can_be_a_dead_letter(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p, _ = await pair(r, enableDeadLetterQueue=True)
        said = await p.ask("Publish", "m1", queue="q")
        assert said["type"] == "PublishAck"
        await r.pass_time(43)
    async with room(wire, store) as r:
        d = await r.guest()
        await d.subscribe("q.dlq")
        told = await d._wait_for(lambda _: True)
        assert (told["type"], told["id"], "payload" in told) == ("Deliver", "m1", False)


async def test_without_dead_letters_what_ends_badly_is_dropped_and_counted(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await pair(r)
        await p.publish("q", "m1")
        await r.pass_time(600)
        assert moments(a) == [0, 30, 34]
        assert (r.stored, r.counters.dropped, r.counters.dead_lettered) == (0, 1, 0)


async def test_what_breaks_ten_connections_is_a_dead_letter(wire: Wire) -> None:
    async with room(wire) as r:
        p = await r.guest()
        await p.create("q", enableDeadLetterQueue=True)
        await p.publish("q", "poison", "fine")
        for _ in range(10):
            a = await r.guest()
            await a.subscribe("q")
            assert await a.delivered() == ["poison", "fine"]
            await a.break_off()
        assert (await why(r))["x-death-reason"] == "WorkerLost"
