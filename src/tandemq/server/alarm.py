"""The one timer of the loop: it rings when the engine's next deadline has come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tandemq.engine import clock
from tandemq.engine.core import Engine
from tandemq.server.meter import now_ms

LONGEST_SLEEP = 60.0  # s; a clock that is set meanwhile is noticed then at the latest


class Alarm:
    """Wakes the owner of an engine in time."""

    def __init__(self, engine: Engine, rang: Callable[[], None]) -> None:
        self._engine, self._rang = engine, rang
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._at = 0

    def set(self) -> None:
        """Ring for the next deadline; ringing too early is cheaper than a new timer each turn."""
        timers = self._engine.timers
        if self._timer is not None and timers.soonest >= self._at:
            return
        wake = clock.next_wake(self._engine)
        if wake is None or (self._timer is not None and self._at <= wake):
            return
        self.cancel()
        wait = min(max(0, wake - now_ms()) / 1000, LONGEST_SLEEP)
        self._timer = self._loop.call_later(wait, self._ring)
        self._at = wake

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        self._rang()
