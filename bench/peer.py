"""Job queues for Python behind one face: what `peers.py` runs in the producer and in the worker.

Each imports its library only when it is made, as it lives in an environment of its own. All of them
have their defaults, but that nothing is said of a single job in a log.
"""

from __future__ import annotations

import asyncio
import os
import struct
import time
from collections.abc import Coroutine, Iterable
from typing import Any

AT_A_TIME = 10  # jobs of a worker
PART = 1_000  # jobs of one enqueue_many of RQ; ours makes parts of that size by itself
PIPE = "TANDEMQ_BENCH_PIPE"  # names the pipe for the times at which jobs ran
TIME = struct.Struct("d")
DATA = {"to": "someone@example.org", "subject": "hello", "number": 7}

_pipe = -1


def ran() -> None:
    """Say when a job runs; so short a write is never torn, by whichever process or thread."""
    global _pipe
    now = time.perf_counter()  # the same clock in every process
    if _pipe < 0:
        _pipe = os.open(os.environ[PIPE], os.O_WRONLY)
    os.write(_pipe, TIME.pack(now))


def task(data: Any) -> None:
    """Do nothing."""
    ran()


async def task_in_loop(_: Any, data: Any = None) -> None:
    """Do nothing: for us, who hand over a job, and for arq, which hands over a context and data."""
    ran()


class Peer:
    """A library; `add` takes one job for each turn, and `add_many` is there if it has bulks."""

    def __init__(self, port: int) -> None:
        self.port = port

    def add(self, turns: Iterable[Any]) -> None:
        raise NotImplementedError

    def add_many(self, count: int) -> None:
        raise NotImplementedError

    def work(self, kind: str) -> None:
        """Work until the process is ended."""
        raise NotImplementedError


class Tandemq(Peer):
    def add(self, turns: Iterable[Any]) -> None:
        from tandemq import AsyncClient

        async def main() -> None:
            async with AsyncClient(self._url) as client:
                queue = client.queue("bench")
                for _ in turns:
                    await queue.add("task", DATA)

        _run(main())

    def add_many(self, count: int) -> None:
        from tandemq import AsyncClient

        async def main() -> None:
            async with AsyncClient(self._url) as client:
                await client.queue("bench").add_many(("task", DATA) for _ in range(count))

        _run(main())

    def work(self, kind: str) -> None:
        from tandemq import Worker

        handler = task if kind == "threads" else task_in_loop

        async def main() -> None:
            async with Worker("bench", handler, url=self._url, concurrency=AT_A_TIME):
                await asyncio.Event().wait()

        _run(main())

    @property
    def _url(self) -> str:
        return f"tandemq://127.0.0.1:{self.port}"


class Celery(Peer):
    def __init__(self, port: int) -> None:
        from celery import Celery as App

        super().__init__(port)
        self._app = App("bench", broker=f"redis://127.0.0.1:{port}/0")
        self._app.conf.broker_connection_retry_on_startup = True
        self._task = self._app.task(task, name="task")

    def add(self, turns: Iterable[Any]) -> None:
        for _ in turns:
            self._task.delay(DATA)

    def work(self, kind: str) -> None:
        self._app.worker_main(["worker", "--pool", kind, "--concurrency", str(AT_A_TIME)])


class RQ(Peer):
    def __init__(self, port: int) -> None:
        from redis import Redis
        from rq import Queue

        super().__init__(port)
        self._redis = Redis(port=port)
        self._queue = Queue("bench", connection=self._redis)

    def add(self, turns: Iterable[Any]) -> None:
        for _ in turns:
            self._queue.enqueue(task, DATA)

    def add_many(self, count: int) -> None:
        for start in range(0, count, PART):
            part = range(start, min(start + PART, count))
            self._queue.enqueue_many([self._queue.prepare_data(task, (DATA,)) for _ in part])

    def work(self, kind: str) -> None:
        import rq

        made = {"simple": rq.SimpleWorker, "fork": rq.Worker}[kind]
        made([self._queue], connection=self._redis).work(logging_level="WARNING")


class Arq(Peer):
    def add(self, turns: Iterable[Any]) -> None:
        from arq import create_pool

        async def main() -> None:
            pool = await create_pool(self._redis)
            for _ in turns:
                await pool.enqueue_job("task_in_loop", DATA)
            await pool.aclose()

        _run(main())

    def work(self, kind: str) -> None:
        from arq import Worker

        async def main() -> None:
            await Worker(
                [task_in_loop],
                redis_settings=self._redis,
                max_jobs=AT_A_TIME,
                handle_signals=False,
            ).main()

        _run(main())

    @property
    def _redis(self) -> Any:
        from arq.connections import RedisSettings

        return RedisSettings(port=self.port)


class Dramatiq(Peer):
    def __init__(self, port: int) -> None:
        import dramatiq
        from dramatiq.brokers.redis import RedisBroker

        super().__init__(port)
        self._broker = RedisBroker(port=port)
        self._task = dramatiq.actor(task, broker=self._broker)

    def add(self, turns: Iterable[Any]) -> None:
        for _ in turns:
            self._task.send(DATA)

    def work(self, kind: str) -> None:
        import dramatiq

        dramatiq.Worker(self._broker, worker_threads=AT_A_TIME).start()
        while True:
            time.sleep(60)


class Huey(Peer):
    def __init__(self, port: int) -> None:
        from huey import RedisHuey

        super().__init__(port)
        self._huey = RedisHuey("bench", port=port)
        self._task = self._huey.task()(task)

    def add(self, turns: Iterable[Any]) -> None:
        for _ in turns:
            self._task(DATA)

    def work(self, kind: str) -> None:
        self._huey.create_consumer(workers=AT_A_TIME, worker_type="thread").run()


PEERS: dict[str, type[Peer]] = {
    "tandemq": Tandemq,
    "Celery": Celery,
    "RQ": RQ,
    "arq": Arq,
    "Dramatiq": Dramatiq,
    "Huey": Huey,
}


def _run(work: Coroutine[Any, Any, None]) -> None:
    """With uvloop for whoever runs in a loop: `tandemq worker` takes it by itself."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)
