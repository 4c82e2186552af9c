"""Waiting for the ends of jobs, however they end and however many wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.support.peer import Fields, Peer, welcome
from tests.support.server import Server
from tests.support.wire import Wire

from tandemq import AsyncClient
from tandemq.client.errors import Cancelled, JobFailed, NotFound, Timeout


@pytest.fixture
async def client(server: Server) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(f"tandemq://127.0.0.1:{server.port}") as running:
        yield running


async def test_a_failure_is_raised_with_what_the_worker_said(
    client: AsyncClient, queue: str, wire: Wire
) -> None:
    job = await client.queue(queue).add("a")
    waiting = asyncio.create_task(job.result(timeout=20))
    held = wire.pull(queue)
    stack = ["Traceback", "line 7"]
    wire.do("FAIL", id=job.id, token=held["token"], error="no", stack=stack, unrecoverable=True)
    with pytest.raises(JobFailed, match=r"failed: no") as caught:
        await waiting
    assert (caught.value.id, caught.value.error) == (job.id, "no")
    assert caught.value.stack == tuple(stack)
    assert "line 7" in caught.value.__notes__[0]
    with pytest.raises(JobFailed):
        await job.result(timeout=5)


async def test_a_job_that_is_taken_away_releases_who_waits(client: AsyncClient, queue: str) -> None:
    job = await client.queue(queue).add("a")
    waiting = asyncio.create_task(job.result(timeout=20))
    await asyncio.sleep(0.05)
    await job.cancel()
    with pytest.raises(Cancelled):
        await waiting
    with pytest.raises(NotFound):
        await job.result(timeout=5)


async def test_time_runs_out_and_the_job_goes_on(client: AsyncClient, queue: str) -> None:
    job = await client.queue(queue).add("a")
    with pytest.raises(Timeout, match="it goes on"):
        await job.result(timeout=0.05)
    assert await job.state() == "waiting"


async def test_hundreds_wait_and_the_pool_still_works(
    client: AsyncClient, queue: str, wire: Wire
) -> None:
    """P80: many that have ended, and some that end while others never will."""
    q = client.queue(queue)
    jobs = [q.job(id) for id in await q.add_many([("a", n) for n in range(400)])]
    held = wire.do("PULLB", queue=queue, count=300, owner="w")
    ids, tokens = [job["id"] for job in held["jobs"]], held["tokens"]
    wire.do("ACKB", ids=ids[:200], tokens=tokens[:200], results=[{"n": n} for n in range(200)])
    waiting = [asyncio.create_task(job.result(timeout=30)) for job in jobs]
    assert [(await each)["n"] for each in waiting[:200]] == list(range(200))
    assert await asyncio.wait_for(q.count(), 5) == 100
    wire.do("ACKB", ids=ids[200:], tokens=tokens[200:], results=[{"n": n} for n in range(200, 300)])
    assert [(await each)["n"] for each in waiting[200:300]] == list(range(200, 300))
    for each in waiting[300:]:
        each.cancel()


async def test_a_server_that_tells_of_completed_jobs_only_is_asked_for_the_others() -> None:
    asked = 0

    def plain(fields: Fields) -> Fields | None:
        nonlocal asked
        if fields["cmd"] == "WaitJob":
            asked += 1
            return {"ok": True, "completed": False}
        if fields["cmd"] == "GetState":
            return {"ok": True, "state": "failed" if asked > 2 else "active"}
        if fields["cmd"] == "GetJob":
            return {"ok": True, "job": {"id": "j", "queue": "q", "stacktrace": ["x"]}}
        return welcome(fields)

    async with Peer(plain) as peer, AsyncClient(peer.url) as client:
        with pytest.raises(JobFailed, match="keeps no cause"):
            await client.queue("q").job("j").result(timeout=10)
    assert asked == 3
