"""Fifty workers on a bad network: nothing is lost, nothing ends twice, and all come back."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.support.proxy import Proxy
from tests.support.server import Server, figure

from tandemq import AsyncClient, Context, Worker
from tandemq.client.errors import LinkError, Timeout

WORKERS = 50
TIMEOUT = 1.0  # s of a call
SLACK = 2.0  # s that a busy machine may be late
RECOVERY = 2.0  # s after the network is back
BAD, GOOD = 0.7, 0.5  # s of each kind of weather
OPTIONS: dict[str, Any] = {
    "command_timeout": TIMEOUT,
    "connect_timeout": TIMEOUT,
    "ping_interval": 0.3,
    "max_ping_failures": 2,
    "max_reconnect_delay": 0.5,
}
ENDLESS = {"attempts": 1000, "max_stalls": 1000, "max_interruptions": 1000}

WEATHER: list[Callable[[Proxy], None]] = [
    Proxy.cut,
    Proxy.half_close,
    Proxy.swallow,
    Proxy.refuse,
    lambda proxy: proxy.delay(0.05),
    lambda proxy: proxy.drip(64),
    lambda proxy: (proxy.refuse(), proxy.cut()),  # type: ignore[func-returns-value]
]


class Producer:
    """Adds jobs, over a good network, so that it is known how many there are."""

    def __init__(self, client: AsyncClient) -> None:
        self._queue = client.queue("chaos")
        self.added: list[str] = []
        self.enough = False

    async def run(self) -> None:
        while not self.enough:
            await self.add(f"job-{len(self.added)}")
            await asyncio.sleep(0.002)

    async def add(self, id: str) -> None:
        await self._queue.add("work", id, id=id, **ENDLESS)  # type: ignore[arg-type]
        self.added.append(id)


async def ask_again_and_again(client: AsyncClient, took: list[float]) -> None:
    """Ask something over the bad network, and note how long each answer or error took."""
    while True:
        began = time.monotonic()
        with suppress(LinkError, Timeout):
            await client.queue("chaos").count()
        took.append(time.monotonic() - began)
        await asyncio.sleep(0.01)


async def eventually(what: Callable[[], bool], within: float) -> bool:
    end = time.monotonic() + within
    while not what() and time.monotonic() < end:
        await asyncio.sleep(0.01)
    return what()


@pytest.mark.slow
async def test_fifty_workers_survive_a_bad_network(
    own_server: Server, remark: Callable[[str], None]
) -> None:
    ran: Counter[str] = Counter()

    async def handle(job: Context) -> str:
        ran[job.data] += 1
        await asyncio.sleep(0.01 * random.random())
        return job.data

    with Proxy(own_server.port) as proxy:
        url = f"tandemq://127.0.0.1:{proxy.port}"
        workers = [
            Worker("chaos", handle, url=url, lease=2.0, heartbeat=0.3, drain_timeout=10, **OPTIONS)
            for _ in range(WORKERS)
        ]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        took: list[float] = []
        direct = AsyncClient(f"tandemq://127.0.0.1:{own_server.port}")
        async with direct, AsyncClient(url, **OPTIONS) as asking:
            producer = Producer(direct)
            producing = asyncio.create_task(producer.run())
            polling = asyncio.create_task(ask_again_and_again(asking, took))
            slowest = await _storm(proxy, ran, producer)
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
            producer.enough = True
            await producing
            added = set(producer.added)
            assert await eventually(lambda: ran.keys() >= added, 20), "jobs are lost"
            await asyncio.gather(*(worker.close() for worker in workers))
            await asyncio.gather(*running)
            counts = await direct.queue("chaos").counts()
            total = (await direct.call("Stats"))["stats"]["completed"]
    assert counts["completed"] == len(added), counts
    assert total == len(added), "a job was acknowledged twice"
    assert max(took) < 2 * TIMEOUT + SLACK, "a call hung"
    remark(
        f"chaos: {len(added)} jobs, {sum(ran.values()) - len(ran)} ran again,"
        f" slowest recovery {slowest:.2f} s, longest call {max(took):.2f} s"
    )


async def _storm(proxy: Proxy, ran: Counter[str], producer: Producer) -> float:
    """Let it storm, and return the longest time until work went on afterwards, in s."""
    slowest = 0.0
    end = time.monotonic() + figure("TANDEMQ_CHAOS_SECONDS", short=15, long=180)
    while time.monotonic() < end:
        random.choice(WEATHER)(proxy)
        await asyncio.sleep(BAD)
        proxy.heal()
        began, known = time.monotonic(), sum(ran.values())
        await producer.add(f"after-{began}")
        assert await eventually(lambda known=known: sum(ran.values()) > known, RECOVERY + SLACK)  # type: ignore[misc]
        slowest = max(slowest, time.monotonic() - began)
        await asyncio.sleep(GOOD)
    assert slowest < RECOVERY + SLACK
    return slowest
