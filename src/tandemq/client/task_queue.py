"""``TaskQueue``: a queue with the functions that its jobs call; a program's own ``Queue``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ParamSpec, Self, TypeVar, Unpack, cast, overload

from tandemq.client.depends import Provider
from tandemq.client.errors import BadOption
from tandemq.client.outcomes import Retry
from tandemq.client.performing import Repertoire, around
from tandemq.client.pool import Pool
from tandemq.client.queue import Queue
from tandemq.client.routine import Place
from tandemq.client.schedules import ScheduleOptions, Schedules
from tandemq.client.spans import Span
from tandemq.client.sync import Client
from tandemq.client.tasks import Task, TaskOptions, with_retry
from tandemq.client.url import Target
from tandemq.client.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Callable[..., Any])

PATIENCE = timedelta(days=365)  # of a worker with a server that is not there yet


@dataclass(frozen=True, slots=True)
class Cron:
    """When a task runs by itself."""

    task: Task[..., Any]
    pattern: str | None  # of cron
    every: Span | None
    options: ScheduleOptions

    async def declare(self, schedules: Schedules) -> None:
        """Tell the server, which keeps it; the same one again changes nothing."""
        name, given = f"{self.task.queue.name}:{self.task.name}", dict(self.options)
        if job := with_retry(dict(self.task.given)):
            given["job"] = job
        options = cast(ScheduleOptions, given)
        job_name = self.task.name
        if self.pattern is not None:
            await schedules.cron(name, self.pattern, {}, job_name=job_name, **options)
        elif self.every is not None:
            await schedules.every(name, self.every, {}, job_name=job_name, **options)


class TaskQueue(Queue):
    """A queue and the tasks that its jobs call; also all that any ``Queue`` can do.

    Attributes:
        tasks: by their names.
        repertoire: what its workers can run.
        outgoing: called with the name and the options of each job that is enqueued here, which
            they may change.
    """

    def __init__(self, name: str, url: str | Target | None = None, **options: Any) -> None:
        """Nothing is opened before it is used; without a URL ``TANDEMQ_URL`` is asked.

        Raises:
            WrongUrl, BadOption
        """
        super().__init__(Pool(url, **options), name)
        self.tasks: dict[str, Task[..., Any]] = {}
        self.crons: list[Cron] = []
        self.outgoing: list[Callable[[str, dict[str, Any]], None]] = []
        self.repertoire = Repertoire(lifespans=[self._declared])
        self._client: Client | None = None

    # -- tasks ---------------------------------------------------------------------------------

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        /,
        *,
        name: str | None = ...,
        pool: Place | None = ...,
        **options: Unpack[TaskOptions],
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...
    def task(
        self,
        function: Callable[P, R] | None = None,
        /,
        *,
        name: str | None = None,
        pool: Place | None = None,
        **options: Unpack[TaskOptions],
    ) -> Task[P, R] | Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function a task: ``@queue.task`` or ``@queue.task(retry=Retry(5))``.

        Args:
            name: of its jobs; that of the function unless told otherwise.
            pool: where it runs: ``loop`` for ``async def``, else ``thread``; or ``process``.
            options: of each of its jobs, see ``TaskOptions``.

        Raises:
            TypeError, BadOption: it cannot be a task; the text says why.
        """

        def make(function: Callable[P, R]) -> Task[P, R]:
            chosen = name or getattr(function, "__name__", "")
            if not chosen or chosen in self.tasks:
                raise BadOption(f"a task needs a name of its own in its queue: name={chosen!r}")
            made = Task(self, function, chosen, pool, options)
            self.tasks[chosen] = made
            self.repertoire.routines[chosen] = made.routine
            return made

        return make if function is None else make(function)

    def cron(
        self,
        pattern: str,
        *,
        name: str | None = None,
        pool: Place | None = None,
        retry: Retry | None = None,
        timeout: Span | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function a task that runs at the moments of a cron expression.

        The schedule lives in the server, which gets it when a worker of this queue starts.
        """
        return self._scheduled(pattern, None, name, pool, retry, timeout, options)

    def every(
        self,
        interval: Span,
        *,
        name: str | None = None,
        pool: Place | None = None,
        retry: Retry | None = None,
        timeout: Span | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function a task that runs at a distance; otherwise as ``cron``."""
        return self._scheduled(None, interval, name, pool, retry, timeout, options)

    def _scheduled(
        self,
        pattern: str | None,
        every: Span | None,
        name: str | None,
        pool: Place | None,
        retry: Retry | None,
        timeout: Span | None,
        options: ScheduleOptions,
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        said = {"retry": retry, "timeout": timeout}
        given = cast(TaskOptions, {k: v for k, v in said.items() if v is not None})

        def make(function: Callable[P, R]) -> Task[P, R]:
            made = self.task(name=name, pool=pool, **given)(function)
            if wanted := set(made.payload.names) - set(made.payload.defaults):
                raise TypeError(f"{made.name} runs by itself: who gives it {sorted(wanted)}?")
            self.crons.append(Cron(made, pattern, every, options))
            return made

        return make

    # -- around them ---------------------------------------------------------------------------

    def middleware(self, layer: M) -> M:
        """Put an asynchronous context manager around each job; the first one is outermost.

        ``layer`` takes the ``Context`` and yields once; what the handler raises comes out of its
        ``yield``.
        """
        self.repertoire.middleware.append(around(layer))
        return layer

    def lifespan(self, layer: M) -> M:
        """Put an asynchronous context manager around the run of each worker."""
        self.repertoire.lifespans.append(around(layer))
        return layer

    @contextmanager
    def override(self, provider: Provider, stand_in: Provider) -> Iterator[None]:
        """Let another provider stand for one, for tests."""
        known = self.repertoire.overrides
        before = known.get(provider)
        known[provider] = stand_in
        try:
            yield
        finally:
            if before is None:
                del known[provider]
            else:
                known[provider] = before

    @contextmanager
    def redirected(self, target: Target) -> Iterator[Self]:
        """Let it use another server for a while, for tests."""
        own = self.pool, self._client
        self.pool, self._client = Pool(target), Client(target)
        try:
            yield self
        finally:
            self._client.close()
            self.pool, self._client = own

    # -- work ----------------------------------------------------------------------------------

    def worker(self, **options: Any) -> Worker:
        """Return a worker for these tasks; ``options`` are those of ``Worker``."""
        return Worker(self.name, self.repertoire, url=self.pool.target, **options)

    async def declare(self) -> None:
        """Tell the server of the schedules; a worker does that when it starts."""
        await self._declare(None)

    async def _declare(self, patience: Span | None) -> None:
        """Tell the server of the schedules; ``patience`` is how long it may take to be there."""
        if self.crons:
            pool = Pool(self.pool.target, pool_size=1)
            try:
                await pool.call("Ping", patience=patience)
                for cron in self.crons:
                    await cron.declare(Schedules(pool, self.name))
            finally:
                await pool.close()

    @asynccontextmanager
    async def _declared(self) -> AsyncIterator[None]:
        await self._declare(PATIENCE)
        yield

    @property
    def client(self) -> Client:
        """The client of ``enqueue_sync``."""
        if self._client is None:
            self._client = Client(self.pool.target)
        return self._client

    async def close(self) -> None:
        """Close the connections that were opened for adding jobs."""
        await self.pool.close()
        if self._client is not None:
            await asyncio.to_thread(self._client.close)  # it has a loop of its own
