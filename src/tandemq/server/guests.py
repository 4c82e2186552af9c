"""Callers of the runtime that have no socket of the wires: they are answered with values.

They ask like a connection does, under the same rules: they wait where publishers wait, and are
answered when what they changed is kept, or are told that it could not be.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from tandemq.commands.call import Call
from tandemq.engine import consume
from tandemq.model.outcome import Late, Reply
from tandemq.wires.bunqueue.session import late_reply

if TYPE_CHECKING:
    from tandemq.server.accounts import Identity
    from tandemq.server.connections import Connection
    from tandemq.server.guard import Window
    from tandemq.server.runtime import Runtime

Asked = asyncio.Future[Any]
STOPPED = "the server has stopped"


class Said(bytes):
    """An answer that stands where others have bytes, and has none."""

    asked: Asked
    value: Any

    @classmethod
    def to(cls, asked: Asked, value: Any) -> Said:
        said = cls()
        said.asked, said.value = asked, value
        return said


class Values:
    """A session whose answers are values."""

    def answer(self, reply: Any, req: Asked) -> Said:
        """Return the good answer of a request."""
        return Said.to(req, reply)

    def refuse(self, error: BaseException, req: Asked) -> Said:
        """Return the answer that tells of an error."""
        return Said.to(req, error)

    def late(self, effect: Reply | Late) -> tuple[Said, Asked]:
        """Return the answer of a request that had waited."""
        req, reply = late_reply(effect)
        return Said.to(req, reply), req


VALUES = Values()


class Guest:
    """Asks, and waits for the answer; it counts as a connection only while it does."""

    limiter: Window | None = None
    is_broker = False
    busy = False
    delivered = 0.0
    asking = 0  # bytes of what it has asked and is not answered
    failed_logins = 0
    broken = True
    backlog: ClassVar[deque[Any]] = deque()  # stays empty: nothing of a guest is ever put off

    def __init__(
        self,
        runtime: Runtime,
        title: str,
        *,
        trusted: bool = False,
        origin: str = "",
        transport: asyncio.BaseTransport | None = None,
        lasting: bool = False,
    ) -> None:
        """``transport`` is where it came from, if that is known: it may have hung up.

        One that is ``lasting`` counts as a connection until it is ``gone``, and what it was given
        of jobs goes back then.
        """
        self.id = runtime.next_id()
        self.trusted, self.title, self.origin, self.transport = trusted, title, origin, transport
        self.user: str | None = None
        self.identity: Identity | None = None  # whom it has proved to be
        self.session: Any = VALUES
        self.call = Call(runtime.engine, runtime, self)
        self.out: list[Said] = []
        self.owed = self.waiting = 0
        self.window = float("inf")
        self.spared: int | None = None
        self.farewell: Callable[[], object] | None = None  # called when it is gone
        self.runtime = runtime
        self._lasting = lasting
        self._asked: set[Asked] = set()

    @property
    def kept_bytes(self) -> int:
        """About what is kept for it; who only asks once has a line that counts it."""
        if not self._lasting or self.transport is None:
            return 0
        transport = cast("asyncio.WriteTransport", self.transport)
        return transport.get_write_buffer_size() + self.asking

    async def ask(self, request: Any) -> Any:
        """Run a request and return its answer.

        Raises:
            TandemqError: it was refused, or could not be kept.
            ConnectionError: the server has stopped meanwhile, or the guest was shown out.
        """
        runtime = self.runtime
        self.enter()
        request.req_id = asked = runtime.loop.create_future()
        self._asked.add(asked)
        runtime.received(cast("Connection", self), [request])
        try:
            return await asked
        finally:
            self._asked.discard(asked)
            if not (self._asked or self._lasting):
                self._left(answered=asked.done() and not asked.cancelled())

    def enter(self) -> None:
        """Count as a connection, as whom it has proved to be.

        Raises:
            Unauthenticated: that holds no longer.
        """
        if self.user is None and self.identity is not None:
            self.runtime.accounts.admit(self, self.identity)
        self.runtime.connections[self.id] = cast("Connection", self)

    def _left(self, *, answered: bool) -> None:
        runtime, connection = self.runtime, cast("Connection", self)
        if answered:
            runtime.connections.pop(self.id, None)
            runtime.accounts.left(connection)
        else:
            runtime.lost(connection)  # whoever asked has gone: nothing may be handed out any more

    def flush(self) -> None:
        """Hand over what was said in this turn; what it was given of jobs outlives it."""
        out, self.out = self.out, []
        self.owed -= sum(map(len, out))
        self.keep()
        for said in out:
            if said.asked.done():  # nobody waits any more
                continue
            if isinstance(said.value, BaseException):
                said.asked.set_exception(said.value)
            else:
                said.asked.set_result(said.value)

    def keep(self) -> None:
        """Let what it was given outlive it, unless it is known not to have seen that."""
        engine = self.runtime.engine
        if self.id in engine.leased_by and self.spared is None and not self._lasting:
            consume.keep(engine, self.id)
        if not self._lasting:
            engine.workers.keep(self.id)

    def hold(self) -> None:
        """Start no more requests; a guest has one at a time."""

    def let_go(self) -> None:
        """Start requests again after what was waited for."""
        self.window = float("inf")

    def leave(self) -> None:
        """Others would hang up."""

    def close(self) -> None:
        """The server stops, or the guest may not stay: what was not answered never will be."""
        self.flush()
        self.gone()

    def gone(self) -> None:
        """It has hung up: what it waits for ends, and what it has not seen goes back."""
        self.runtime.lost(cast("Connection", self))
        for asked in list(self._asked):
            if not asked.done():
                asked.set_exception(ConnectionError(STOPPED))
        if self.farewell is not None:
            self.farewell()
