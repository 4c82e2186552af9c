"""What one queue delivers: a buffer between the connection and whoever works on messages."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from tandemq.broker.names import DeliveryMode
from tandemq.client.broker.message import Message
from tandemq.client.errors import BadOption, Misused

if TYPE_CHECKING:
    from tandemq.client.broker.subscriptions import Subscriptions


class Subscription:
    """The messages of a queue, for ``async for``, as long as its block lasts.

    Iterating without a block begins it as well; then it lasts until ``close``, or as long as its
    client. It outlives connections: what was delivered over a lost one and nobody began is dropped
    here, since the broker delivers it again. Several tasks may iterate; each message goes to one of
    them.

    Attributes:
        over: nothing comes any more.
    """

    def __init__(
        self,
        client: Subscriptions,
        queue: str,
        *,
        mode: DeliveryMode | None = None,
        prefetch: int | None = None,
    ) -> None:
        if prefetch is not None and (type(prefetch) is not int or prefetch < 1):
            raise BadOption(f"prefetch is {prefetch!r}; give a whole number, 1 or more")
        given: object = mode
        if given is not None and not isinstance(given, DeliveryMode):
            raise BadOption(f"mode is {mode!r}; give one of {', '.join(map(str, DeliveryMode))}")
        self.queue, self.mode, self.prefetch = queue, mode, prefetch
        self.confirmed = False  # the broker knows of it, or will after the next connect
        self._client = client
        self._buffer: deque[Message] = deque()
        self._bell = asyncio.Event()
        self._begun = False
        self.over = False
        self._error: BaseException | None = None

    def __repr__(self) -> str:
        return f"<Subscription to {self.queue}>"

    # -- for its client --------------------------------------------------------------------------

    @property
    def headers(self) -> dict[str, str] | None:
        """What a Subscribe says besides."""
        return None if self.prefetch is None else {"prefetch": str(self.prefetch)}

    def put(self, message: Message) -> None:
        """A message came."""
        if not self.over:
            self._buffer.append(message)
            self._bell.set()

    def forget(self) -> None:
        """The connection is lost, and with it what nobody has begun."""
        self._buffer.clear()

    def finish(self, error: BaseException | None = None) -> None:
        """Nothing comes any more; iterating ends, or raises ``error``."""
        if not self.over:
            self.over, self._error = True, error
            self._buffer.clear()
            self._bell.set()

    # -- for who works on messages ---------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Messages that were delivered and that nobody has begun."""
        return len(self._buffer)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Message:
        while not self._buffer:
            if self.over:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            if not self._begun:
                await self.__aenter__()
            else:
                self._bell.clear()
                await self._bell.wait()
        return self._buffer.popleft().begin()

    async def get(self, timeout: float | None = None) -> Message | None:
        """Return the next message; None where none comes in time (s), or nothing comes any more."""
        try:
            async with asyncio.timeout(timeout):
                return await anext(self, None)
        except TimeoutError:
            return None

    async def __aenter__(self) -> Subscription:
        if self.over:
            raise Misused(f"this subscription to {self.queue} has ended; make another one")
        self._begun = True
        try:
            await self._client.begin(self)
        except BaseException:
            self._begun = False
            self._bell.set()  # others may wait for messages that will not come
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End it: what is not settled goes back to the queue, uncharged."""
        await self._client.finish(self)
