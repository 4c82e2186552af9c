"""The program that a server is embedded in, as one of its callers.

It asks like a connection does, under the same rules: it waits where publishers wait, and is
answered when what it changed is kept, or is told that it could not be. Instead of bytes it is
answered with values.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from tandemq.commands.call import Call
from tandemq.commands.table import BY_REQUEST
from tandemq.model.outcome import Late

if TYPE_CHECKING:
    from tandemq.server.connections import Connection
    from tandemq.server.runtime import Runtime

Asked = asyncio.Future[Any]


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

    def late(self, effect: Late) -> tuple[Said, Asked]:
        """Return the answer of a request that had waited."""
        return Said.to(effect.req, effect.reply), effect.req


class Inside:
    """Asks, and waits for the answer; it counts as a connection only while it does."""

    trusted = True
    user: str | None = None
    title = "this program"
    limiter = None
    is_broker = False
    busy = False
    delivered = 0.0
    spared = None
    kept_bytes = 0
    backlog = ()

    def __init__(self, runtime: Runtime) -> None:
        self.id = runtime.next_id()
        self.session = Values()
        self.call = Call(runtime.engine, runtime, self)
        self.out: list[Said] = []
        self.owed = self.waiting = 0
        self.window = float("inf")
        self._runtime = runtime
        self._asked: set[Asked] = set()

    async def ask(self, request: Any) -> Any:
        """Run a request and return its answer.

        Raises:
            TandemqError: it was refused, or could not be kept.
            ConnectionError: the server has stopped meanwhile.
        """
        runtime = self._runtime
        request.req_id = asked = runtime.loop.create_future()
        self._asked.add(asked)
        asked.add_done_callback(self._answered)
        connection = cast("Connection", self)
        runtime.connections[self.id] = connection
        runtime.received(connection, [request])
        return await asked

    def look(self, request: Any) -> Any:
        """Run a request that changes nothing, at once."""
        self.call.now = self._runtime.begin()
        return BY_REQUEST[type(request)].run(request, self.call)

    def flush(self) -> None:
        """Hand over what was said in this turn."""
        out, self.out = self.out, []
        for said in out:
            if said.asked.done():  # nobody waits any more
                continue
            if isinstance(said.value, BaseException):
                said.asked.set_exception(said.value)
            else:
                said.asked.set_result(said.value)

    def let_go(self) -> None:
        """Start requests again after what was waited for."""
        self.window = float("inf")

    def leave(self) -> None:
        """Others would hang up."""

    def close(self) -> None:
        """The server stops: what it has not answered it never will."""
        self.flush()
        for asked in list(self._asked):
            if not asked.done():
                asked.set_exception(ConnectionError("the server has stopped"))

    def _answered(self, asked: Asked) -> None:
        self._asked.discard(asked)
        if not self._asked:
            self._runtime.connections.pop(self.id, None)
