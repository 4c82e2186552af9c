"""One event loop in one thread, for callers without a loop of their own.

Waking the loop costs more than a call does, so what several threads ask while it wakes up begins
together: their jobs then travel in one batch.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from tandemq.client.errors import Closed, Misused
from tandemq.client.forks import generation

T = TypeVar("T")


class Portal:
    """Runs coroutines in a thread of its own, and waits for them in the caller's."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self._asked: deque[tuple[Coroutine[Any, Any, Any], Future[Any]]] = deque()
        self._waking = self._ended = False
        self._thread = threading.Thread(target=self._run, name="tandemq client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self._end())
        finally:
            self._ended = True
            self.loop.close()
            self._drop()

    async def _end(self) -> None:
        self._ended = True  # from now on nothing begins
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self.loop.shutdown_default_executor()

    def _drop(self) -> None:
        """Tell whoever asked too late; whoever comes later still does this by itself."""
        with suppress(IndexError):  # several threads may do this at a time
            while True:
                work, done = self._asked.popleft()
                work.close()
                if done.set_running_or_notify_cancel():
                    done.set_exception(Closed("this client was closed: make a new one"))

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return what it returns.

        Raises:
            Misused: this thread runs an event loop, which must not be blocked.
            Closed: the portal was closed, or its thread ended with the interpreter.
        """
        if sys.is_finalizing():
            work.close()
            raise Closed("the interpreter ends: do this earlier, in an atexit function say")
        if in_a_loop():
            work.close()
            raise Misused(
                "a sync call would block this event loop: use AsyncClient, or await enqueue(...)"
            )
        done: Future[T] = Future()
        self._asked.append((work, done))
        if self._ended:
            self._drop()
        elif not self._waking:  # set before and unset after, so that nobody is forgotten
            self._waking = True
            with suppress(RuntimeError):  # it ends at this moment, and drops what was asked
                self.loop.call_soon_threadsafe(self._begin)
        try:
            return done.result()
        except BaseException:
            done.cancel()  # does nothing unless the waiting itself was interrupted
            raise

    def _begin(self) -> None:
        """Start what was asked since the last time."""
        self._waking = False
        while self._asked and not self._ended:
            work, done = self._asked.popleft()
            task = self.loop.create_task(work)
            task.add_done_callback(partial(_settle, done))
            done.add_done_callback(partial(self._interrupted, task))

    def _interrupted(self, task: asyncio.Task[Any], done: Future[Any]) -> None:
        if done.cancelled():
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        """End the loop and its thread."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


class LoopThread:
    """The portal of one client: opened when it is needed, and again in a forked child."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._born, self._lock = generation(), threading.Lock()
        self._portal: Portal | None = None
        self.closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something asynchronous in the client's loop, and wait for it."""
        if self._born != generation():  # the thread stayed with the parent
            self._begin()
        with self._lock:
            if self.closed:
                work.close()
                raise Closed("this client was closed: make a new one")
            portal = self._portal = self._portal or Portal()
        return portal.call(work)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run what closes the client, and end the thread; a second time does nothing."""
        if self._born != generation():
            self._begin()
        with self._lock:
            portal, self._portal = self._portal, None
            self.closed = True
        if portal is not None:
            portal.call(last())
            portal.close()


def _settle(done: Future[Any], task: asyncio.Task[Any]) -> None:
    """Hand a result to the thread that waits for it, unless it was interrupted."""
    if not done.set_running_or_notify_cancel():
        return
    if task.cancelled():
        done.set_exception(Closed("this client was closed, or the work cancelled"))
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def in_a_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
