"""Publishers and subscribers over a network that fails in every way: nothing confirmed is lost.

TANDEMQ_CHAOS_SECONDS says for how long; `make chaos` takes three minutes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.chaos.weather import Weather
from tests.client.broker.places import BOTH, client, until
from tests.support.proxy import Proxy
from tests.support.server import Server, figure

from tandemq.broker import ReconnectPolicy
from tandemq.client.broker import Broker, Message
from tandemq.client.errors import ConnectionLost, NotSent, TandemqError, Timeout
from tandemq.wires.sniff import Wire

PUBLISHERS, SUBSCRIBERS = 10, 5
TIMEOUT = 0.7  # s, for the wait for a connection and again for the answer
GRACE = 1.0  # s, for a machine that is busy with other things
RECOVERY = 2.0  # s
SOON = ReconnectPolicy(initial_delay=0.05, max_delay=0.3, jitter=0.5)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Ledger:
    """What each publish came to, and what was delivered."""

    def __init__(self) -> None:
        self.confirmed: set[str] = set()
        self.unsent: set[str] = set()  # said to be unknown to the server
        self.delivered: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.slowest = 0.0

    async def publish(self, broker: Broker, queue: str, id: str) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcome = "confirmed"
        try:
            await broker.publish(queue, id, id=id)
            self.confirmed.add(id)
        except (NotSent, ConnectionLost, Timeout) as error:
            outcome = type(error).__name__
            if isinstance(error, NotSent):
                self.unsent.add(id)
        self.outcomes[outcome] += 1
        self.slowest = max(self.slowest, loop.time() - began)

    async def take(self, message: Message) -> None:
        self.delivered[message.id] += 1


async def joined(port: int, wire: Wire) -> Broker:
    options = {"command_timeout": TIMEOUT, "keep_alive_interval": 0.5, "reconnect_policy": SOON}
    return await client(port, wire, **options).connect(patience=20)


async def publish_on_and_on(broker: Broker, ledger: Ledger, queue: str, number: int) -> None:
    count = 0
    while True:
        count += 1
        await ledger.publish(broker, queue, f"{number}-{count}")
        await asyncio.sleep(0.01)


async def answered(broker: Broker) -> None:
    """Return when a client has an answer again."""
    while True:
        with suppress(TandemqError):
            await broker.list_queues()
            return
        await asyncio.sleep(0.01)


@BOTH
async def test_publishers_and_subscribers_survive_every_trouble(
    wire: Wire, server: Server, queue: str, remark: Callable[[str], None]
) -> None:
    seconds = figure("TANDEMQ_CHAOS_SECONDS", short=8, long=60)
    ledger, loop = Ledger(), asyncio.get_running_loop()
    with Proxy(server.port) as proxy:
        weather = Weather(proxy, seed=11)
        brokers = [await joined(proxy.port, wire) for _ in range(PUBLISHERS + SUBSCRIBERS)]
        for each in brokers[PUBLISHERS:]:
            await each.attach(ledger.take, queue, prefetch=20)
        publishing = [
            asyncio.create_task(publish_on_and_on(each, ledger, queue, n))
            for n, each in enumerate(brokers[:PUBLISHERS])
        ]
        await weather.blow(seconds)
        began = loop.time()
        await asyncio.gather(*map(answered, brokers))
        assert loop.time() - began <= RECOVERY + GRACE
        for task in publishing:
            task.cancel()
        await asyncio.gather(*publishing, return_exceptions=True)
        await until(lambda: ledger.confirmed <= ledger.delivered.keys(), "every message", 60)
        await asyncio.gather(*(each.disconnect() for each in brokers))
    remark(f"{wire.value}, {seconds} s of {dict(weather.seen)}: {dict(ledger.outcomes)}")
    assert len(weather.seen) == 6, weather.seen
    assert ledger.slowest <= 2 * TIMEOUT + GRACE
    assert not ledger.unsent & ledger.delivered.keys(), "what was not sent is not there"
