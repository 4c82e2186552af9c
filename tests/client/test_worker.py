"""A worker and its handlers, against the engine in this process."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

import tandemq
from tandemq import AsyncClient, Context, Fail, RateLimited, Retry, Skip, Worker
from tandemq.client.errors import BadOption, Closed, JobFailed, Misused
from tandemq.client.url import Target

SOON = 5.0  # s


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with tandemq.open("memory://") as opened:
        yield opened


@pytest.fixture
def target(client: AsyncClient) -> Target:
    return client.pool.target


async def until(what: Callable[[], Any]) -> None:
    async with asyncio.timeout(SOON):
        while not what():
            await asyncio.sleep(0.002)


async def until_state(job: Any, state: str) -> None:
    async with asyncio.timeout(SOON):
        while await job.state() != state:
            await asyncio.sleep(0.002)


async def test_a_handler_gets_the_job_in_hand(client: AsyncClient, target: Target) -> None:
    seen: list[Any] = []

    async def handle(job: Context) -> dict[str, int]:
        seen.append((job.name, job.data, job.attempt, job.max_attempts, job.queue, job.priority))
        await job.progress(40, "nearly")
        await job.log("line")
        return {"length": 3}

    queue = client.queue("q")
    job = await queue.add("mail", {"to": "ada"}, priority=2)
    async with Worker("q", handle, url=target):
        assert await job.result(SOON) == {"length": 3}
    assert seen == [("mail", {"to": "ada"}, 1, 3, "q", 2)]
    assert [line["message"] for line in await job.logs()] == ["line"]


async def test_a_handler_that_blocks_runs_in_a_thread(client: AsyncClient, target: Target) -> None:
    def handle(job: Context) -> str:
        job.progress(50)
        job.log("from a thread")
        return threading.current_thread().name

    job = await client.queue("q").add("x")
    async with Worker("q", handle, url=target):
        assert str(await job.result(SOON)).startswith("tandemq")
    assert [line["message"] for line in await job.logs()] == ["from a thread"]


async def test_a_handler_may_be_annotated_with_a_local_name(
    client: AsyncClient, target: Target
) -> None:
    from tandemq import Context as InHand

    async def handle(job: InHand) -> str:
        return job.id

    job = await client.queue("q").add("x")
    async with Worker("q", handle, url=target):
        assert await job.result(SOON) == job.id


async def test_so_many_run_at_a_time_and_no_more(client: AsyncClient, target: Target) -> None:
    running: list[int] = []
    most = 0
    gate = asyncio.Event()

    async def handle(job: Context) -> None:
        nonlocal most
        running.append(job.data)
        most = max(most, len(running))
        await gate.wait()
        running.remove(job.data)

    queue = client.queue("q")
    await queue.add_many([("x", n) for n in range(7)])
    async with Worker("q", handle, url=target, concurrency=3) as worker:
        await until(lambda: len(running) == 3)
        assert worker.active == 3
        assert (await queue.counts())["active"] == 3, "nothing is hoarded"
        gate.set()
        await until(lambda: worker.figures.completed == 7)
    assert most == 3


@pytest.mark.parametrize("blocks", [False, True])
async def test_many_short_jobs_run_once_each(
    client: AsyncClient, target: Target, blocks: bool
) -> None:
    seen: list[int] = []

    async def in_loop(job: Context) -> None:
        seen.append(job.data)

    def in_thread(job: Context) -> None:
        seen.append(job.data)

    await client.queue("q").add_many([("x", n) for n in range(3_000)])
    handler = in_thread if blocks else in_loop
    async with Worker("q", handler, url=target) as worker:
        await until(lambda: len(seen) == 3_000)
    assert sorted(seen) == list(range(3_000))
    counts = await client.queue("q").counts()
    assert (counts["completed"], counts["active"]) == (3_000, 0)
    assert worker.figures.completed == 3_000


@pytest.mark.parametrize(
    ("raised", "attempts", "state"),
    [
        (ValueError("bad"), 1, "delayed"),
        (Fail("never"), 1, "failed"),
        (Retry(after="1h"), 1, "delayed"),
        (RateLimited(after="1h"), 0, "waiting"),
        (Skip("nothing to do"), 0, "completed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
async def test_what_a_handler_raises_decides(
    client: AsyncClient, target: Target, raised: Exception, attempts: int, state: str
) -> None:
    began = []

    async def handle(job: Context) -> None:
        began.append(job.id)
        raise raised

    job = await client.queue("q").add("x", backoff=timedelta(hours=1))
    async with Worker("q", handle, url=target):
        await until(lambda: began)
        await until_state(job, state)
    assert len(began) == 1
    assert (await job.refresh()).attempts == attempts


async def test_a_failure_tells_the_place_in_the_handler(
    client: AsyncClient, target: Target
) -> None:
    async def handle(job: Context) -> None:
        raise LookupError("nobody lives there")

    job = await client.queue("q").add("x", attempts=1)
    async with Worker("q", handle, url=target):
        with pytest.raises(JobFailed, match="LookupError: nobody lives there") as failed:
            await job.result(SOON)
    assert "test_worker.py" in failed.value.stack[0]


async def test_a_result_that_cannot_be_sent_is_a_dead_letter(
    client: AsyncClient, target: Target
) -> None:
    async def handle(job: Context) -> object:
        return object()

    job = await client.queue("q").add("x")
    async with Worker("q", handle, url=target):
        with pytest.raises(JobFailed, match="type object, which cannot be encoded"):
            await job.result(SOON)


async def test_a_job_that_takes_too_long_is_cancelled_and_charged(
    client: AsyncClient, target: Target
) -> None:
    ended: list[str] = []

    async def handle(job: Context) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as why:
            ended.append(str(why))
            raise

    job = await client.queue("q").add("x", attempts=1, timeout=0.05)
    async with Worker("q", handle, url=target):
        with pytest.raises(JobFailed, match=r"not done within|timeout exceeded"):
            await job.result(SOON)
        await until(lambda: ended)
    assert ended == ["it took longer than its timeout"]


async def test_a_thread_sees_that_it_is_cancelled(client: AsyncClient, target: Target) -> None:
    seen = threading.Event()

    def handle(job: Context) -> None:
        while not job.cancelled:
            time.sleep(0.002)
        seen.set()
        job.check()

    job = await client.queue("q").add("x", attempts=1)
    async with Worker("q", handle, url=target) as worker:
        await until_state(job, "active")
        assert worker.cancel(job.id)
        await until_state(job, "failed")
    assert seen.is_set()
    assert not worker.cancel("another")


async def test_a_lost_lease_cancels_the_handler_and_nothing_is_acknowledged(
    client: AsyncClient, target: Target
) -> None:
    cancelled = asyncio.Event()

    async def handle(job: Context) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    job = await client.queue("q").add("x")
    async with Worker("q", handle, url=target, heartbeat=0.02) as worker:
        await until_state(job, "active")
        await client.queue("q").obliterate()
        await asyncio.wait_for(cancelled.wait(), SOON)
        await until(lambda: worker.figures.lost)
    assert worker.figures.completed == worker.figures.failed == 0


async def test_leases_are_renewed_for_as_long_as_a_handler_runs(
    client: AsyncClient, target: Target
) -> None:
    starts: list[int] = []

    async def handle(job: Context) -> None:
        starts.append(job.attempt)
        await asyncio.sleep(0.6)

    job = await client.queue("q").add("x")
    async with Worker("q", handle, url=target, lease=0.2, heartbeat=0.04):
        await job.result(SOON)
    assert starts == [1]


async def test_a_job_of_an_unknown_task_waits_for_a_worker_that_knows_it(
    client: AsyncClient, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = tandemq.Queue("q", target), tandemq.Queue("q", target)

    @old.task
    async def known() -> None:
        pass

    @new.task
    async def later() -> str:
        return "ran"

    job = await client.queue("q").add("later", {})
    async with old.worker(park=0.05) as worker:
        await until_state(job, "delayed")
        await until(lambda: worker.figures.parked)
    assert "no task of this worker is named 'later'" in caplog.text
    assert (await job.refresh()).attempts == 0
    assert "has a task named 'later' yet" in str(job.failed_reason)
    async with new.worker():
        assert await job.result(SOON) == "ran"


async def test_a_handler_that_blocks_the_loop_is_named(
    client: AsyncClient, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    async def rude(job: Context) -> None:
        time.sleep(0.3)

    job = await client.queue("q").add("rude")
    async with Worker("q", rude, url=target, blocked_after=0.05):
        await job.result(SOON)
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    named = [text for text in warnings if f"job {job.id} (rude) has blocked the event" in text]
    assert len(named) == 1
    assert "test_worker.py" in named[0]


async def test_closing_lets_running_jobs_finish(client: AsyncClient, target: Target) -> None:
    async def handle(job: Context) -> str:
        await asyncio.sleep(0.05)
        return "done"

    jobs = [await client.queue("q").add("x") for _ in range(5)]
    worker = Worker("q", handle, url=target)
    async with worker:
        await until(lambda: worker.active == 5)
    assert [await job.result(SOON) for job in jobs] == ["done"] * 5
    assert worker.drained


@pytest.mark.parametrize("how", ["force", "drain_timeout", "cancel"])
async def test_what_does_not_end_in_time_is_given_back_uncharged(
    client: AsyncClient, target: Target, how: str
) -> None:
    async def handle(job: Context) -> None:
        await asyncio.sleep(60)

    jobs = [await client.queue("q").add("x") for _ in range(5)]
    worker = Worker("q", handle, url=target, drain_timeout=0.05 if how == "drain_timeout" else 60)
    running = asyncio.create_task(worker.run())
    await until(lambda: worker.active == 5)
    if how == "cancel":
        running.cancel()
    else:
        await worker.close(force=how == "force")
    with suppress(asyncio.CancelledError):
        await running
    assert not worker.drained
    for job in jobs:
        assert await job.state() == "waiting"
        assert (await job.refresh()).attempts == 0


async def test_a_thread_that_never_ends_holds_nobody_up(
    client: AsyncClient, target: Target
) -> None:
    end = threading.Event()

    def stubborn(job: Context) -> None:
        end.wait()

    job = await client.queue("q").add("x")
    worker = Worker("q", stubborn, url=target, drain_timeout=0.05)
    async with worker:
        await until(lambda: worker.active)
    try:
        assert await job.state() == "waiting"
        assert not [task for task in asyncio.all_tasks() if job.id in task.get_name()]
    finally:
        end.set()


async def test_a_failure_while_it_closes_is_recorded(client: AsyncClient, target: Target) -> None:
    gate = asyncio.Event()

    async def handle(job: Context) -> None:
        await gate.wait()
        raise ValueError("late")

    job = await client.queue("q").add("x", attempts=1)
    worker = Worker("q", handle, url=target)
    async with worker:
        await until(lambda: worker.active)
        asyncio.get_running_loop().call_later(0.05, gate.set)
    assert await job.state() == "failed"


async def test_an_idle_worker_closes_at_once(client: AsyncClient, target: Target) -> None:
    async def handle(job: Context) -> None:
        pass

    async with Worker("q", handle, url=target):
        await asyncio.sleep(0.02)
        began = time.monotonic()
    assert time.monotonic() - began < 3, "the pull would have waited for 20 s"


async def test_a_job_that_is_added_to_an_idle_worker_starts_without_a_poll(
    client: AsyncClient, target: Target
) -> None:
    async def handle(job: Context) -> None:
        pass

    async with Worker("q", handle, url=target) as worker:
        for _ in range(200):  # with a poll of 50 ms they would not be done in time
            await (await client.queue("q").add("x")).result(SOON)
    assert worker.figures.completed == 200


async def test_workers_are_listed_while_they_work(client: AsyncClient, target: Target) -> None:
    async def handle(job: Context) -> None:
        pass

    async with Worker("q", handle, url=target, name="w1", concurrency=4):
        await client.call("Ping")
        listed = (await client.call("ListWorkers"))["data"]["workers"]
        assert [(w["name"], w["queues"], w["concurrency"]) for w in listed] == [("w1", ["q"], 4)]
    assert (await client.call("ListWorkers"))["data"]["workers"] == []


async def test_a_worker_works_once(client: AsyncClient, target: Target) -> None:
    async def handle(job: Context) -> None:
        pass

    worker = Worker("q", handle, url=target)
    async with worker:
        with pytest.raises(Misused, match="runs already"):
            await worker.run()
    with pytest.raises(Misused, match="make another one"):
        await worker.run()
    unused = Worker("q", handle, url=target)
    await unused.close()
    with pytest.raises(Closed):
        await unused.run()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"lease": "soon"}, "lease"),
        ({"pool": "thread"}, "asynchronous handler"),
        ({"pool": "cloud"}, "pool is 'cloud'"),
        ({"colour": 1}, "no option colour"),
        ({"lease": 0}, "50 ms or more"),
        ({"name": 5}, "name is 5"),
    ],
)
def test_what_a_worker_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    async def handle(job: Context) -> None:
        pass

    with pytest.raises(BadOption, match=words):
        Worker("q", handle, **options)


def test_what_cannot_be_a_handler_is_refused() -> None:
    def generator(job: Context) -> Any:
        yield 1

    def nothing() -> None: ...

    with pytest.raises(BadOption, match="is a generator"):
        Worker("q", generator)
    with pytest.raises(TypeError, match="must take one argument"):
        Worker("q", nothing)
    with pytest.raises(BadOption, match="is no handler"):
        Worker("q", 5)  # type: ignore[arg-type]
    with pytest.raises(BadOption, match="cannot be found by other processes"):
        Worker("q", lambda job: None, pool="process")
