"""``Stage``: a server for one test, with all that a test wants to know and to do.

It is the engine that runs everywhere, in a thread of its own, reached through pipes; so it serves
tests with and without an event loop, whichever plugin runs that.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Self, get_args

from tandemq.client.client import AsyncClient
from tandemq.client.errors import Misused
from tandemq.client.job import Job
from tandemq.client.portal import in_a_loop
from tandemq.client.queue import JobState, Queue
from tandemq.client.sync import Client
from tandemq.client.task_queue import TaskQueue
from tandemq.client.url import Target
from tandemq.client.worker import Worker
from tandemq.local import Local
from tandemq.local import open as open_local
from tandemq.server import meter

STATES: tuple[JobState, ...] = get_args(JobState)
BUSY = ("waiting", "prioritized", "active")
LOOK = 0.005  # s between looks at what is left
MOST = 10_000  # jobs of a queue that ``jobs`` returns


class Stage:
    """A server for one test, which forgets everything.

    Attributes:
        target: for ``Queue``, ``AsyncClient``, ``Client`` and ``Worker``, in place of a URL.
        client: a sync client of it.
    """

    def __init__(self, **settings: Any) -> None:
        """``settings`` are those of a server; it is open inside ``with``."""
        self._local: Local = open_local("memory://", **settings)
        self.target: Target = self._local.target
        self.client: Client
        self._ahead = 0

    def __enter__(self) -> Self:
        self.client = self._local.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._local.__exit__()
        meter.move(-self._ahead)

    # -- the clock -----------------------------------------------------------------------------

    def advance(self, span: timedelta | None = None, **parts: float) -> None:
        """Let time go by for the server: ``advance(minutes=5)``; what is due then happens.

        Only the server's time moves: clients and workers do not wait less, and the lease of a
        running job ends if it is not renewed in between.

        Raises:
            ValueError: time does not run backwards.
        """
        ms = round((span or timedelta(**parts)) / timedelta(milliseconds=1))
        if ms < 0:
            raise ValueError("time does not run backwards")
        self._ahead += ms
        meter.move(ms)
        self._local.call(self._look())

    # -- jobs ----------------------------------------------------------------------------------

    def jobs(self, queue: Queue | str) -> list[Job]:
        """Return what was enqueued, in that order, whatever became of it meanwhile."""
        return self._local.call(self._jobs(queue if isinstance(queue, str) else queue.name))

    async def _jobs(self, queue: str) -> list[Job]:
        async with AsyncClient(self.target) as client:
            return await client.queue(queue).jobs(STATES, limit=MOST)

    async def _look(self) -> None:
        """Let what is due happen."""
        if self._local.runtime is not None:
            self._local.runtime.begin()
            await asyncio.sleep(0)  # until the turn has ended

    def serves(self, queue: TaskQueue) -> AbstractContextManager[TaskQueue]:
        """Let a queue of the program use this server instead of its own, inside ``with``."""
        return queue.redirected(self.target)

    # -- work ----------------------------------------------------------------------------------

    def run_until_idle(self, queue: TaskQueue, **options: Any) -> Worker:
        """Run a worker until nothing waits and nothing runs; return it, for its figures.

        What is delayed stays: ``advance`` the clock first. In a test that is ``async def``, await
        ``work_until_idle`` instead.

        Raises:
            Misused: an event loop runs in this thread.
        """
        if in_a_loop():
            raise Misused("this test has an event loop: await work_until_idle(queue)")
        return asyncio.run(self.work_until_idle(queue, **options))

    async def work_until_idle(self, queue: TaskQueue, **options: Any) -> Worker:
        """As ``run_until_idle``, in this event loop."""
        worker = Worker(queue.name, queue.repertoire, url=self.target, **options)
        async with AsyncClient(self.target) as client, worker:
            while True:
                counts = await client.queue(queue.name).counts()
                if not any(counts[state] for state in BUSY):
                    return worker
                await asyncio.sleep(LOOK)
