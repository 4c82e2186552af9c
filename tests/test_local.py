"""``tandemq.open``: the engine inside a program, reached through pipes."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import tandemq
from tandemq import AsyncClient, Client, Context, Worker
from tandemq.client.errors import Closed, ConnectFailed, Misused
from tandemq.config import BadSetting
from tandemq.local import Local
from tandemq.stores.base import StoreUnusable


async def test_jobs_are_added_and_run_without_a_socket() -> None:
    async def handle(job: Context) -> Any:
        return job.data

    local = tandemq.open("memory://")
    async with local as client, Worker("q", handle, url=local.target):
        jobs = [await client.queue("q").add("x", n) for n in range(50)]
        assert [await job.result(5) for job in jobs] == list(range(50))
    with pytest.raises(Closed):
        await client.queue("q").add("x")


def test_a_program_without_asyncio_uses_it_too(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/jobs.db"
    with tandemq.open(url) as client:
        id = client.queue("q").add("x", {"a": 1}).id
    with tandemq.open(url, durability="sync") as client:
        found = client.queue("q").get(id)
        assert found is not None
        assert found.data == {"a": 1}


async def test_a_file_keeps_what_was_added(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/jobs.db"
    async with tandemq.open(url) as client:
        await client.queue("q").add("x", id="one")
        with pytest.raises(StoreUnusable):
            await tandemq.open(url).start()
    async with tandemq.open(url) as client:
        assert (await client.queue("q").counts())["waiting"] == 1


async def test_what_was_leased_when_it_was_closed_is_given_back(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/jobs.db"
    async with tandemq.open(url) as client:
        await client.queue("q").add("x", id="one")
        assert (await client.call("PULL", queue="q", owner="w"))["job"]["id"] == "one"
    async with tandemq.open(url) as client:
        job = await client.queue("q").get("one")
        assert job is not None
        assert (await job.state(), job.attempts) == ("waiting", 0)


async def test_other_threads_with_loops_of_their_own_reach_it() -> None:
    local = tandemq.open("memory://")
    found: list[Any] = []

    def from_a_thread() -> None:
        with Client(local.target) as client:
            queue = client.queue("q")
            queue.add_many([("x", "y" * 10_000) for _ in range(300)])
            found.append(queue.count())

    async with local as client:
        threads = [threading.Thread(target=from_a_thread) for _ in range(3)]
        for thread in threads:
            thread.start()
        await asyncio.gather(*(asyncio.to_thread(thread.join) for thread in threads))
        jobs = await client.queue("q").jobs("waiting", limit=1_000)
        assert len(jobs) == 900
        assert all(job.data == "y" * 10_000 for job in jobs)
    assert max(found) == 900


async def test_large_answers_pass_with_pauses() -> None:
    async with tandemq.open("memory://") as client:
        queue = client.queue("q")
        await queue.add_many([("x", "z" * 100_000) for _ in range(60)], part=5)
        read = await asyncio.gather(*(queue.jobs(limit=20, start=n) for n in (0, 20, 40)))
        assert sum(len(job.data) for jobs in read for job in jobs) == 6_000_000


async def test_it_is_used_while_it_is_open() -> None:
    local = tandemq.open("memory://")
    async with AsyncClient(local.target, reconnect=False) as client:
        with pytest.raises(ConnectFailed, match="is not open"):
            await client.connect()
    async with local:
        with pytest.raises(Misused, match="open already"):
            await local.start()
        with pytest.raises(Misused, match="thread of its own"):
            local.call(asyncio.sleep(0))


@pytest.mark.parametrize(
    "url", ["", "memory", "memory://x", "file:", "file://", "redis://x", "x.db", 5, None]
)
def test_a_url_that_opens_nothing_says_what_does(url: Any) -> None:
    with pytest.raises(BadSetting, match=r"memory://, or file:jobs.db"):
        tandemq.open(url)


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError):
        tandemq.open(colour=1)
    assert isinstance(tandemq.open(), Local)
