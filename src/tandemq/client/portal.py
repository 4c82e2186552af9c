"""One event loop in one thread, for callers without a loop of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from tandemq.client.errors import Closed, Misused

T = TypeVar("T")


class Portal:
    """Runs coroutines in a thread of its own, and waits for them in the caller's."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self._thread = threading.Thread(target=self._run, name="tandemq client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            self.loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return what it returns.

        Raises:
            Misused: this thread runs an event loop, which must not be blocked.
            Closed: the portal was closed.
        """
        if in_a_loop():
            work.close()
            raise Misused("a sync client would block this event loop: use AsyncClient here")
        if self.loop.is_closed():
            work.close()
            raise Closed("this client was closed: make a new one")
        running: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise

    def close(self) -> None:
        """End the loop and its thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()


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
