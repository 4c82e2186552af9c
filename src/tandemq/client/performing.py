"""Runs handlers where they belong, with middleware around them and their dependencies made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from inspect import isasyncgenfunction
from typing import Any

from msgspec import Raw

from tandemq.client.context import Context, Voice
from tandemq.client.depends import Provider, Scope
from tandemq.client.errors import BadOption
from tandemq.client.processes import PoolGaveUp, Processes
from tandemq.client.routine import Routine
from tandemq.client.threads import Threads, ThreadVoice
from tandemq.client.work import Work
from tandemq.wires.bunqueue.caller import encode

Middleware = Callable[[Context], AbstractAsyncContextManager[Any] | AsyncIterator[Any]]
Lifespan = Callable[[], AbstractAsyncContextManager[Any] | AsyncIterator[Any]]


@dataclass(slots=True)
class Repertoire:
    """What a worker can run.

    Attributes:
        routines: by the names of jobs.
        anything: for jobs of any name, if they are not named otherwise.
        middleware: around each job, the first one outermost.
        lifespans: around the whole run of a worker.
        overrides: providers that stand for others, for tests.
    """

    routines: dict[str, Routine] = field(default_factory=dict)
    anything: Routine | None = None
    middleware: list[Middleware] = field(default_factory=list)
    lifespans: list[Lifespan] = field(default_factory=list)
    overrides: dict[Provider, Provider] = field(default_factory=dict)

    def find(self, name: str | None) -> Routine | None:
        """Return what runs jobs of a name, None where nothing does."""
        return self.routines.get(name or "", self.anything)


def around(layer: Any) -> Any:
    """Return a middleware or a lifespan as a context manager, however it was written.

    Raises:
        BadOption: it is neither.
    """
    if not callable(layer):
        raise BadOption(f"{layer!r} cannot be called: give a function that yields once")
    return asynccontextmanager(layer) if isasyncgenfunction(layer) else layer


class Performer:
    """Runs handlers for a worker."""

    def __init__(self, repertoire: Repertoire, size: int, name: str) -> None:
        """``size`` is how many run at a time."""
        self._repertoire, self._size, self._name = repertoire, size, name
        self._threads: Threads | None = None
        self._processes: Processes | None = None
        self._app = Scope(repertoire.overrides)
        self._given_up = False
        self._life = AsyncExitStack()

    async def open(self) -> None:
        """Begin what lives with the worker.

        Raises:
            Others: what a lifespan raises.
        """
        await self._life.enter_async_context(self._app)
        for lifespan in self._repertoire.lifespans:
            await self._life.enter_async_context(lifespan())  # type: ignore[arg-type]

    def give_up(self) -> None:
        """Wait for threads no longer: who is cancelled from now on leaves them to themselves."""
        self._given_up = True

    async def close(self) -> None:
        """End it; threads that still run are left to themselves."""
        if self._threads is not None:
            self._threads.close()
        if self._processes is not None:
            await self._processes.close()
        await self._life.aclose()

    @property
    def broken(self) -> PoolGaveUp | None:
        """Why it can run no more jobs."""
        pool = self._processes
        return pool.broken.result() if pool is not None and pool.broken.done() else None

    @property
    def processes(self) -> Processes:
        """The processes for handlers; the first one starts when the first job needs it."""
        if self._processes is None:
            self._processes = Processes(self._size)
        return self._processes

    async def perform(self, routine: Routine, work: Work) -> Raw:
        """Run a job and return its result, encoded.

        Raises:
            Unwritable: the result cannot be encoded.
            Others: what the handler raises.
        """
        middleware = self._repertoire.middleware
        if not middleware:
            return await self._run(routine, work)
        context = Context(work.job, work)
        async with AsyncExitStack() as layers:
            for layer in middleware:
                await layers.enter_async_context(layer(context))  # type: ignore[arg-type]
            return await self._run(routine, work)

    async def _run(self, routine: Routine, work: Work) -> Raw:
        if routine.place == "process":
            return await self.processes.run(routine.path, work.job, work)
        voice: Voice = work if routine.is_async else ThreadVoice(work)
        context = Context(work.job, voice)
        if not routine.needs.values:
            return Raw(encode(await routine.run(work.job, context, None, self._in_thread)))
        async with Scope(self._repertoire.overrides, self._app) as scope:
            result = await routine.run(work.job, context, scope, self._in_thread)
        return Raw(encode(result))

    async def _in_thread(self, function: Callable[[], Any]) -> Any:
        """Run a function in a thread; being cancelled means to wait until it has noticed."""
        if self._threads is None:
            self._threads = Threads(self._size, self._name)
        running = self._threads.run(function)
        while True:
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                if running.done() or self._given_up:
                    raise
