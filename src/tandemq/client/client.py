"""``AsyncClient``: everything that a program asks of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from tandemq.client.errors import Closed
from tandemq.client.flow import Flows
from tandemq.client.pool import Pool
from tandemq.client.queue import Queue
from tandemq.client.spans import Span
from tandemq.client.url import Target
from tandemq.client.webhooks import Webhooks


class AsyncClient:
    """A client for asyncio. Nothing is opened before the first call.

    It is an asynchronous context manager; without that, ``close`` it by hand.
    """

    def __init__(
        self, url: str | Target | None = None, *, shared: bool = False, **options: Any
    ) -> None:
        """Name the server and how to speak to it.

        Args:
            url: like ``tandemq://user:token@host:6789/?tls=1&pool=4``. Without it ``TANDEMQ_URL``
                and ``TANDEMQ_TOKEN`` of the environment count.
            shared: use one pool of connections with all clients of this event loop that have the
                same URL and options; the last one to be closed closes it.
            options: those of ``Options`` and ``Target``, in place of what the URL says.

        Raises:
            WrongUrl, BadOption
        """
        self.pool = Pool.shared(url, **options) if shared else Pool(url, **options)
        self._open = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self) -> dict[str, Any]:
        """Make sure that the server can be reached; return what it says of itself.

        Raises:
            ConnectFailed, WrongServer, CertificateRefused, NotAuthorized
        """
        return await self.pool.connect()

    async def close(self) -> None:
        """Close the connections; later calls raise ``Closed``."""
        if self._open:
            self._open = False
            await self.pool.release()

    async def call(
        self, command: str, /, *, patience: Span | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Send any command of the wire and return the fields of its answer; see ``Pool.call``."""
        if not self._open:
            raise Closed("this client was closed: make a new one")
        return await self.pool.call(command, patience=patience, **fields)

    # -- its parts -----------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        """Return a queue by its name; it need not exist yet."""
        return Queue(self.pool, name)

    @property
    def flows(self) -> Flows:
        """Jobs that wait for other jobs."""
        return Flows(self.pool)

    @property
    def webhooks(self) -> Webhooks:
        """URLs that are told what happens."""
        return Webhooks(self.pool)

    # -- the server ----------------------------------------------------------------------------

    async def ping(self) -> float:
        """Ask for a sign of life; return the server's clock, in ms since the epoch."""
        return float((await self.call("Ping"))["data"]["time"])

    async def queues(self) -> list[str]:
        """Return the names of the queues that hold something, sorted."""
        return sorted((await self.call("ListQueues"))["queues"])

    async def workers(self) -> list[dict[str, Any]]:
        """Return the workers that say they are there."""
        return list((await self.call("ListWorkers"))["data"]["workers"])

    async def stats(self, *, details: bool | None = None) -> dict[str, Any]:
        """Return counts over all queues, totals since the start, and rates a second."""
        return dict((await self.call("Stats", details=details))["stats"])

    async def metrics(self) -> dict[str, Any]:
        """Return totals since the start and what the server uses."""
        return dict((await self.call("Metrics"))["metrics"])

    async def schedules(self, queues: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return every schedule, or those of some queues."""
        crons = (await self.call("CronList"))["crons"]
        return [each for each in crons if queues is None or each["queue"] in queues]
