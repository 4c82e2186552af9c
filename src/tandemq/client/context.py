"""The job in hand, as its handler sees it; the same in a loop, a thread and a process."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from datetime import datetime
from typing import Any, Protocol

import msgspec

from tandemq.client.errors import Cancelled
from tandemq.client.spans import moment_of


class Leased(msgspec.Struct, rename="camel"):
    """What a worker reads of a job that it was given; the rest of the job object is skipped."""

    id: str
    queue: str
    data: Any = None
    name: str | None = None
    attempts: int = 0
    max_attempts: int = 3
    priority: float = 0
    created_at: float = 0
    timeout: float | None = None  # ms
    group_id: str | None = None
    parent_id: str | None = None
    tags: tuple[str, ...] = ()


class Voice(Protocol):
    """How a handler, wherever it runs, speaks to its worker."""

    @property
    def cancelled(self) -> bool:
        """Whether the handler should end."""
        ...

    def tell(self, command: str, fields: dict[str, Any]) -> Awaitable[Any]:
        """Send something about the job; outside a loop it has been answered on return."""
        ...


class Told:
    """What ``tell`` returns where nothing is left to wait for."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


class Nowhere:
    """The voice of a task that is called as a function: nobody listens."""

    cancelled = False

    def tell(self, command: str, fields: dict[str, Any]) -> Awaitable[Any]:
        return Told()


class Context:
    """The job in hand: what it is, and what can be said of it while it runs.

    ``progress`` and ``log`` are awaited in asynchronous handlers and simply called in others.

    Attributes:
        id, queue, name: of the job.
        attempt: which run this is, beginning with 1.
        max_attempts: how many there may be.
        priority: higher is sooner.
        group, parent: ids, or None.
        tags: what it was tagged with.
        data: what it carries, as plain values.
    """

    def __init__(self, job: Leased, voice: Voice) -> None:
        self.id, self.queue, self.name = job.id, job.queue, job.name
        self.attempt, self.max_attempts = job.attempts + 1, job.max_attempts
        self.priority, self.group, self.parent = job.priority, job.group_id, job.parent_id
        self.tags = job.tags
        self.data: Any = job.data
        self._job, self._voice = job, voice

    def __repr__(self) -> str:
        return f"<{self.name or 'job'} {self.id} of {self.queue}, attempt {self.attempt}>"

    @property
    def created(self) -> datetime | None:
        """When it was added, in UTC."""
        return moment_of(self._job.created_at)

    @property
    def cancelled(self) -> bool:
        """Whether this run should end: its lease is lost, its time is over, or somebody said so.

        Asynchronous handlers get ``asyncio.CancelledError`` besides.
        """
        return self._voice.cancelled

    def check(self) -> None:
        """Raise ``Cancelled`` if this run should end; for loops of handlers in threads."""
        if self.cancelled:
            raise Cancelled(f"job {self.id} was cancelled")

    def progress(self, percent: float, message: str | None = None) -> Awaitable[Any]:
        """Tell how far the job is, from 0 to 100."""
        said = {} if message is None else {"message": message}
        return self._voice.tell("Progress", {"id": self.id, "progress": percent, **said})

    def log(self, message: str, level: str = "info") -> Awaitable[Any]:
        """Write a line into the job's log, which ``tandemq job logs`` shows."""
        return self._voice.tell("AddLog", {"id": self.id, "message": message, "level": level})


def alone(name: str) -> Context:
    """Return the context of a task that is called as a function."""
    return Context(Leased(id="", queue="", name=name), Nowhere())
