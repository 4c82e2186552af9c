"""Threads for handlers that block, and the way from such a handler to its worker.

Not ``concurrent.futures``: results come back many at a time, which wakes the loop once for all of
them, and a thread that never ends keeps nobody from ending the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

from tandemq.client.context import Told, Voice

Duty = tuple[Callable[[], Any], asyncio.Future[Any]]


class Threads:
    """Runs functions in at most ``size`` threads, which start when they are needed."""

    def __init__(self, size: int, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._size, self._name = size, name
        self._duties: SimpleQueue[Duty | None] = SimpleQueue()
        self._started = self._busy = 0
        self._done: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._waking = False

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run a function with the context variables of now; the future has what it returns.

        Whoever cancels the future stops waiting; the function goes on.
        """
        result: asyncio.Future[Any] = self._loop.create_future()
        context = copy_context()
        self._busy += 1
        if self._busy > self._started and self._started < self._size:
            self._started += 1
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        self._duties.put((lambda: context.run(function), result))
        return result

    def close(self) -> None:
        """Let the threads end when they are done."""
        for _ in range(self._started):
            self._duties.put(None)

    def _work(self) -> None:
        while (duty := self._duties.get()) is not None:
            function, result = duty
            value, error = None, None
            try:
                value = function()
            except BaseException as raised:
                error = raised
            self._done.append((result, value, error))
            del duty, function, result, value, error
            if not self._waking:
                self._waking = True
                with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._waking = False  # first, so that a thread that is done now wakes us again
        while self._done:
            result, value, error = self._done.popleft()
            self._busy -= 1
            if result.done():
                continue
            if error is None:
                result.set_result(value)
            elif isinstance(error, StopIteration):
                result.set_exception(RuntimeError(f"the handler raised {error!r}"))
            else:
                result.set_exception(error)


class ThreadVoice:
    """The way from a handler in a thread to its worker: it says something, and waits."""

    def __init__(self, voice: Voice) -> None:
        self._voice, self._loop = voice, asyncio.get_running_loop()

    @property
    def cancelled(self) -> bool:
        return self._voice.cancelled

    def tell(self, command: str, fields: dict[str, Any]) -> Awaitable[Any]:
        """Send something about the job and wait for the answer."""

        async def say() -> Any:
            return await self._voice.tell(command, fields)

        asyncio.run_coroutine_threadsafe(say(), self._loop).result()
        return Told()
