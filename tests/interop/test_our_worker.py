"""Our worker and our tasks against the reference server."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from tests.interop import test_our_client
from tests.support.server import Server

from tandemq import Queue, Retry

pytestmark = test_our_client.pytestmark
reference = test_our_client.reference

JOBS = 500


async def test_tasks_run_there_too(reference: Server, queue: str) -> None:
    tasks: Any = Queue(queue, f"tandemq://127.0.0.1:{reference.port}")
    ran: Counter[int] = Counter()

    @tasks.task
    async def count(n: int) -> None:
        ran[n] += 1

    @tasks.task
    def shout(text: str) -> str:
        return text.upper()

    @tasks.task(retry=Retry(3, delay="50ms"))
    async def flaky() -> int:
        ran[-1] += 1
        if ran[-1] < 2:
            raise ValueError("not yet")
        return ran[-1]

    @tasks.cron("0 9 * * *", tz="Europe/Rome")
    def report() -> None: ...

    async with tasks.worker(heartbeat=0.2) as worker:
        assert await (await shout.enqueue("hello")).result(20) == "HELLO"
        assert await (await flaky.enqueue()).result(20) == 2
        await asyncio.gather(*(count.enqueue(n) for n in range(JOBS)))
        async with asyncio.timeout(30):
            while worker.figures.completed < JOBS + 2:
                await asyncio.sleep(0.02)
    assert all(ran[n] == 1 for n in range(JOBS))
    counts = await tasks.counts()
    assert (counts["completed"], counts["active"], counts["waiting"]) == (JOBS + 2, 0, 0)
    assert [cron["jobName"] for cron in await tasks.schedules.list()] == ["report"]
    await tasks.close()
