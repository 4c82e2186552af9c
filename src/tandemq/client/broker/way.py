"""The way to a broker: one connection after the other, and what waits between two of them."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Final, Protocol

from tandemq.broker.options import ClientOptions
from tandemq.client.broker.answers import word
from tandemq.client.broker.link import Link
from tandemq.client.dialing import dial, explained
from tandemq.client.errors import (
    BadOption,
    Closed,
    ConnectionLost,
    LinkError,
    Misused,
    NotSent,
    TandemqError,
    Timeout,
    Unavailable,
    WrongLoop,
)
from tandemq.client.forks import generation
from tandemq.client.url import Target
from tandemq.wires.vibemq.caller import Caller
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import Kind

log = logging.getLogger("tandemq.client")

FAREWELL: Final = 2.0  # s that the socket has to write a goodbye

Ask = Callable[..., Awaitable[Frame]]
"""Sends a command over one certain connection: kind, queue, payload, headers."""


class Traveller(Protocol):
    """Whose way it is."""

    def deliver(self, link: Link, frame: Frame) -> None:
        """A message came."""

    def lost(self) -> None:
        """What came over the last connection and was not begun is worth nothing any more."""

    def ended(self, why: TandemqError) -> None:
        """There will be no further connection."""

    async def restore(self, ask: Ask, again: bool) -> None:
        """Make a new connection as the last one was, before anybody else uses it."""


class Way:
    """Connects, and connects again when the connection is lost.

    Attributes:
        link: the connection that there is now.
        begun: there was one.
    """

    def __init__(self, host: str, port: int, options: ClientOptions, traveller: Traveller) -> None:
        self.options = options
        self._target = Target(
            host=host,
            port=port,
            tls=options.use_tls,
            ca=options.certificate_authority,
            verify=not options.skip_certificate_validation,
        )
        self.link: Link | None = None
        self.begun = False
        self._traveller = traveller
        self._up = asyncio.Event()  # there is a connection, or there will be none
        self._over: TandemqError | None = None  # why there will be none
        self._returning: asyncio.Task[None] | None = None
        self._wait = float(options.command_timeout)  # type: ignore[arg-type]
        self._home: tuple[asyncio.AbstractEventLoop, int] | None = (
            None  # loop, and the process as its generation
        )

    def __str__(self) -> str:
        return str(self._target)

    # -- to be there -----------------------------------------------------------------------------

    async def connect(self, patience: float) -> bool:
        """Connect; where nobody answers, try again for so many s, as the reconnect policy says.

        False: it is connected, or about to be again.

        Raises:
            ConnectFailed, NotAuthorized, Refused, QueueConflict, Closed, WrongLoop
        """
        self._check_open()
        self._check_home()
        if self.link is not None or (self._returning and not self._returning.done()):
            return False
        loop, policy = asyncio.get_running_loop(), self.options.reconnect_policy
        until = loop.time() + patience
        for attempt in count(1):
            try:
                await self._arrive(again=False)
                return True
            except (LinkError, Timeout, Unavailable) as why:
                delay = policy.get_delay(attempt)
                if loop.time() + delay > until:
                    raise
                log.warning("%s; the next attempt is in %g s", why, delay)
                await asyncio.sleep(delay)
        raise AssertionError("attempts have no end")

    async def close(self) -> None:
        """Say goodbye, and be there no more."""
        self._end(Closed(f"this client of {self} was closed; make another one"))
        if self._returning is not None:
            self._returning.cancel()
        link, self.link = self.link, None
        if link is not None:
            link.leave()
            try:
                async with asyncio.timeout(FAREWELL):
                    await asyncio.shield(link.closed)
            except TimeoutError:
                link.abort()
                await link.closed

    def _check_open(self) -> None:
        if isinstance(self._over, Closed):
            raise Closed(str(self._over))

    def _check_home(self) -> None:
        """Belong to the loop and the process of the first call."""
        here = asyncio.get_running_loop(), generation()
        if (self._home or here) != here:
            raise WrongLoop(
                f"this client of {self} belongs to another event loop, or to the process that this "
                "one was forked from: make one for each"
            )
        self._home = here

    def _end(self, why: TandemqError) -> None:
        if not isinstance(self._over, Closed):
            self._over = why
        self._up.set()
        self._traveller.ended(why)

    async def _arrive(self, *, again: bool) -> None:
        """Make a connection on which everything is as it was."""
        link = await self._open()

        async def ask(
            kind: Kind,
            queue: str,
            payload: bytes | None = None,
            headers: dict[str, str] | None = None,
        ) -> Frame:
            return await link.call(kind, queue, payload, headers, timeout=self._wait)

        try:
            await self._traveller.restore(ask, again)
            if link.over is not None:
                raise ConnectionLost(link.over)
        except BaseException:
            link.end("it could not be used")
            self._traveller.lost()
            raise
        self.link, self.begun, self._over = link, True, None
        interval = float(self.options.keep_alive_interval)  # type: ignore[arg-type]
        link.keep_alive(interval, min(self._wait, interval))
        self._up.set()

    async def _open(self) -> Link:
        """Return a connection that was welcomed."""
        o = self.options
        caller = Caller(
            binary=o.binary,
            compressions=o.preferred_compressions,
            threshold=o.compression_threshold,
            limit=o.max_message_size,
            nack=o.give_back,
        )
        link = Link(caller, str(self), o.max_message_size, self._traveller.deliver, self._gone)
        try:
            async with asyncio.timeout(self._wait):
                await dial(self._target, lambda: link)
                await link.greet(o.auth_token, o.username, o.password)
        except BaseException as why:
            link.end("it could not be used")
            if isinstance(why, TandemqError):
                raise
            raise explained(why, self._target, self._wait) from None
        return link

    # -- to come back ----------------------------------------------------------------------------

    def _gone(self, link: Link, reason: str) -> None:
        """A connection is lost, or about to go."""
        if link is not self.link:
            return
        self.link = None
        self._traveller.lost()
        if self._over is None:
            self._up.clear()
            self._returning = asyncio.get_running_loop().create_task(self._return(reason))

    async def _return(self, reason: str) -> None:
        """Connect again, after longer and longer waits."""
        policy = self.options.reconnect_policy
        for attempt in count(1):
            if not policy.allows(attempt):
                text = f"the connection to {self} is lost for good: {reason}"
                log.error("%s", text)
                return self._end(ConnectionLost(text))
            delay = policy.get_delay(attempt) * (1 + policy.jitter * random.random())
            log.warning("%s; attempt %d to reconnect is in %g s", reason, attempt, delay)
            await asyncio.sleep(delay)
            try:
                await self._arrive(again=True)
            except TandemqError as why:
                reason = str(why)
            else:
                log.info("connected to %s again", self)
                return None

    # -- to ask ----------------------------------------------------------------------------------

    async def ask(
        self,
        kind: Kind,
        queue: str | None = None,
        payload: bytes | None = None,
        headers: dict[str, str] | None = None,
        id: str | None = None,
    ) -> Frame:
        """Ask for something, and return the answer; wait for a connection as long as for that.

        Raises:
            Closed, Misused, WrongLoop, BadOption, and as ``Link.call``
        """
        given: object = queue
        if given is not None and not isinstance(given, str):
            raise BadOption(f"{word(kind)}: the name of the queue is {given!r}; give a text")
        if queue is not None and not queue.strip():
            raise BadOption(f"{word(kind)}: the name of the queue is blank")
        link = await self._linked(word(kind))
        return await link.call(kind, queue, payload, headers, timeout=self._wait, id=id)

    async def _linked(self, name: str) -> Link:
        """Return the connection, when it is there."""
        self._check_home()
        while self.link is None:
            self._check_open()
            if self._over is not None:
                raise NotSent(f"{name} was not sent: {self._over}")
            if not self.begun:
                raise Misused(f"{name}: connect first, with `async with Broker(...)`")
            try:
                async with asyncio.timeout(self._wait):
                    await self._up.wait()
            except TimeoutError:
                text = f"{name} was not sent: no connection to {self} for {self._wait:g} s"
                raise NotSent(text) from None
        return self.link
