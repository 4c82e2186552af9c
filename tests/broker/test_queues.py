"""Section 11 of the scenarios: queues are made, shown, listed and removed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.broker.room import room
from tests.server.offline import GatedStore
from tests.support.vibe import ANY, BOTH, encoded, fits

from tandemq.wires.sniff import Wire

OPTIONS = {
    "mode": 1, "maxQueueSize": 5000, "messageTtl": "00:30:00", "enableDeadLetterQueue": True,
    "deadLetterQueueName": "my-dlq", "overflowStrategy": 1, "maxRetryAttempts": 5,
}  # fmt: skip
SHOWN = {
    "name": "jobs", "messageCount": 0, "subscriberCount": 0, "deliveryMode": 1, "maxSize": 5000,
    "createdAt": "*", "messageTtl": "00:30:00", "enableDeadLetterQueue": True,
    "deadLetterQueueName": "my-dlq", "overflowStrategy": 1, "maxRetryAttempts": 5,
}  # fmt: skip
WRONG: list[Any] = [None, True, False, -1, 1.5, 9, 10**30, "soon", "", [], {}, [1], {"a": 1}]


async def test_s_130_options_are_shown_as_they_were_given(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        a.send("CreateQueue", "q1", queue="jobs", payload=OPTIONS)
        await a.expect("CreateQueue", "q1", queue="jobs")
        a.send("QueueInfo", "q2", queue="jobs")
        await a.expect("QueueInfo", "q2", queue="jobs", payload=SHOWN)


async def test_s_131_without_options_the_servers_defaults_hold(wire: Wire) -> None:
    async with room(wire, default_mode="PriorityBased", default_queue_size=12) as r:
        a = await r.guest()
        a.send("CreateQueue", "q3", queue="plain")
        await a.expect("CreateQueue", "q3", queue="plain")
        info = await a.info("plain")
        assert info is not None
        assert (info["deliveryMode"], info["maxSize"], info["maxRetryAttempts"]) == (3, 12, 3)


async def test_s_132_a_queue_that_exists_stays_as_it_is(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        await a.create("jobs", **OPTIONS)
        first = await a.info("jobs")
        await r.pass_time(5)
        await a.create("jobs", mode=0)
        assert await a.info("jobs") == first


async def test_s_133_a_queue_that_is_missing_is_shown_as_nothing(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        a.send("QueueInfo", "q4", queue="missing")
        await a.expect("QueueInfo", "q4", queue="missing")
        assert not r.engine.queues


async def test_s_135_a_deleted_queue_is_gone_with_what_is_in_it(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        a, b = await r.many(2)
        await b.subscribe("jobs")
        await a.create("jobs")
        await a.publish("jobs", "held")
        await b.break_off()
        await a.publish("jobs", "m1", "m2")
        for _ in range(2):
            a.send("DeleteQueue", "q6", queue="jobs")
            await a.expect("DeleteQueue", "q6", queue="jobs")
            assert await a.info("jobs") is None
        assert (await a.ask("ListQueues"))["payload"] == []
    assert not store.rows
    async with room(wire, store) as r:
        assert (await (await r.guest()).ask("ListQueues"))["payload"] == []


async def test_deleting_a_queue_takes_what_subscribers_hold(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await a.subscribe("q")
        await p.publish("q", "m1")
        assert (await p.ask("DeleteQueue", queue="q"))["type"] == "DeleteQueue"
        assert await a.delivered() == ["m1"]
        a.ack("m1")
        await r.pass_time(60)
        await a.silence()
        assert (r.stored, r.in_flight) == (0, 0)


async def test_s_136_who_is_subscribed_is_so_to_the_next_queue_of_that_name(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("jobs")
        await a.subscribe("jobs")
        await p.ask("DeleteQueue", queue="jobs")
        await p.create("jobs", mode=1)
        await p.publish("jobs", "m1")
        assert await a.delivered() == ["m1"]
        info = await p.info("jobs")
        assert info is not None
        assert (info["subscriberCount"], info["deliveryMode"]) == (1, 1)


@pytest.mark.parametrize("kind", ["CreateQueue", "DeleteQueue", "QueueInfo"])
async def test_s_137_a_queue_has_to_be_named(wire: Wire, kind: str) -> None:
    async with room(wire) as r:
        a = await r.guest()
        refused = await a.refused(kind, "q7")
        assert refused == ("INVALID_QUEUE", f"Queue name is required for {kind}.")


@pytest.mark.parametrize(
    ("name", "number"),
    [("RoundRobin", 0), ("FanOutWithAck", 1), ("FanOutWithoutAck", 2), ("PriorityBased", 3)],
)
async def test_s_138_a_mode_may_be_named(wire: Wire, name: str, number: int) -> None:
    async with room(wire) as r:
        a = await r.guest()
        await a.create("named", mode=name)
        info = await a.info("named")
        assert info is not None
        assert info["deliveryMode"] == number


@pytest.mark.parametrize(
    "payload",
    [
        {"mode": 9},
        {"maxQueueSize": -1},
        {"messageTtl": "soon"},
        {"messageTtl": "-00:00:01"},
        {"messageTtl": "00:00:00"},
        "text",
        5,
        [],
        True,
    ],
    ids=json.dumps,
)
async def test_s_139_nonsense_is_refused_and_makes_nothing(wire: Wire, payload: Any) -> None:
    async with room(wire) as r:
        a = await r.guest()
        code, _ = await a.refused("CreateQueue", "q9", queue="bad", payload=payload)
        assert code == "INVALID_PAYLOAD"
        assert a.alive
        assert not r.engine.queues


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("value", WRONG, ids=repr)
async def test_an_option_of_any_type_is_taken_or_refused(wire, option, value) -> None:
    async with room(wire) as r:
        a = await r.guest()
        said = await a.ask("CreateQueue", "q9", queue="odd", payload={option: value})
        refused = {"type": "Error", "id": "q9", "errorCode": "INVALID_PAYLOAD", "errorMessage": "*"}
        if fits(refused, said):
            assert not r.engine.queues
        else:
            assert said == {"type": "CreateQueue", "id": "q9", "queue": "odd"}
            assert await a.info("odd") is not None
        assert (await a.ask("Ping", "k"))["type"] == "Pong"


async def test_s_140_options_may_be_headers(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        headers = {"deliveryMode": "RoundRobin", "maxQueueSize": "10", "messageTtl": "3600000"}
        a.send("CreateQueue", "q10", queue="hdr", headers=headers)
        await a.expect("CreateQueue", "q10", queue="hdr")
        info = await a.info("hdr")
        assert info is not None
        shown = (info["deliveryMode"], info["maxSize"], info["messageTtl"])
        assert shown == (0, 10, "01:00:00")


async def test_s_141_what_is_in_flight_is_not_counted_as_waiting(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.publish("q", "m1")
        await a.subscribe("q")
        assert await a.delivered() == ["m1"]
        a.send("Unsubscribe", queue="other")
        a.connection.pause_writing()  # it takes no more
        await p.publish("q", "m2", "m3")
        info = await p.info("q")
        assert info is not None
        assert (info["messageCount"], info["subscriberCount"]) == (2, 1)


async def test_a_moment_is_shown_as_the_reference_shows_it(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        await a.create("q")
        info = await a.info("q")
        assert info is not None
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", info["createdAt"])


# -- names -----------------------------------------------------------------------------------------


LOOKALIKES = [
    "queue",
    "Queue",
    "QUEUE",
    "café",
    "cafe\u0301",
    "\uff51\uff55\uff45",
    "\ufb01le",
    "file",
    "\u017f",
    "s",
]


async def test_names_that_look_alike_are_different_queues(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        made = []
        for name in LOOKALIKES:
            said = await p.ask("Publish", "m", queue=name, payload=name)
            if said["type"] == "PublishAck":
                made.append(name)
        assert (await p.ask("ListQueues"))["payload"] == made
        assert len(made) == len(LOOKALIKES) - 1  # a combining accent is no letter
        for name in made:
            await a.subscribe(name)
            await a.expect("Deliver", "m", queue=name, payload=name)


@pytest.mark.parametrize(
    "name", ["a b", "a/b", "a:b", "a*", "a\n", "\0", "é\u0301", "\U0001f600", "x" * 257, "..\\x"]
)
@pytest.mark.parametrize("kind", ["Publish", "Subscribe", "Unsubscribe", "CreateQueue"])
async def test_a_name_that_breaks_the_rules_is_refused(wire: Wire, name: str, kind: str) -> None:
    async with room(wire) as r:
        a = await r.guest()
        code, text = await a.refused(kind, "n", queue=name)
        assert code == "INVALID_MESSAGE"
        assert text.startswith("Queue name")
        assert not r.engine.queues


@pytest.mark.parametrize("name", ["x" * 256, "-", "...", "é" * 256, "队列", "0"])
async def test_a_name_that_keeps_the_rules_is_taken(wire: Wire, name: str) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await a.subscribe(name)
        await p.publish(name, "m")
        assert await a.delivered() == ["m"]


async def test_ten_thousand_queues(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        for n in range(10_000):
            p.send_raw(encoded(wire, "Publish", "m", queue=f"q{n}", payload=n))
            if n % 1_000 == 999:
                await r.settle()
                p.read().clear()
        listed = (await p.ask("ListQueues"))["payload"]
        assert sorted(listed) == sorted(f"q{n}" for n in range(10_000))
        await a.subscribe("q0", "q9999")
        assert await a.delivered() == ["m", "m"]


async def test_both_wires_see_the_same_queues() -> None:
    async with room(Wire.JSON) as r:
        guests = [await r.guest(each) for each in BOTH]
        await guests[0].create("jobs", **OPTIONS)
        infos = [await guest.info("jobs") for guest in guests]
        assert infos[0] == infos[1]
        assert fits({**SHOWN, "createdAt": ANY}, infos[0])
