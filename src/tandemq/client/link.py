"""One connection to a server: greeting, calls in flight, signs of life; it never comes back.

All frames of a turn of the loop leave in one write. A dead peer is found by pings and by calls that
get no answer (half-open sockets report nothing); whatever was in flight then fails at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, cast

from tandemq.client.calls import Call, Deadlines, looked_at
from tandemq.client.dialing import keep_alive
from tandemq.client.errors import (
    ConnectionLost,
    LinkError,
    NotAuthorized,
    NotSent,
    Timeout,
    WrongServer,
    refusal,
)
from tandemq.client.url import Target
from tandemq.wires.bunqueue.caller import Caller, Garbled, is_event, request

PROTOCOL = 3
CAPABILITIES = ("pipelining", "separate-job-name")
SMOOTHING = 0.1  # share of the newest latency in the moving average

Event = dict[str, Any]


class Figures:
    """What is known of the connections that one place in the pool had."""

    def __init__(self) -> None:
        self.latency: float | None = None  # moving average, in seconds
        self.answers = 0
        self.errors = 0  # lost connections, failed attempts, calls without an answer
        self.connects = 0


class Link(asyncio.Protocol):
    """A connection from its first byte to its last.

    Attributes:
        lost: resolved with the reason when the connection is gone.
        server: what the server said of itself.
        ready: set when it may take calls of others: it is greeted, and what belongs to it restored.
    """

    def __init__(self, target: Target, figures: Figures, free: Callable[[Link], None]) -> None:
        """``free`` is told whenever there may be room for another call, once it is ready."""
        self._loop = asyncio.get_running_loop()
        self._target, self._options, self._free = target, target.options, free
        self.figures = figures
        self.lost: asyncio.Future[LinkError] = self._loop.create_future()
        self.server: dict[str, Any] = {}
        self.ready = False
        self.on_event: Callable[[Event], None] | None = None
        self._transport: asyncio.Transport | None = None
        self._caller = Caller()
        self._calls: dict[str | None, Call] = {}
        self._unwritten: list[Call] = []
        self._flushing = self._shut = self._greeted = False
        self._numbers = count(1)
        self._deadlines = Deadlines(self._loop, self._calls.values, self._expire)
        self._ping_timer: asyncio.TimerHandle | None = None
        self._silent_pings = self._silent_calls = 0
        self._reason: LinkError | None = None  # why this side ended it
        self._last_words = ""  # of the server, to nothing in particular

    # -- calls ---------------------------------------------------------------------------------

    @property
    def room(self) -> bool:
        """Whether it takes another call now."""
        return len(self._calls) < self._options.window and not self._shut

    @property
    def in_flight(self) -> int:
        """Calls without their answers."""
        return len(self._calls)

    def send(self, call: Call) -> None:
        """Write a call before the loop turns again."""
        call.began = now = self._loop.time()
        call.deadline = now + call.patience
        self._calls[call.id] = call
        self._deadlines.watch(call.deadline)
        self._unwritten.append(call)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def ask(self, command: str, **fields: Any) -> asyncio.Future[dict[str, Any]]:
        """Send a call of the link's own, whatever else is in flight; for greetings and the like.

        The future raises what ``Pool.call`` does.
        """
        id = f"own-{next(self._numbers)}"
        frame = request(command, fields, id)
        patience = cast(float, self._options.command_timeout)
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        if self.lost.done() or self._reason:
            answer.set_exception(NotSent(f"{command} was not sent: the connection is gone"))
            return answer
        self.send(Call(command, id, frame, answer, patience, self._loop.time()))
        return answer

    def _flush(self) -> None:
        self._flushing = False
        transport = self._transport
        if transport is None or transport.is_closing():
            return  # what was not written yet never will be
        calls, self._unwritten = self._unwritten, []
        transport.write(b"".join([call.frame for call in calls]))

    def _expire(self, due: list[Call]) -> None:
        for call in due:
            del self._calls[call.id]
            self._silent_pings += call.ping
            self._silent_calls += not call.ping
            self.figures.errors += 1
            text = f"{call.command}: no answer from {self._target} in {call.patience:g} s"
            call.fail(Timeout(text))
        pings, calls = self._options.max_ping_failures, self._options.max_command_timeouts
        if pings and self._silent_pings >= pings:
            self.end(ConnectionLost(f"{self._target} answered none of {pings} pings"))
        elif calls and self._silent_calls >= calls:
            self.end(ConnectionLost(f"{self._target} answered none of {calls} calls"))
        else:
            self._offer()

    def _offer(self) -> None:
        if self.ready:
            self._free(self)

    # -- greeting and signs of life ------------------------------------------------------------

    async def greet(self, proofs: Sequence[dict[str, str]]) -> int:
        """Send Hello and the first proof in one write; return the index of the proof that held.

        A server that wants proof before anything else is greeted again when it has it.

        Raises:
            NotAuthorized, WrongServer, LinkError, Timeout
        """
        asked = [self._hello(), *(self.ask("Auth", **proof) for proof in proofs[:1])]
        welcome, *proved = await asyncio.gather(*asked, return_exceptions=True)
        held = 0
        if proved and isinstance(proved[0], BaseException):
            held = await self._prove(proofs, proved[0])
        if proofs and isinstance(welcome, NotAuthorized):
            welcome = await self._hello()
        if isinstance(welcome, BaseException):
            raise welcome
        self.server = welcome
        self._greeted = True
        return held

    def _hello(self) -> asyncio.Future[dict[str, Any]]:
        return self.ask("Hello", protocolVersion=PROTOCOL, capabilities=CAPABILITIES)

    async def _prove(self, proofs: Sequence[dict[str, str]], refused: BaseException) -> int:
        for index, proof in enumerate(proofs[1:], 1):
            if isinstance(refused, NotAuthorized):
                try:
                    await self.ask("Auth", **proof)
                except NotAuthorized as error:
                    refused = error
                else:
                    return index
        raise refused

    def _ping_later(self) -> None:
        interval = cast(float, self._options.ping_interval)
        if interval:
            self._ping_timer = self._loop.call_later(interval, self._ping, interval)

    def _ping(self, interval: float) -> None:
        patience = min(interval, cast(float, self._options.command_timeout))
        id = f"own-{next(self._numbers)}"
        answer = self._loop.create_future()
        answer.add_done_callback(looked_at)
        call = Call("Ping", id, request("Ping", {}, id), answer, patience, self._loop.time())
        call.ping = True
        self.send(call)
        self._ping_later()

    # -- the socket ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; the system is asked to look for a dead peer too."""
        self._transport = cast(asyncio.Transport, transport)
        self.figures.connects += 1
        keep_alive(transport)
        self._ping_later()

    def data_received(self, data: bytes) -> None:
        """Match answers with calls; any of them proves that the peer is alive."""
        try:
            answers = self._caller.receive(data)
        except Garbled as error:
            kind = ConnectionLost if self._greeted else WrongServer
            self.end(kind(f"{self._target} {error}"))
            return
        now, calls, figures = self._loop.time(), self._calls, self.figures
        for id, fields in answers:
            call = calls.pop(id, None)
            if call is None:
                self._unasked(fields)
                continue
            took = now - call.began
            average = figures.latency
            figures.latency = took if average is None else average + SMOOTHING * (took - average)
            answer = call.answer
            if answer.done():
                continue
            if fields.get("ok") is True:
                answer.set_result(fields)
            elif "ok" not in fields:
                answer.set_exception(WrongServer(f"{self._target} sent what is no answer"))
            else:
                answer.set_exception(refusal(call.command, str(fields.get("error"))))
        figures.answers += len(answers)
        self._silent_pings = self._silent_calls = 0
        self._offer()

    def _unasked(self, fields: dict[str, Any]) -> None:
        """Hear an event, a complaint, or an answer that came after its time."""
        if not is_event(fields):
            self._last_words = str(fields.get("error") or "")
        elif self.on_event is not None:
            self.on_event(fields["event"])

    def read(self, on: bool) -> None:
        """Read on, or leave what comes to the system and, in the end, to the server."""
        if self._transport is not None and not self.lost.done():
            self._transport.resume_reading() if on else self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Take no more calls: the peer does not read."""
        self._shut = True

    def resume_writing(self) -> None:
        """Take calls again."""
        if self._reason is None:
            self._shut = False
            self._offer()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell every call what is known of it: written, or not."""
        self._shut = True
        self._deadlines.stop()
        if self._ping_timer is not None:
            self._ping_timer.cancel()
        reason = self._reason or ConnectionLost(
            f"{self._target} closed the connection"
            + (f": {self._last_words or error}" if self._last_words or error else "")
        )
        unwritten = {call.id for call in self._unwritten}
        calls, self._calls, self._unwritten = self._calls, {}, []
        self.figures.errors += not isinstance(reason, Ended)
        for call in calls.values():
            kind = NotSent if call.id in unwritten else ConnectionLost
            call.fail(kind(f"{call.command}: {reason}") if self._greeted else reason)
        self.lost.set_result(reason)

    def end(self, reason: LinkError) -> None:
        """Tear the connection down, without waiting for a peer that may be gone."""
        if self._reason is None and not self.lost.done():
            self._reason, self._shut = reason, True
            if self._transport is not None:
                self._transport.abort()

    def abort(self) -> None:
        """End the connection at once, whatever is still to be written."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End the connection once everything is written."""
        if self._reason is None and not self.lost.done():
            self._flush()
            self._reason, self._shut = Ended("this client was closed"), True
            if self._transport is not None:
                self._transport.close()


class Ended(ConnectionLost):
    """This side ended the connection, and meant to."""
