"""Section 2 of the scenarios: a message from a publisher to a subscriber."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.broker.room import room
from tests.support.vibe import BOTH, encoded

from tandemq.wires.sniff import Wire

IDS = [f"m{n}" for n in range(10)]
PAYLOADS: list[Any] = [
    {"name": "hello", "value": 42},
    "",
    "text",
    0,
    -1.5,
    1e300,
    12345678901234567890,
    True,
    False,
    [],
    {},
    [None, {"": None}],
    "é☃\U0001f600\n\0",
]


async def test_s_020_one_publisher_and_one_subscriber(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await a.subscribe("test-queue")
        payload = {"name": "hello", "value": 42}
        b.send("Publish", "m1", queue="test-queue", payload=payload)
        await b.expect("PublishAck", "m1", queue="test-queue")
        await a.expect("Deliver", "m1", queue="test-queue", payload=payload)
        assert r.in_flight == 1
        a.ack("m1")
        await a.silence()
        assert (r.in_flight, r.stored) == (0, 0)
        c = r.counters
        assert (c.published, c.delivered, c.acknowledged) == (1, 1, 1)


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda value: json.dumps(value)[:20])
async def test_any_payload_arrives_as_it_was_on_either_wire(wire: Wire, payload: Any) -> None:
    async with room(wire) as r:
        publisher = await r.guest()
        readers = [await r.guest(each) for each in BOTH]
        for n, reader in enumerate(readers):
            await reader.subscribe(f"q{n}")
            await publisher.publish(f"q{n}", "m", payload=payload)
            await reader.expect("Deliver", "m", queue=f"q{n}", payload=payload)


async def test_s_022_a_message_without_payload(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await a.subscribe("q")
        b.send("Publish", "m3", queue="q")
        await b.expect("PublishAck", "m3", queue="q")
        await a.expect("Deliver", "m3", queue="q")


@pytest.mark.parametrize("reader", BOTH, ids=lambda wire: wire.value)
async def test_s_024_a_payload_of_null(wire: Wire, reader: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.guest(reader), await r.guest()
        await a.subscribe("q")
        b.send("Publish", "m4", queue="q", payload=None)
        await b.expect("PublishAck", "m4", queue="q")
        # On the JSON wire null and nothing are one; the binary wire keeps them apart.
        kept = {"payload": None} if wire is reader is Wire.BINARY else {}
        await a.expect("Deliver", "m4", queue="q", **kept)


async def test_headers_and_priority_arrive_as_they_were(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await a.subscribe("q")
        headers = {"correlationId": "x", "priority": "High", "é": "☃"}
        await b.publish("q", "m", headers=headers)
        await a.expect("Deliver", "m", queue="q", payload=1, headers=headers)


async def test_s_026_a_queue_has_to_be_named(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        for kind, word in (("Subscribe", "subscribe"), ("Unsubscribe", "unsubscribe")):
            refused = await a.refused(kind, "s2")
            assert refused == ("INVALID_QUEUE", f"Queue name is required for {word}.")


async def test_s_027_after_unsubscribe_nothing_arrives(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await a.subscribe("q")
        a.send("Unsubscribe", "u1", queue="q")
        await a.expect("UnsubscribeAck", "u1", queue="q")
        await b.publish("q", "m6")
        await r.pass_time(1)
        await a.silence()
        assert await b.waiting("q") == 1


async def test_s_028_unsubscribe_from_what_was_never_subscribed(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        a.send("Unsubscribe", "u9", queue="never")
        await a.expect("UnsubscribeAck", "u9", queue="never")
        assert "never" not in r.engine.queues


async def test_s_029_a_publish_makes_the_queue_with_the_defaults(wire: Wire) -> None:
    async with room(wire, default_mode="FanOutWithAck", default_queue_size=77) as r:
        a = await r.guest()
        await a.publish("fresh", "m")
        assert (await a.ask("ListQueues"))["payload"] == ["fresh"]
        info = await a.info("fresh")
        assert info is not None
        assert (info["deliveryMode"], info["maxSize"]) == (1, 77)


async def test_s_031_and_157_without_automatic_queues_what_is_missing_is_told(wire: Wire) -> None:
    async with room(wire, auto_create=False) as r:
        a = await r.guest()
        refused = ("QUEUE_NOT_FOUND", "Queue 'nope' not found.")
        assert await a.refused("Subscribe", "s3", queue="nope") == refused
        assert await a.refused("Publish", "m", queue="nope", payload=1) == refused
        assert not r.engine.queues
        await a.create("nope")
        await a.subscribe("nope")
        await a.publish("nope", "m")


async def test_s_033_ten_messages_arrive_in_order(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await a.subscribe("q")
        await b.publish("q", *IDS)
        assert await a.delivered() == IDS


async def test_s_034_subscribing_twice_delivers_once(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await a.subscribe("q", "q")
        await b.publish("q", "m1", "m2")
        assert await a.delivered() == ["m1", "m2"]


async def test_s_035_two_messages_of_one_id_are_two_deliveries(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await a.subscribe("q")
        for payload in ("first", "second"):
            await b.publish("q", "m", payload=payload)
            await a.expect("Deliver", "m", queue="q", payload=payload)
        assert r.stored == 2
        a.ack("m")  # the first one
        await r.pass_time(30)
        await a.expect("Deliver", "m", queue="q", payload="second")
        a.ack("m")
        await r.pass_time(600)
        await a.silence()
        assert r.stored == 0


async def test_s_036_a_backlog_is_delivered_to_who_comes(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await b.publish("q", *IDS[:5])
        a.send("Subscribe", "s", queue="q")
        await a.expect("SubscribeAck", "s", queue="q")
        assert await a.delivered() == IDS[:5]


async def test_s_037_what_waits_and_what_is_new_both_arrive(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await b.publish("q", "m1")
        await a.subscribe("q")
        await b.publish("q", "m2")
        assert await a.delivered() == ["m1", "m2"]


async def test_many_frames_of_one_write_are_done_in_their_order(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        frames = [encoded(wire, "Publish", id, queue="q", payload=id) for id in IDS]
        b.send_raw(b"".join([*frames, encoded(wire, "Ping", "last")]))
        for id in IDS:
            assert (await b.answer(id))["type"] == "PublishAck"
        await a.subscribe("q")
        assert await a.delivered() == IDS
