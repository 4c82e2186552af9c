"""Reports of lost and dead connections, with the client of the broker at the other end."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from typing import Any

import pytest
from tests.client.broker.places import BOTH, client, until
from tests.support.proxy import Proxy
from tests.support.server import Server, figure, is_own

from tandemq.broker import ReconnectPolicy
from tandemq.client.broker import Broker
from tandemq.client.errors import Timeout
from tandemq.wires.sniff import Wire

pytestmark = pytest.mark.skipif(not is_own(), reason="the reference does not speak these wires")

OFTEN = ReconnectPolicy(initial_delay=0.05, max_delay=0.5, jitter=1.0)


def test_many_clients_do_not_come_back_in_one_instant() -> None:
    policy, chance = ReconnectPolicy(jitter=1.0), random.Random(1)
    moments = [policy.get_delay(1) * (1 + policy.jitter * chance.random()) for _ in range(500)]
    buckets = Counter(int(moment * 10) for moment in moments)
    assert max(buckets.values()) <= 100, "a fifth of them within 100 ms"


async def test_many_clients_are_all_back_soon_after_a_restart(own_server: Server) -> None:
    count = figure("TANDEMQ_TEST_CLIENTS", short=100, long=1000)
    crowd = [
        client(own_server.port, reconnect_policy=OFTEN, command_timeout=2) for _ in range(count)
    ]
    for broker in crowd:
        await broker.connect()
    heard: list[Any] = []

    async def take(message: Any) -> None:
        heard.append(message.payload)

    await crowd[0].attach(take, "q")
    await asyncio.to_thread(own_server.kill)
    await until(lambda: not any(broker.is_connected for broker in crowd), "the loss")
    await asyncio.to_thread(own_server.start)
    begun = time.monotonic()
    await until(lambda: all(broker.is_connected for broker in crowd), "everybody", seconds=30)
    assert time.monotonic() - begun <= 30
    await crowd[-1].publish("q", "after")
    await until(lambda: heard == ["after"])
    await asyncio.gather(*(broker.disconnect() for broker in crowd))


async def test_a_client_that_was_there_before_its_server_connects_when_it_comes(
    own_server: Server,
) -> None:
    await asyncio.to_thread(own_server.kill)
    broker = client(own_server.port, reconnect_policy=OFTEN)
    coming = asyncio.create_task(broker.connect(patience=30))
    await asyncio.sleep(0.3)
    assert not coming.done()
    await asyncio.to_thread(own_server.start)
    await coming
    await broker.publish("q", 1)
    await broker.disconnect()


@BOTH
async def test_both_ends_of_a_dead_link_are_dropped_within_two_heartbeats(
    wire: Wire, new_server: Any
) -> None:
    server = new_server(environment={"TANDEMQ_IDLE_TIMEOUT": "0.6"}).start()
    with Proxy(server.port) as proxy:
        options = {"keep_alive_interval": 0.3, "reconnect_policy": ReconnectPolicy(max_attempts=0)}
        broker = await client(proxy.port, wire, **options).connect()
        async with client(server.port, wire, keep_alive_interval=0.3) as other:
            await broker.subscribe("q").__aenter__()
            info = await other.queue_info("q")
            assert info is not None
            assert info.subscriber_count == 1
            proxy.swallow()
            begun = time.monotonic()
            await until(lambda: not broker.is_connected, "our end")
            assert time.monotonic() - begun <= 0.6 + 2
            await _until_alone(other)
            await broker.disconnect()


async def _until_alone(other: Broker) -> None:
    end = asyncio.get_running_loop().time() + 20
    while (await other.queue_info("q")).subscriber_count:  # type: ignore[union-attr]
        assert asyncio.get_running_loop().time() < end, "the server keeps its end"
        await asyncio.sleep(0.05)


@BOTH
async def test_a_call_on_a_dead_link_ends_in_time(wire: Wire, server: Server, queue: str) -> None:
    with Proxy(server.port) as proxy:
        broker = await client(proxy.port, wire, command_timeout=0.3).connect()
        await broker.publish(queue, 1)
        proxy.swallow()
        begun = time.monotonic()
        with pytest.raises(Timeout, match=r"Publish: no answer .* within 0\.3 s"):
            await broker.publish(queue, 2)
        assert 0.25 <= time.monotonic() - begun <= 5
        await broker.disconnect()
