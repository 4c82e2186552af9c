"""Fifty callers over a network that fails in every way: no call hangs, none is done twice.

TANDEMQ_CHAOS_SECONDS says for how long; `make chaos` takes three minutes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from tests.chaos.weather import Weather
from tests.support.proxy import Proxy
from tests.support.server import Server, figure
from tests.support.wire import Wire

from tandemq import AsyncClient
from tandemq.client.errors import ConnectionLost, NotSent, TandemqError, Timeout

CALLERS = 50
TIMEOUT = 1.0  # s, for the wait for a link and again for the answer
GRACE = 1.0  # s, for a machine that is busy with other things
RECOVERY = 2.0  # s

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Ledger:
    """What each call came to."""

    def __init__(self) -> None:
        self.added: set[str] = set()  # answered: the server has it
        self.unsure: set[str] = set()  # written, but never answered
        self.unsent: set[str] = set()  # said to be unknown to the server
        self.slowest = 0.0
        self.outcomes: Counter[str] = Counter()

    async def add(self, client: AsyncClient, queue: str, id: str) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            # Not by Queue.add: a batch would hide what became of a single call.
            await client.call("PUSH", queue=queue, data={"caller": id})
        except NotSent:
            self.unsent.add(id)
            self.outcomes["not sent"] += 1
        except (ConnectionLost, Timeout) as error:
            self.unsure.add(id)
            self.outcomes[type(error).__name__] += 1
        else:
            self.added.add(id)
            self.outcomes["added"] += 1
        self.slowest = max(self.slowest, loop.time() - began)


async def call_on_and_on(client: AsyncClient, queue: str, ledger: Ledger, caller: int) -> None:
    number = 0
    while True:
        number += 1
        await ledger.add(client, queue, f"{caller}-{number}")
        await asyncio.sleep(0.005)


async def recovered(client: AsyncClient) -> float:
    """Seconds until every caller has an answer again."""
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def until_answered() -> None:
        while True:
            try:
                await client.call("Ping", patience=0.5)
            except TandemqError:
                await asyncio.sleep(0.01)
            else:
                return

    await asyncio.gather(*(until_answered() for _ in range(CALLERS)))
    return loop.time() - began


async def storm(port: int, proxy: Proxy, queue: str, seconds: float) -> tuple[Ledger, Weather]:
    ledger, weather = Ledger(), Weather(proxy, seed=7)
    async with AsyncClient(
        f"tandemq://127.0.0.1:{port}",
        command_timeout=TIMEOUT,
        connect_timeout=TIMEOUT,
        ping_interval=0.5,
        max_reconnect_delay=1.0,
    ) as client:
        calling = [
            asyncio.create_task(call_on_and_on(client, queue, ledger, n)) for n in range(CALLERS)
        ]
        await weather.blow(seconds)
        took = await recovered(client)
        assert took <= RECOVERY, f"{took:.1f} s after the network was well again"
        for task in calling:
            task.cancel()
        await asyncio.gather(*calling, return_exceptions=True)
    return ledger, weather


def test_callers_survive_every_trouble(
    server: Server, queue: str, wire: Wire, remark: Callable[[str], None]
) -> None:
    seconds = figure("TANDEMQ_CHAOS_SECONDS", short=20, long=90)
    with Proxy(server.port) as proxy:
        ledger, weather = asyncio.run(storm(proxy.port, proxy, queue, seconds))
    remark(f"{seconds} s of {dict(weather.seen)}: {dict(ledger.outcomes)}")
    assert len(weather.seen) == 6, weather.seen
    assert ledger.slowest <= 2 * TIMEOUT + GRACE
    kept = Counter(job["data"]["caller"] for job in wire.jobs(queue))
    assert max(kept.values()) == 1, "nothing is sent twice"
    assert ledger.added <= kept.keys(), "what was answered is there"
    assert not ledger.unsent & kept.keys(), "what was not sent is not there"
    in_flight = set(kept) - ledger.added - ledger.unsure
    assert len(in_flight) <= CALLERS, "the last call of each caller was cancelled"
