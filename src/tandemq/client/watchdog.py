"""Notices handlers that block the event loop, names them, and keeps their leases meanwhile.

A loop that does not turn renews nothing and cancels nothing. It cannot be helped from inside, so a
thread looks at it: it reads where the loop's thread is, and sends the heartbeats in its place.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable

from tandemq.client.errors import TandemqError

log = logging.getLogger("tandemq.worker")

TICK = 0.1  # s between signs of life, at most


class Watchdog:
    """A thread that watches a loop."""

    def __init__(self, threshold: float, renew: Callable[[], None], every: float) -> None:
        """``threshold`` and ``every``, between two calls of ``renew``, are in seconds."""
        self._threshold, self._renew, self._every = threshold, renew, every
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._tick = min(TICK, threshold / 4, every / 4)
        self._beat = time.monotonic()
        self._end = threading.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.warnings = 0

    def start(self) -> None:
        """Watch until ``close``."""
        self._alive()
        threading.Thread(target=self._watch, name="tandemq watchdog", daemon=True).start()

    def close(self) -> None:
        """Stop watching."""
        self._end.set()
        if self._timer is not None:
            self._timer.cancel()

    def _alive(self) -> None:
        self._beat = time.monotonic()
        self._timer = self._loop.call_later(self._tick, self._alive)

    def _watch(self) -> None:
        warned, renewed = 0.0, self._beat
        while not self._end.wait(self._tick):
            beat, now = self._beat, time.monotonic()
            if warned < beat and now - beat >= self._threshold:
                warned = beat
                self._warn(now - beat)
            if now - max(beat, renewed) >= self._every:
                renewed = now
                self._renew_now()

    def _warn(self, blocked: float) -> None:
        self.warnings += 1
        task = asyncio.current_task(self._loop)
        frame = sys._current_frames().get(self._thread_id)
        line = traceback.extract_stack(frame)[-1] if frame is not None else None
        where = f" at {line.filename}:{line.lineno} ({line.line})" if line is not None else ""
        log.warning(
            "%s has blocked the event loop for %.1f s%s: nothing else runs meanwhile."
            " Await what takes long, or write the handler as def, so that it runs in a thread",
            task.get_name() if task is not None else "something",
            blocked,
            where,
        )

    def _renew_now(self) -> None:
        try:
            self._renew()
        except (TandemqError, OSError, RuntimeError) as problem:
            log.warning("leases could not be renewed beside the blocked loop: %s", problem)
