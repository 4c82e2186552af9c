"""The feed of all that happens, for those who look on over HTTP.

Everything gets a number and is written once in each form. Those who want the same are one audience:
what is for them is collected and leaves in one write for each of them, and the more there are the
longer it is collected, so that a thousand of them cost a part of a core however much happens.

The newest events of jobs are kept for those who come again (``Last-Event-ID``), also for a while
after the last one has left.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from tandemq.model.outcome import Event, Remark
from tandemq.model.permission import Operation
from tandemq.server.meter import now_ms
from tandemq.server.pulse import Pulse, counts_of
from tandemq.server.telling import Form, Told, as_sse

if TYPE_CHECKING:
    from tandemq.engine.core import Engine
    from tandemq.server.runtime import Runtime

log = logging.getLogger("tandemq.server")

KEPT: Final = 1_000  # events of jobs that can be told again
LINGERS: Final = 60.0  # s that they are kept when nobody looks on
APIECE: Final = 50e-6  # s that things are collected, for each of those who are told
COUNTS: Final = 0.2  # s between two looks at the queues of which something was told


SSE: Final = "sse"
SOCKET: Final = "websocket"
MOST: Final = 1_000  # who look on in the same way


class Full(Exception):
    """There are as many as there may be."""


class Listener(Protocol):
    """Somebody who is told."""

    def write(self, data: bytes) -> None:
        """Send things that are written already; it may not wait, and hangs up where it would."""


class Wants(NamedTuple):
    """What somebody wants to be told, and may be."""

    form: Form
    queue: str | None = None  # the events of its jobs only; None: of all queues
    user: str | None = None  # who has to be allowed to subscribe; None may hear everything
    patterns: frozenset[str] | None = None  # names; None is all of them

    def include(self, told: Told, engine: Engine) -> bool:
        """Whether a thing is one of those."""
        if told.is_job and self.queue not in (None, told.queue):
            return False
        if self.patterns is not None and self.patterns.isdisjoint(_patterns_of(told.name)):
            return False
        if self.user is None:
            return True
        queue = told.queue
        return queue is not None and Operation.SUBSCRIBE in engine.users.allowed(self.user, queue)


def _patterns_of(name: str) -> tuple[str, ...]:
    return name, name.partition(":")[0] + ":*", "*"


class Audience:
    """Those who want the same."""

    __slots__ = ("listeners", "pending")

    def __init__(self) -> None:
        self.listeners: dict[Listener, None] = {}
        self.pending: list[bytes] = []

    def flush(self) -> None:
        """Tell everybody what was collected, in one write each."""
        if self.pending:
            data = b"".join(self.pending)
            self.pending.clear()
            for listener in list(self.listeners):
                listener.write(data)


class Feed:
    """Who looks on, and what they are told."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._engine = runtime, runtime.engine
        self._audiences: dict[Wants, Audience] = {}
        self._kept: deque[tuple[Told, bytes]] = deque(maxlen=KEPT)
        self._number = 0  # of the newest thing
        self._size = 0  # how many look on
        self._flushed = 0.0  # when, by the loop's clock
        self._flush_timer: asyncio.TimerHandle | None = None
        self._rest_timer: asyncio.TimerHandle | None = None
        self._counts_timer: asyncio.TimerHandle | None = None
        self._touched: dict[str, None] = {}  # queues of which events were told
        self._on = False
        self.open = Counter({SOCKET: 0, SSE: 0})
        self._pulse = Pulse(runtime, self)

    def __len__(self) -> int:
        """Return how many look on."""
        return self._size

    # -- who looks on --------------------------------------------------------------------------

    @contextmanager
    def place(self, kind: str) -> Iterator[None]:
        """Take one of the places for those who look on over ``kind``.

        Raises:
            Full: there is none.
        """
        if self.open[kind] >= MOST:
            raise Full
        self.open[kind] += 1
        try:
            yield
        finally:
            self.open[kind] -= 1

    def join(self, listener: Listener, wants: Wants) -> None:
        """Tell somebody of what happens from now on."""
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None
        if not self._on:
            self._on = True
            self._runtime.observers.survey(self.look)
        if not self._size:
            self._pulse.start()
        audience = self._audiences.setdefault(wants, Audience())
        audience.flush()  # what is for the others happened before
        audience.listeners[listener] = None
        self._size += 1

    def leave(self, listener: Listener, wants: Wants) -> None:
        """Tell somebody of nothing more."""
        audience = self._audiences.get(wants)
        if audience is None or listener not in audience.listeners:
            return
        del audience.listeners[listener]
        if not audience.listeners:
            del self._audiences[wants]
        self._size -= 1
        if not self._size:
            self._pulse.stop()
            self._rest_timer = self._runtime.loop.call_later(LINGERS, self._rest)

    def since(self, number: int, wants: Wants) -> bytes:
        """Return the events of jobs after one of that number, as far as they are kept.

        A number that was not reached yet is of an earlier run of the server: all are newer.
        """
        first = number if number <= self._number else 0
        engine = self._engine
        kept = (told for told in self._kept if told[0].number > first)
        return b"".join(data for told, data in kept if wants.include(told, engine))

    def close(self) -> None:
        """Keep nothing more."""
        for timer in (self._flush_timer, self._rest_timer, self._counts_timer):
            if timer is not None:
                timer.cancel()
        self._pulse.stop()
        self._rest()

    def _rest(self) -> None:
        self._rest_timer, self._on = None, False
        self._kept.clear()
        self._runtime.observers.end_survey(self.look)

    # -- what happens --------------------------------------------------------------------------

    def look(self, happened: Event | Remark) -> None:
        """Something has happened."""
        self._number += 1
        told = Told(self._number, happened)
        if isinstance(happened, Event):
            self._kept.append((told, as_sse(told)))
            self._touched[happened.queue] = None
            if self._counts_timer is None:
                self._counts_timer = self._runtime.loop.call_later(COUNTS, self._count)
        self._tell(told, happened)

    def say(self, name: str, form: Form | None = None, /, **fields: object) -> None:
        """Tell of the server as a whole; only in one form, if it is given."""
        if not self._size:
            return
        self._number += 1
        happened = Remark(name, None, now_ms(), fields)
        self._tell(Told(self._number, happened), happened, form)

    def store_changed(self) -> None:
        """Tell that the store can be written no more, or again."""
        if self._size:
            self._pulse.storage()

    def say_last(self, name: str) -> None:
        """Tell it, and whatever waits to be told, at once: nobody may be here any more soon."""
        self.say(name)
        self._flush()

    def comment(self, data: bytes, form: Form) -> None:
        """Send something that is nothing to be told."""
        self._collect(data, (a for wants, a in self._audiences.items() if wants.form is form))

    def _tell(self, told: Told, happened: Event | Remark, only: Form | None = None) -> None:
        wanting: dict[Form, list[Audience]] = {}
        for wants, audience in self._audiences.items():
            if only in (None, wants.form) and wants.include(told, self._engine):
                wanting.setdefault(wants.form, []).append(audience)
        for form, audiences in wanting.items():
            if data := form(told, happened):
                self._collect(data, audiences)

    def _collect(self, data: bytes, audiences: Iterable[Audience]) -> None:
        for audience in audiences:
            audience.pending.append(data)
        if self._flush_timer is None:
            loop = self._runtime.loop
            at = self._flushed + APIECE * self._size
            self._flush_timer = loop.call_at(max(at, loop.time()), self._flush)

    def _flush(self) -> None:
        for audience in list(self._audiences.values()):
            audience.flush()
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        self._flush_timer, self._flushed = None, self._runtime.loop.time()

    def _count(self) -> None:
        """Tell how the queues are of which something was told."""
        self._counts_timer = None
        touched, self._touched = self._touched, {}
        now, queues = now_ms(), self._engine.queues
        for name in touched:
            if self._size:
                self.look(Remark("queue:counts", name, now, counts_of(name, queues.get(name))))
