"""Calls and their answers: what was asked, for how long, and one timer for all deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any


class Call:
    """One request and the place of its answer.

    Attributes:
        id: its ``reqId`` on the wire.
        patience: seconds for the wait for a link, and again for the answer.
        deadline: on the loop's clock; moved when the call is written.
        began: when it was written, on the loop's clock; 0 before.
        ping: the link's own sign of life, which is counted apart.
    """

    __slots__ = ("answer", "began", "command", "deadline", "frame", "id", "patience", "ping")

    def __init__(
        self,
        command: str,
        id: str,
        frame: bytes,
        answer: asyncio.Future[dict[str, Any]],
        patience: float,
        now: float,
    ) -> None:
        self.command, self.id, self.frame, self.answer = command, id, frame, answer
        self.patience, self.deadline = patience, now + patience
        self.began = 0.0
        self.ping = False

    def fail(self, error: BaseException) -> None:
        """Raise where the answer is awaited; nothing happens where nobody waits any more."""
        if not self.answer.done():
            self.answer.set_exception(error)


class Deadlines:
    """One timer for many calls; it rings when the first of them is due.

    A call with an answer needs no word to it, so a call costs a comparison and no timer.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        calls: Callable[[], Iterable[Call]],
        expire: Callable[[list[Call]], None],
    ) -> None:
        self._loop, self._calls, self._expire = loop, calls, expire
        self._timer: asyncio.TimerHandle | None = None
        self._rings = float("inf")

    def watch(self, deadline: float) -> None:
        """See to it that the timer rings by then."""
        if deadline < self._rings:
            self.stop()
            self._rings = deadline
            self._timer = self._loop.call_at(deadline, self._ring)

    def stop(self) -> None:
        """Forget every deadline."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._rings = None, float("inf")

    def _ring(self) -> None:
        self._timer, self._rings = None, float("inf")
        now, due, first = self._loop.time(), [], float("inf")
        for call in self._calls():
            if call.deadline <= now:
                due.append(call)
            elif call.deadline < first:
                first = call.deadline
        if first < float("inf"):
            self.watch(first)
        if due:
            self._expire(due)


def looked_at(answer: asyncio.Future[Any]) -> None:
    """Take note of a failure that nobody awaits."""
    if not answer.cancelled():
        answer.exception()
