"""Leases of handlers that block the loop, with a real server, which notices when they end."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.support.server import Server

from tandemq import AsyncClient, Context, Worker


@pytest.mark.slow
async def test_a_handler_that_blocks_the_loop_keeps_its_lease(
    server: Server, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    runs: list[int] = []

    async def rude(job: Context) -> str:
        runs.append(job.attempt)
        time.sleep(2.5)
        return "done"

    url = f"tandemq://127.0.0.1:{server.port}"
    async with AsyncClient(url) as client:
        job = await client.queue(queue).add("rude")
        async with Worker(queue, rude, url=url, lease=1.0) as worker:
            assert await job.result(20) == "done"
            async with asyncio.timeout(5):
                while not worker.figures.completed:
                    await asyncio.sleep(0.01)
        assert (await job.refresh()).attempts == 0
    assert runs == [1]
    assert "has blocked the event loop" in caplog.text
    assert "could not be renewed" not in caplog.text
