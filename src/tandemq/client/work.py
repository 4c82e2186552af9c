"""A job that a worker holds, from its lease to what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

from tandemq.client.calls import looked_at
from tandemq.client.context import Leased

Say = Callable[[str, dict[str, Any]], Awaitable[Any]]


class Why(StrEnum):
    """Why a handler is to end early."""

    LOST = "its lease was lost"
    LATE = "it took longer than its timeout"
    STOPPING = "the worker stops"
    TOLD = "it was cancelled"


class Work:
    """One such job; it is the voice of its handler to the worker.

    Attributes:
        token: of the present lease; a job that is handed out to us again while it runs has a new
            one.
        why: why its handler is to end early, None while nobody wishes it.
        settled: what became of it is decided, so nothing more is said of it.
    """

    __slots__ = ("_say", "began", "job", "settled", "task", "timers", "token", "why")

    def __init__(self, job: Leased, token: str | None, say: Say, now: float) -> None:
        self.job, self.token, self._say = job, token, say
        self.began = now  # on the loop's clock
        self.why: Why | None = None
        self.settled = False
        self.task: asyncio.Task[None] | None = None
        self.timers: list[asyncio.TimerHandle] = []

    def __repr__(self) -> str:
        return f"job {self.job.id} ({self.job.name or self.job.queue})"

    @property
    def cancelled(self) -> bool:
        return self.why is not None

    def tell(self, command: str, fields: dict[str, Any]) -> Awaitable[Any]:
        """Send something about the job, begun at once, whether it is awaited or not."""
        told = asyncio.ensure_future(self._say(command, fields))
        told.add_done_callback(looked_at)  # the next heartbeat tells whether a failure matters
        return told

    def cancel(self, why: Why) -> None:
        """Tell the handler to end; the first reason counts."""
        if self.why is None and not self.settled:
            self.why = why
            if self.task is not None:
                self.task.cancel(str(why))

    def rest(self) -> None:
        """Stop its clocks."""
        for timer in self.timers:
            timer.cancel()
