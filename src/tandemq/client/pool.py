"""A pool of connections: every call finds one with room, or waits for it in its turn."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from copy import copy
from itertools import count
from typing import Any, cast
from weakref import WeakKeyDictionary

from tandemq.client.adding import Adding
from tandemq.client.calls import Call, Deadlines
from tandemq.client.errors import (
    Closed,
    NotSent,
    TandemqError,
    Unencodable,
    WrongLoop,
)
from tandemq.client.forks import generation
from tandemq.client.line import HOPELESS, Line, Restore, State, proofs
from tandemq.client.link import Link
from tandemq.client.results import Results
from tandemq.client.spans import Span, seconds
from tandemq.client.url import Target, target
from tandemq.wires.bunqueue import caller

log = logging.getLogger("tandemq.client")

# Commands whose answer waits on purpose, for as many ms as they say.
PATIENT = {"PULL": 0, "PULLB": 0, "WaitJob": 30_000}

# What a forked child, or a later loop, found of its predecessor: touching it would disturb the
# other process, whose sockets these are too.
_left_behind: list[Any] = []
_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Target, Pool]] = WeakKeyDictionary()


class Pool:
    """Connections to one server, opened as they are needed, kept up until ``close``.

    Calls go round robin to connected links with room. Nothing is ever sent twice by itself.

    Attributes:
        restore: awaited with each new link before it takes calls; for what belongs to a connection.
    """

    def __init__(self, url: str | Target | None = None, **options: Any) -> None:
        """Nothing is opened before the first call.

        Raises:
            WrongUrl, BadOption
        """
        self.target = target(url, **options)
        self.restore: list[Restore] = []
        self.proofs = proofs(self.target)
        self.closed = False
        self.users = 0  # who share it
        self._usual = cast(float, self.target.options.command_timeout)
        self._numbers = count(1)
        self.adding = Adding(self)
        self.results = Results(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begin()

    @classmethod
    def shared(cls, url: str | Target | None = None, **options: Any) -> Pool:
        """Return the pool that all of this event loop share who name the same server and options.

        Each of them gives it back with ``release``.

        Raises:
            WrongLoop: there is no event loop here.
            WrongUrl, BadOption
        """
        try:
            pools = _shared.setdefault(asyncio.get_running_loop(), {})
        except RuntimeError:
            raise WrongLoop(
                "a shared pool belongs to an event loop: make it inside of one"
            ) from None
        named = target(url, **options)
        if named not in pools or pools[named].closed:
            pools[named] = cls(named)
        pools[named].users += 1
        return pools[named]

    async def release(self) -> None:
        """Give back what ``shared`` returned; the last one closes it."""
        self.users -= 1
        if self.users <= 0:
            await self.close()

    def _begin(self) -> None:
        self._born = generation()
        self._lines: list[Line] = []
        self._turn = 0
        self._waiting: deque[Call] = deque()
        self._missed = False  # there was no connection, and that was told
        self._deadlines: Deadlines | None = None

    # -- calls ---------------------------------------------------------------------------------

    async def call(
        self, command: str, /, *, patience: Span | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Ask the server for something and return the fields of its answer.

        ``patience`` is how long the answer may take, ``command_timeout`` by default; what a command
        waits for on purpose (``timeout`` of PULL, in ms) comes on top.

        Raises:
            Refused, Timeout, ConnectionLost, NotSent, Unencodable, Closed, WrongLoop
        """
        return await self.send(command, fields, patience)

    def send(
        self, command: str, fields: dict[str, Any], patience: Span | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        """As ``call``, without a coroutine: the future resolves with the answer."""
        id = self.new_id()
        try:
            frame = caller.request(command, fields, id)
        except caller.Unwritable as error:
            raise Unencodable(str(error)) from None
        if patience is not None:
            limit = seconds(patience, "patience")
        else:
            limit = self._usual
            if command in PATIENT:
                wait = fields.get("timeout") or PATIENT[command]
                limit += wait / 1000 if isinstance(wait, (int, float)) else 0
        return self.dispatch(command, id, frame, limit)

    def new_id(self) -> str:
        """Return an id for a request, never used before in this pool."""
        return str(next(self._numbers))

    def dispatch(
        self, command: str, id: str, frame: bytes, patience: float | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        """Send a frame as soon as a link has room; ``patience`` is in seconds."""
        loop = self.checked_loop()
        if len(frame) > caller.MAX_FRAME:
            raise Unencodable(f"{command} of {len(frame)} bytes: no frame may be above 64 MiB")
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        limit = self._usual if patience is None else patience
        call = Call(command, id, frame, answer, limit, loop.time())
        link = None if self._waiting else self._pick()
        if link is not None:
            link.send(call)
        else:
            self._waiting.append(call)
            cast(Deadlines, self._deadlines).watch(call.deadline)
        if len(self._lines) < self.target.options.pool_size or link is None:
            self._grow(link)
        return answer

    def checked_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running loop, which is this pool's.

        Raises:
            Closed, WrongLoop
        """
        loop = asyncio.get_running_loop()
        if self.closed:
            raise Closed("this client was closed: make a new one")
        if loop is not self._loop or self._born != generation():
            self._move_to(loop)
        return loop

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Belong to a loop: the first one, that of a forked child, or one after another's end."""
        if self._loop is not None:
            if self._born == generation() and not self._loop.is_closed():
                raise WrongLoop(
                    "this client is used in another event loop already: make one for each loop, "
                    "or use the sync Client"
                )
            _left_behind.append((self._loop, self._lines, self._waiting))
            self._begin()
            self.adding.forget()
            self.results.forget()
        self._loop = loop
        self._deadlines = Deadlines(loop, lambda: self._waiting, self._expire)

    def _pick(self) -> Link | None:
        lines = self._lines
        for _ in lines:
            self._turn = (self._turn + 1) % len(lines)
            link = lines[self._turn].link
            if link is not None and link.room:
                return link
        return None

    def _grow(self, picked: Link | None) -> None:
        """Start another line where all are busy, and those that had given up where all had."""
        if picked is not None and picked.in_flight <= 1:
            return
        if len(self._lines) < self.target.options.pool_size:
            self._lines.append(Line(self))
        for line in self._lines:
            line.start()

    def _expire(self, due: list[Call]) -> None:
        for call in due:
            reason = self._trouble() or self._busy()
            text = f"{call.command} was not sent within {call.patience:g} s: {reason}"
            call.fail(NotSent(text))
        self._waiting = deque(call for call in self._waiting if not call.answer.done())

    @property
    def _links(self) -> list[Link]:
        return [line.link for line in self._lines if line.link is not None]

    def _busy(self) -> str:
        return "all links are busy" if self._links else f"{self.target} is not connected yet"

    def _trouble(self) -> TandemqError | None:
        return next((line.error for line in self._lines if line.error is not None), None)

    # -- what lines tell -----------------------------------------------------------------------

    def free(self, link: Link) -> None:
        """Hand calls that wait to a link with room."""
        waiting = self._waiting
        while waiting and link.room:
            call = waiting.popleft()
            if not call.answer.done():
                link.send(call)

    def changed(self, line: Line) -> None:
        """Tell of a connection that is awaited; fail what waits when no line can come any more."""
        self._tell(line)
        if line.state is not State.DISCONNECTED or (error := line.error) is None:
            return
        if any(each.running and each is not line for each in self._lines):
            return
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            hopeless = isinstance(error, HOPELESS)
            call.fail(copy(error) if hopeless else NotSent(f"{call.command} was not sent: {error}"))

    def _tell(self, line: Line) -> None:
        """Log once that there is no connection, so that nobody wonders why nothing happens."""
        if line.state is State.CONNECTED and self._missed:
            self._missed = False
            log.info("connected to %s", self.target)
        elif line.state is State.RECONNECTING and not self._missed and not self._links:
            self._missed = True
            log.warning("no connection, trying again: %s", line.error)

    # -- life ----------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The best state that one of its lines has."""
        found = {line.state for line in self._lines}
        order = (State.CONNECTED, State.RECONNECTING, State.CONNECTING)
        return next((state for state in order if state in found), State.DISCONNECTED)

    async def connect(self) -> dict[str, Any]:
        """Make sure that there is a connection, with one attempt; return what the server said.

        Raises:
            ConnectFailed, WrongServer, CertificateRefused, NotAuthorized, BadOption, Closed
        """
        self.checked_loop()
        link = self._pick() or next(iter(self._links), None)
        if link is None:
            line = Line(self)
            link = await line.connect()
            if self.closed:  # meanwhile
                link.close()
                self.checked_loop()
            self._lines.append(line)
            line.start(link)
        return link.server

    def stats(self) -> list[dict[str, Any]]:
        """Return the state of each link: latency (moving average, ms), answers, errors."""
        return [
            {
                "state": str(line.state),
                "in_flight": line.link.in_flight if line.link else 0,
                "latency_ms": None
                if line.figures.latency is None
                else round(line.figures.latency * 1000, 3),
                "answers": line.figures.answers,
                "errors": line.figures.errors,
                "connects": line.figures.connects,
                "last_error": str(line.error) if line.error else None,
            }
            for line in self._lines
        ]

    async def close(self) -> None:
        """Close every connection; what waits fails, and later calls do too."""
        if self.closed:
            return
        self.closed = True
        if self._born != generation() or self._loop is not asyncio.get_running_loop():
            _left_behind.append((self._loop, self._lines, self._waiting))
            return
        for call in self._waiting:
            call.fail(NotSent(f"{call.command} was not sent: this client was closed"))
        self._waiting.clear()
        if self._deadlines is not None:
            self._deadlines.stop()
        await asyncio.gather(*(line.stop() for line in self._lines))
