"""What happens in a queue, as it happens: ``async for event in queue.events()``."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from tandemq.client.errors import Closed
from tandemq.client.line import Line, Restore, State, proofs
from tandemq.client.link import Link
from tandemq.client.spans import moment_of
from tandemq.client.url import Target

GAP = "gap"
MOST = 10_000  # events that wait for their reader before the connection is read no further
_FIXED = ("eventType", "queue", "jobId", "timestamp")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        type: pushed, pulled, completed, failed, retried, progress, ...; ``gap`` after the
            connection was lost: what happened meanwhile is not told.
        job_id: the job that it happened to, None for what concerns the queue.
        fields: what else is known: ``data``, ``error``, ``progress``, ...
    """

    type: str
    queue: str
    job_id: str | None
    at: datetime | None
    fields: dict[str, Any]


class Events:
    """The events of one queue, over a connection of their own that comes back when it is lost.

    Enter it to be sure that everything from then on is told; or just iterate.
    """

    def __init__(self, target: Target, queue: str) -> None:
        self.target, self.queue = target, queue
        self.proofs = proofs(target)
        self.restore: list[Restore] = [self._subscribe]
        self._waiting: deque[Event] = deque()
        self._line: Line | None = None
        self._link: Link | None = None
        self._news: asyncio.Event | None = None
        self._closed = self._missed = False

    async def __aenter__(self) -> Self:
        if self._closed:
            raise Closed("these events were closed: ask the queue for others")
        if self._line is None:
            self._news = asyncio.Event()
            self._line = Line(self)
            link = await self._line.connect()
            self._line.start(link)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the subscription."""
        self._closed = True
        if self._news is not None:
            self._news.set()
        if self._line is not None:
            await self._line.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        return event

    async def next(self) -> Event | None:
        """Wait for the next event; None when these events were closed.

        Raises:
            NotAuthorized, WrongServer, ConnectFailed: the connection is lost and cannot come back.
        """
        if not self._closed:
            await self.__aenter__()
        while not self._waiting:
            if self._ended():
                return None
            assert self._news is not None
            self._news.clear()
            await self._news.wait()
        event = self._waiting.popleft()
        if len(self._waiting) == MOST // 2 and self._link is not None:
            self._link.read(True)
        return event

    def _ended(self) -> bool:
        line = self._line
        if self._closed or line is None:
            return True
        if not line.running and line.error is not None:
            raise line.error
        return not line.running

    # -- what the line wants to know -------------------------------------------------------------

    async def _subscribe(self, link: Link) -> None:
        self._missed = self._link is not None
        link.on_event = self._hear
        await link.ask("SubscribeEvents", queue=self.queue)
        self._link = link
        self._tell_of_gap()

    def _tell_of_gap(self) -> None:
        if self._missed:
            self._missed = False
            self._put(Event(GAP, self.queue, None, None, {}))

    def _hear(self, fields: dict[str, Any]) -> None:
        self._tell_of_gap()
        extra = {name: value for name, value in fields.items() if name not in _FIXED}
        at = moment_of(fields["timestamp"])
        self._put(Event(fields["eventType"], fields["queue"], fields["jobId"] or None, at, extra))
        if len(self._waiting) == MOST and self._link is not None:
            self._link.read(False)

    def _put(self, event: Event) -> None:
        self._waiting.append(event)
        if self._news is not None:
            self._news.set()

    def free(self, link: Link) -> None:
        """Nothing waits for room here."""

    def changed(self, line: Line) -> None:
        """Wake whoever waits when nothing can come any more."""
        if line.state is State.DISCONNECTED and self._news is not None:
            self._news.set()
