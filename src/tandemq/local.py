"""``open``: the whole engine inside a program, without a socket.

Clients of this process reach it through pipes, so everything that works with a server works here:
``AsyncClient``, ``Client``, ``Queue``, ``Worker``, in any thread::

    async with tandemq.open("file:jobs.db") as client:
        await client.queue("mail").add("welcome", {"to": "ada@example.org"})

    with tandemq.open("memory://") as client:
        client.queue("mail").add("welcome", {"to": "ada@example.org"})
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from tandemq import pipe
from tandemq.client.client import AsyncClient
from tandemq.client.errors import ConnectFailed, Misused
from tandemq.client.portal import Portal
from tandemq.client.sync import Client
from tandemq.client.url import Target
from tandemq.config import BadSetting, Settings
from tandemq.server.app import opened, running, settled
from tandemq.server.connections import Connection
from tandemq.server.runtime import Runtime

T = TypeVar("T")
L = TypeVar("L", bound=asyncio.Protocol)

MEMORY = "memory"


class Local:
    """An engine of this process: open it with ``async with`` or ``with``, which give a client.

    Attributes:
        target: takes the place of a URL wherever one is taken, while it is open.
    """

    def __init__(self, settings: Settings) -> None:
        """``open`` makes it from a URL."""
        self.settings = settings
        self.target = Target(host=f"this process ({settings.data})", dial=self._dial)
        self.target = self.target.but(pool_size=1, ping_interval=0)
        self.runtime: Runtime | None = None  # while it is open
        self._parts = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._portal: Portal | None = None
        self._async_client: AsyncClient | None = None
        self._client: Client | None = None

    # -- life ----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the data, in this loop.

        Raises:
            StoreUnusable, StoreFailed: the file cannot be used.
            Misused: it is open already.
        """
        if self.runtime is not None:
            raise Misused(f"{self.target.host} is open already")
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as parts:
            store = parts.enter_context(opened(self.settings))
            runtime = await parts.enter_async_context(running(self.settings, store, alone=False))
            self._parts = parts.pop_all()
        self.runtime = runtime

    async def stop(self) -> None:
        """Give back what is leased, keep everything, and close the data."""
        runtime, self.runtime = self.runtime, None
        if runtime is not None:
            at_once = asyncio.Event()
            at_once.set()  # nobody can come any more to settle what is leased
            if not runtime.broken.done():
                await settled(runtime, at_once)
            await self._parts.aclose()

    async def __aenter__(self) -> AsyncClient:
        await self.start()
        self._async_client = AsyncClient(self.target)
        return self._async_client

    async def __aexit__(self, *_: object) -> None:
        if self._async_client is not None:
            await self._async_client.close()
        await self.stop()

    def __enter__(self) -> Client:
        portal = Portal()
        try:
            portal.call(self.start())
        except BaseException:
            portal.close()
            raise
        self._portal, self._client = portal, Client(self.target)
        return self._client

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()
        if self._portal is not None:
            self._portal.call(self.stop())
            self._portal.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the thread of the engine, and wait; also where a loop runs.

        Raises:
            Misused: it was not opened with ``with``, so it has no thread of its own.
        """
        if self._portal is None:
            work.close()
            raise Misused("only what was opened with a plain `with` has a thread of its own")
        return asyncio.run_coroutine_threadsafe(work, self._portal.loop).result()

    # -- connections ---------------------------------------------------------------------------

    async def _dial(self, make: Callable[[], L]) -> L:
        """Connect a client's end; it may live in another loop than the engine."""
        runtime, loop = self.runtime, self._loop
        if runtime is None or loop is None or loop.is_closed():
            raise ConnectFailed(f"{self.target.host} is not open: use it inside its with block")
        protocol = make()

        def accept() -> asyncio.Protocol:
            connection = Connection(runtime, runtime.next_id())
            connection.trusted = True  # whoever can call us can read the file as well
            return connection

        pipe.connect((asyncio.get_running_loop(), protocol), accept, loop)
        return protocol


def open(url: str = "memory://", **settings: Any) -> Local:
    """Return an engine inside this program, to be opened with ``async with`` or ``with``.

    Args:
        url: ``memory://``, which forgets, or ``file:jobs.db``.
        settings: of the server, such as ``durability="sync"``.

    Raises:
        BadSetting: the URL or a setting cannot be used.
    """
    return Local(Settings(data=_data(url), http=False, **settings))


def _data(url: str) -> str:
    given: object = url
    if not isinstance(given, str):
        raise BadSetting(f"{given!r} opens nothing: write memory://, or file:jobs.db", "data")
    scheme, colon, rest = url.partition(":")
    path = rest.removeprefix("//") if rest.startswith("//") and rest != "//" else rest
    if scheme == MEMORY and colon and rest in ("", "//"):
        return MEMORY
    if scheme == "file" and path and path != "//":
        return path
    raise BadSetting(f"{url!r} opens nothing: write memory://, or file:jobs.db", "data")
