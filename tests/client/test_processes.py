"""Handlers in processes: fresh interpreters, which may die without harm."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.client import apart

import tandemq
from tandemq import AsyncClient, Worker
from tandemq.client import processes
from tandemq.client.errors import JobFailed
from tandemq.client.processes import PoolGaveUp
from tandemq.client.worker import Worker as AnyWorker

LONG = 30.0  # s: a process takes a while to start on a busy machine


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with tandemq.open("memory://") as opened:
        yield opened


@pytest.fixture
async def worker(client: AsyncClient) -> AsyncIterator[AnyWorker]:
    repertoire = apart.queue.repertoire
    async with Worker("apart", repertoire, url=client.pool.target, concurrency=2) as worker:
        yield worker


async def run(client: AsyncClient, name: str, **data: Any) -> Any:
    return await (await client.queue("apart").add(name, data, attempts=1)).result(LONG)


async def test_a_handler_runs_apart_with_its_dependencies(
    client: AsyncClient, worker: AnyWorker
) -> None:
    apart.seen.append(-1)  # a fork would have it too
    job = await client.queue("apart").add("where", {"n": 1})
    first = await job.result(LONG)
    assert first["pid"] != os.getpid()
    assert (first["mark"], first["seen"]) == ("made apart", [1])
    assert first["argv"].endswith("child.py"), "it was spawned"
    await job.refresh()
    assert [line["message"] for line in await job.logs()] == ["apart"]
    again = await run(client, "where", n=2)
    assert (again["pid"], again["seen"]) == (first["pid"], [1, 2])
    assert await run(client, "awaits", n=2) == 3


async def test_a_process_that_dies_fails_its_job_and_is_replaced(
    client: AsyncClient, worker: AnyWorker
) -> None:
    await run(client, "where", n=1)
    with pytest.raises(JobFailed, match="ended by signal 9"):
        await run(client, "ends", how="killed")
    with pytest.raises(JobFailed, match="ended with code 3"):
        await run(client, "ends", how="exits")
    assert (await run(client, "where", n=2))["n"] == 2


async def test_an_idle_process_that_was_killed_is_replaced(
    client: AsyncClient, worker: AnyWorker
) -> None:
    pid = (await run(client, "where", n=1))["pid"]
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(LONG):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.01)
    assert (await run(client, "where", n=2))["pid"] != pid


async def test_what_a_handler_raises_apart_decides_too(
    client: AsyncClient, worker: AnyWorker
) -> None:
    with pytest.raises(JobFailed, match="no way"):
        await run(client, "ends", how="fails")
    assert await run(client, "ends", how="skips") is None


async def test_a_signal_cancels_a_handler_which_may_clean_up(
    client: AsyncClient, worker: AnyWorker, tmp_path: Path
) -> None:
    await run(client, "where", n=0)  # the process is there
    note = tmp_path / "note"
    job = await client.queue("apart").add(
        "ends", {"how": "sleeps", "note": str(note)}, timeout=0.5, attempts=1
    )
    with pytest.raises(JobFailed, match=r"not done within|timeout exceeded"):
        await job.result(LONG)
    async with asyncio.timeout(LONG):
        while not note.exists():
            await asyncio.sleep(0.01)
    assert (await run(client, "where", n=1))["n"] == 1


async def test_a_function_by_itself_is_found_by_its_path(client: AsyncClient) -> None:
    job = await client.queue("plain").add("hello")
    async with Worker("plain", apart.plain, url=client.pool.target, pool="process"):
        assert await job.result(LONG) == "hello of plain"


async def test_processes_that_never_come_up_end_the_worker(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes.sys, "executable", "/bin/false")
    job = await client.queue("apart").add("where", {"n": 1}, attempts=1)
    worker = Worker("apart", apart.queue.repertoire, url=client.pool.target, heartbeat=0.02)
    with pytest.raises(PoolGaveUp, match="3 processes in a row"):
        await asyncio.wait_for(worker.run(), LONG)
    assert await job.state() in ("failed", "waiting")
