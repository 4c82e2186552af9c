"""One place in a pool: a connection that comes back when it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Protocol, cast

from tandemq.client.dialing import dial, explained
from tandemq.client.errors import (
    BadOption,
    CertificateRefused,
    ConnectFailed,
    LinkError,
    NotAuthorized,
    Refused,
    TandemqError,
    WrongServer,
)
from tandemq.client.link import Ended, Figures, Link
from tandemq.client.reconnect import Backoff
from tandemq.client.url import Target

Restore = Callable[[Link], Awaitable[None]]
HOPELESS = (NotAuthorized, WrongServer, CertificateRefused, BadOption)  # the next is no better
LEAVE = 1.0  # seconds in which a peer may take what was written before the end


class State(StrEnum):
    """Where a line stands."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    RECONNECTING = "reconnecting"


class Owner(Protocol):
    """What a line needs of its pool."""

    target: Target
    restore: list[Restore]
    proofs: list[dict[str, str]]

    def free(self, link: Link) -> None:
        """Hand calls that wait to a link with room."""

    def changed(self, line: Line) -> None:
        """Look at the state of a line, which is another one now."""


class Line:
    """Keeps one connection up until it is stopped.

    Attributes:
        link: the connection, None while there is none.
        error: what went wrong last, None since a connection stands.
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._options = owner.target.options
        self.state = State.DISCONNECTED
        self.link: Link | None = None
        self.error: TandemqError | None = None
        self.figures = Figures()
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether it is connected, or about to be."""
        return self._task is not None and not self._task.done()

    def start(self, link: Link | None = None) -> None:
        """Connect, now and whenever the connection is lost; ``link`` is one that stands already."""
        if not self.running:
            self.link = link
            self._task = asyncio.create_task(self._keep(), name="tandemq link")

    async def stop(self) -> None:
        """Close the connection in good order, and do not come back."""
        if self.link is not None:
            await self._leave(self.link)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _leave(self, link: Link) -> None:
        link.close()
        try:
            async with asyncio.timeout(LEAVE):
                await asyncio.shield(link.lost)
        except TimeoutError:  # the peer does not take what was asked last
            link.abort()
            await asyncio.shield(link.lost)

    async def _keep(self) -> None:
        options = self._options
        delays = Backoff(
            cast(float, options.reconnect_delay), cast(float, options.max_reconnect_delay)
        )
        self._is(State.CONNECTING)
        try:
            while True:
                self.error = await self._attempt(delays)
                most = options.max_reconnect_attempts
                if isinstance(self.error, (*HOPELESS, Ended)) or not options.reconnect:
                    return
                if most is not None and delays.attempts >= most:
                    return
                self._is(State.RECONNECTING)
                await asyncio.sleep(delays.next())
        finally:
            self.link = None
            self._is(State.DISCONNECTED)

    async def _attempt(self, delays: Backoff) -> TandemqError:
        """Connect once and stay as long as it lasts; return why it did not or does not."""
        try:
            self.link = self.link or await self.connect()
        except TandemqError as error:
            self.figures.errors += 1
            return error
        delays.reset()
        self.error = None
        self.link.ready = True
        self._is(State.CONNECTED)
        self._owner.free(self.link)
        reason = await asyncio.shield(self.link.lost)
        self.link = None
        return reason

    def _is(self, state: State) -> None:
        self.state = state
        self._owner.changed(self)

    async def connect(self) -> Link:
        """Make one connection, greet the server, and restore what belongs to the connection.

        Raises:
            ConnectFailed, WrongServer, CertificateRefused, NotAuthorized, BadOption
        """
        target, figures, free = self._owner.target, self.figures, self._owner.free
        seconds = cast(float, self._options.connect_timeout)
        link: Link | None = None
        try:
            async with asyncio.timeout(seconds):
                link = await dial(target, lambda: Link(target, figures, free))
                held = await link.greet(self._owner.proofs)
                self._owner.proofs.insert(0, self._owner.proofs.pop(held)) if held else None
                for restore in self._owner.restore:
                    await restore(link)
        except BaseException as error:
            if link is not None:
                link.end(Ended("the connection was given up"))
            explained = _explained(error, target, seconds)
            if explained is error:
                raise
            raise explained from error
        return link


def _explained(error: BaseException, target: Target, seconds: float) -> BaseException:
    """Return why there is no connection, where a server has answered too."""
    match error:
        case NotAuthorized():
            text = f"{error.text} ({target}): check the token, or user and password, of the URL"
            return NotAuthorized(error.command, text)
        case WrongServer() | CertificateRefused():
            return error
        case LinkError() | Refused():
            return ConnectFailed(f"{target} did not let us in: {error}")
    return explained(error, target, seconds)


def proofs(target: Target) -> list[dict[str, str]]:
    """Return what may prove who asks; a secret behind a user is a token or a password."""
    if target.token is None:
        return []
    known: list[dict[str, Any]] = [{"token": target.token}]
    if target.user is not None:
        known.append({"user": target.user, "password": target.token})
    return known
