"""Reports about clients that lost their connection, or came too early."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from tests.support.proxy import Proxy
from tests.support.server import Server, figure, free_ports
from tests.support.wire import Wire

from tandemq import AsyncClient
from tandemq.client.errors import TandemqError, Timeout


def url(port: int) -> str:
    return f"tandemq://127.0.0.1:{port}"


async def answered(client: AsyncClient) -> None:
    """Ask until there is an answer."""
    while True:
        try:
            await client.call("Ping", patience=1.0)
        except TandemqError:
            await asyncio.sleep(0.01)
        else:
            return


def test_many_clients_are_all_back_soon_after_a_restart(own_server: Server) -> None:
    """P38: their attempts must not keep the server too busy to accept any."""
    size = figure("TANDEMQ_CHAOS_CLIENTS", short=200, long=1_000)

    async def come_back() -> float:
        clients = [AsyncClient(url(own_server.port), connect_timeout=2.0) for _ in range(size)]
        await asyncio.gather(*(answered(client) for client in clients))
        await asyncio.to_thread(own_server.kill)
        await asyncio.sleep(0.5)
        began = time.monotonic()
        await asyncio.gather(
            asyncio.to_thread(own_server.start), *(answered(client) for client in clients)
        )
        took = time.monotonic() - began
        await asyncio.gather(*(client.close() for client in clients))
        return took

    assert asyncio.run(come_back()) < 30


async def test_a_client_that_was_there_before_its_server_connects_when_it_comes(
    new_server: Callable[..., Server],
) -> None:
    """P40: the first attempt is repeated like every other."""
    server = new_server()
    server.port, server.http_port = free_ports(2)
    async with AsyncClient(url(server.port)) as client:
        waiting = asyncio.create_task(client.ping())
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await asyncio.to_thread(server.start)
        assert await waiting > 0


async def test_a_dead_link_is_dropped_within_two_signs_of_life(server: Server) -> None:
    """P67: a ping that is written into a dead path proves nothing, only its answer does."""
    with Proxy(server.port) as proxy:
        async with AsyncClient(url(proxy.port), ping_interval=0.3, max_ping_failures=1) as client:
            await client.connect()
            proxy.swallow()
            began = time.monotonic()
            while client.pool.stats()[0]["state"] == "connected":
                await asyncio.sleep(0.01)
            assert time.monotonic() - began < 0.6 + 1.0
            await asyncio.to_thread(proxy.heal)
            await asyncio.wait_for(answered(client), 5.0)


async def test_a_long_poll_on_a_dead_link_ends_in_time(server: Server, queue: str) -> None:
    """P68: its own time, and a grace."""
    with Proxy(server.port) as proxy:
        async with AsyncClient(url(proxy.port), command_timeout=0.3) as client:
            await client.connect()
            proxy.swallow()
            began = time.monotonic()
            with pytest.raises(Timeout, match="PULL"):
                await client.call("PULL", queue=queue, timeout=500)
            assert 0.79 <= time.monotonic() - began < 3.0


async def test_a_link_that_is_cut_again_and_again_serves_the_next_call(
    server: Server, queue: str, wire: Wire
) -> None:
    """P17, for callers: five losses within three seconds, and the next job is there at once."""
    with Proxy(server.port) as proxy:
        async with AsyncClient(url(proxy.port)) as client:
            await client.connect()
            for _ in range(5):
                await asyncio.sleep(0.4)
                await asyncio.to_thread(proxy.cut)
            await asyncio.wait_for(answered(client), 5.0)
            await client.queue(queue).add("a")
    assert wire.counts(queue) == {"waiting": 1}


async def test_half_a_connection_is_none(server: Server) -> None:
    """The way back closes, the way there stays open: the client connects anew."""
    with Proxy(server.port) as proxy:
        async with AsyncClient(url(proxy.port)) as client:
            await client.connect()
            await asyncio.to_thread(proxy.half_close)
            await asyncio.wait_for(answered(client), 5.0)
            assert proxy.accepted >= 2
