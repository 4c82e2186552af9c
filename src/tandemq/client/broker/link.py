"""One connection to a broker, from its handshake to its end.

What is written in one turn of the loop goes out in one piece. While the socket takes no more it
waits here, and who has written it is told on a loss that the broker knows nothing of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from tandemq.client.broker.answers import refusal, word
from tandemq.client.dialing import keep_alive
from tandemq.client.errors import (
    ConnectFailed,
    ConnectionLost,
    LinkError,
    Misused,
    NotSent,
    PayloadTooLarge,
    Timeout,
    Unencodable,
    WrongServer,
)
from tandemq.wires.vibemq.caller import UNREADABLE, Caller
from tandemq.wires.vibemq.frames import Frame, Unsendable
from tandemq.wires.vibemq.kinds import Kind

GOODBYE: Final = "server_shutdown"  # the reason of a Disconnect, where none is given


class Link(asyncio.Protocol):
    """A connection; make a new one for each.

    Attributes:
        down: why it is over; None while it is there.
        held: messages that somebody works on.
        closed: done when the socket is gone, too.
    """

    def __init__(
        self,
        caller: Caller,
        peer: str,
        limit: int,
        deliver: Callable[[Link, Frame], None],
        gone: Callable[[Link, str], None],
    ) -> None:
        """``gone`` is called once: when the connection is over, or the server says goodbye."""
        self._caller, self._peer, self._limit = caller, peer, limit
        self._deliver, self._gone = deliver, gone
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._greeting: asyncio.Future[Frame] = self._loop.create_future()
        self._waiting: dict[str, asyncio.Future[Frame]] = {}
        self._out: dict[object, bytes] = {}  # by the id of a call, or by whatever else
        self._paused = self._retired = False
        self._heard = 0.0  # when something came last, on the loop's clock
        self._pinger: asyncio.Task[None] | None = None
        self.down: str | None = None
        self.held = 0
        self.closed: asyncio.Future[None] = self._loop.create_future()

    @property
    def over(self) -> str | None:
        """Why nothing new should be asked here; None while all is well."""
        return f"{self._peer} said goodbye" if self._retired else self.down

    @property
    def takes_back(self) -> bool:
        """Whether messages can be given back."""
        return self._caller.nack

    # -- from the socket -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        keep_alive(transport)

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        for frame in self._caller.receive(data):
            self._take(frame)
        if self._caller.broken is not None:
            self.end(self._caller.broken)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(f"{self._peer} closed the connection" + (f": {exc}" if exc else ""))
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._flush()

    def _take(self, frame: Frame) -> None:
        kind = frame.kind
        if not self._greeting.done():
            if kind == Kind.CONNECT_ACK:
                self._caller.welcome(frame)
            self._greeting.set_result(frame)
        elif kind == Kind.DELIVER:
            if not self._retired:
                self._deliver(self, frame)
        elif kind == Kind.DISCONNECT:
            self.retire((frame.headers or {}).get("reason", GOODBYE))
        else:
            answer = self._waiting.get(frame.id)  # None: it comes too late
            if answer is not None and not answer.done():
                answer.set_result(frame)

    # -- asking ----------------------------------------------------------------------------------

    async def greet(self, token: str | None, username: str | None, password: str | None) -> None:
        """Say who we are, and wait for the welcome.

        Raises:
            NotAuthorized, Refused, ConnectFailed, WrongServer
        """
        _, said = self._caller.connect(token=token, username=username, password=password)
        self._write(object(), said)
        answer = await self._greeting
        if answer.kind == Kind.ERROR and answer.code != UNREADABLE:
            raise refusal(Kind.CONNECT, answer)
        if answer.kind != Kind.CONNECT_ACK:
            raise WrongServer(f"{self._peer} is no VibeMQ broker: it does not answer Connect")

    async def call(
        self,
        kind: Kind,
        queue: str | None = None,
        payload: bytes | None = None,
        headers: dict[str, str] | None = None,
        *,
        timeout: float,
        id: str | None = None,
    ) -> Frame:
        """Ask for something, and return the answer; ``timeout`` in s.

        Raises:
            NotSent, ConnectionLost, Timeout, Refused, Unencodable
        """
        name = word(kind)
        if self.down is not None:
            raise NotSent(f"{name} was not sent: {self.down}")
        id, said = self._said(kind, queue, payload, headers, id)
        answer: asyncio.Future[Frame] = self._loop.create_future()
        self._waiting[id] = answer
        self._write(id, said)
        try:
            async with asyncio.timeout(timeout):
                frame = await answer
        except TimeoutError:
            if self._unwrite(id):
                raise NotSent(f"{name} was not sent: {self._peer} does not read") from None
            raise Timeout(f"{name}: no answer from {self._peer} within {timeout:g} s") from None
        finally:
            del self._waiting[id]
            self._unwrite(id)
            self._rest()
        if frame.kind == Kind.ERROR:
            raise refusal(kind, frame)
        return frame

    def _said(
        self,
        kind: Kind,
        queue: str | None,
        payload: bytes | None,
        headers: dict[str, str] | None,
        id: str | None,
    ) -> tuple[str, bytes]:
        if id in self._waiting:
            raise Misused(f"{word(kind)}: something else with the id {id} waits for its answer")
        try:
            id, said = self._caller.ask(kind, queue, payload, headers, id)
        except Unsendable as why:
            raise Unencodable(f"{word(kind)} cannot be sent: {why}") from None
        size = len(said) - self._caller.form.head
        if size > self._limit:
            text = f"the frame has {size} bytes, the broker reads {self._limit} (max_message_size)"
            raise PayloadTooLarge(word(kind), text)
        return id, said

    # -- telling ---------------------------------------------------------------------------------

    def ack(self, id: str) -> None:
        """Say that a message is done."""
        self._write(object(), self._caller.ack(id))

    def give_back(self, id: str, delay_ms: int) -> None:
        """Give a message back; where the server knows of no such thing nothing is said."""
        if self.takes_back:
            self._write(object(), self._caller.give_back(id, delay_ms))

    def tell(self, kind: Kind, queue: str) -> None:
        """Send a command whose answer nobody waits for."""
        self._write(object(), self._caller.ask(kind, queue)[1])

    def hold(self, change: int) -> None:
        """Somebody began to work on a message, or has ended."""
        self.held += change
        self._rest()

    def _write(self, key: object, said: bytes) -> None:
        self._out[key] = said
        if len(self._out) == 1 and not self._paused:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._out and not self._paused and self.down is None:
            out, self._out = self._out, {}
            self._transport.write(b"".join(out.values()))

    def _unwrite(self, id: str) -> bool:
        """Take back what was not written yet; False where it was."""
        return self._out.pop(id, None) is not None

    # -- staying, and going ----------------------------------------------------------------------

    def keep_alive(self, interval: float, limit: float) -> None:
        """Ask for a sign of life every so many s, and go without one within ``limit`` s."""
        self._pinger = self._loop.create_task(self._ping(interval, limit))

    async def _ping(self, interval: float, limit: float) -> None:
        while True:
            await asyncio.sleep(interval)
            asked = self._loop.time()
            try:
                await self.call(Kind.PING, timeout=limit)
            except (Timeout, LinkError):
                if self._heard < asked:  # not even a part of a large frame
                    self.end(f"{self._peer} gave no sign of life for {limit:g} s")
                    return

    def retire(self, reason: str) -> None:
        """The server says goodbye: only what is begun is ended here."""
        self._retired = True
        self._gone(self, f"{self._peer} said goodbye ({reason})")
        self._rest()

    def _rest(self) -> None:
        if self._retired and not self.held and not self._waiting:
            self.leave()

    def leave(self) -> None:
        """Say goodbye, and close when it is written."""
        if self.down is None:
            self._out[None] = self._caller.ask(Kind.DISCONNECT)[1]
            self._paused = False
            self._flush()
            self._close("it was closed on this side", self._transport.close)

    def abort(self) -> None:
        """Close although not everything is written."""
        self._transport.abort()

    def end(self, reason: str) -> None:
        """It is over: whoever waits is told."""
        if self._transport is not None:
            self._close(reason, self._transport.abort)

    def _close(self, reason: str, close: Callable[[], None]) -> None:
        if self.down is not None:
            return
        self.down = reason
        unsent, self._out = self._out, {}
        if self._pinger is not None:
            self._pinger.cancel()
        close()
        if not self._greeting.done():
            wrong = self._caller.broken is not None
            self._greeting.set_exception((WrongServer if wrong else ConnectFailed)(reason))
            self._greeting.exception()  # told, whether or not somebody waits
        for id, answer in self._waiting.items():
            if not answer.done():
                lost = NotSent if id in unsent else ConnectionLost
                answer.set_exception(lost(f"the connection was lost: {reason}"))
        self._gone(self, reason)
