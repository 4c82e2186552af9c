"""``AsyncClient``: everything that a program asks of a server."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from tandemq.client.pool import Pool
from tandemq.client.queue import Queue
from tandemq.client.spans import Span
from tandemq.client.url import Target


class AsyncClient:
    """A client for asyncio. Nothing is opened before the first call.

    It is an asynchronous context manager; without that, ``close`` it by hand.
    """

    def __init__(self, url: str | Target | None = None, **options: Any) -> None:
        """``url`` is like ``tandemq://user:token@host:6789/?tls=1&pool=4``.

        Raises:
            WrongUrl, BadOption
        """
        self.pool = Pool(url, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def connect(self) -> dict[str, Any]:
        """Make sure that the server can be reached; return what it says of itself."""
        return await self.pool.connect()

    async def close(self) -> None:
        """Close the connections; later calls raise ``Closed``."""
        await self.pool.close()

    async def call(
        self, command: str, /, *, patience: Span | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Send any command of the wire and return the fields of its answer."""
        return await self.pool.call(command, patience=patience, **fields)

    def queue(self, name: str) -> Queue:
        """Return a queue by its name; it need not exist yet."""
        return Queue(self.pool, name)
