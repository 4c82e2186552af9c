"""The whole server inside a program: ``BrokerServer`` runs it, ``BrokerBuilder`` sets it up.

It lives in the program's own event loop, and leaves signals, the collector and everything else of
the process alone::

    server = BrokerBuilder.create().use_port(6789).use_sqlite("./jobs.db").build()
    async with server:
        await server.publish("orders", {"number": 7})
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, get_args

from msgspec.structs import asdict

from tandemq.broker.names import DeliveryMode
from tandemq.broker.queues import Queues
from tandemq.config import Settings
from tandemq.config.settings import DeliveryMode as ModeName
from tandemq.model.health import Figures, HealthStatus
from tandemq.server.app import listening, opened, reporting, running, settled
from tandemq.server.census import taken
from tandemq.server.health import figures, health
from tandemq.server.healthport import PORT as HEALTH_PORT
from tandemq.server.http.app import serving
from tandemq.server.inside import Inside
from tandemq.server.meter import now_ms
from tandemq.server.runtime import Runtime
from tandemq.server.tls import ServerCertificate
from tandemq.stores.base import Store

MEMORY = "memory"


class BrokerServer(Queues):
    """A server with all its wires, and what it tells the program around it.

    Use it as an asynchronous context manager, or ``run`` it until somebody calls ``stop``.
    """

    def __init__(self, options: Settings | None = None, *, store: Store | None = None) -> None:
        """``store`` is taken instead of the one that the options name."""
        self.options = options or Settings()
        self._store = store
        self._stack: AsyncExitStack | None = None  # its parts, while it runs
        self._runtime: Runtime | None = None
        self._guest: Inside | None = None
        self._ports: list[int] = []
        self._health_port: int | None = None
        self._http_port: int | None = None
        self._asked, self._at_once = asyncio.Event(), asyncio.Event()
        self._ending: asyncio.Task[None] | None = None

    # -- life ----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start every part, and return when clients can connect.

        Raises:
            BadSetting, StoreUnusable, StoreFailed, OSError: it cannot start; nothing is left.
            RuntimeError: it runs already.
        """
        if self._stack is not None:
            raise RuntimeError("the server runs already")
        settings = self.options
        certificate = ServerCertificate.of(settings)
        self._asked, self._at_once, self._ending = asyncio.Event(), asyncio.Event(), None
        async with AsyncExitStack() as parts:
            store = parts.enter_context(opened(settings, self._store))
            runtime = await parts.enter_async_context(running(settings, store, alone=False))
            self._health_port = await parts.enter_async_context(reporting(runtime))
            self._http_port = await parts.enter_async_context(serving(runtime, certificate))
            parts.push_async_callback(self._settle, runtime)
            self._ports = await parts.enter_async_context(listening(runtime, certificate))
            self._runtime, self._guest = runtime, Inside(runtime)
            runtime.broken.add_done_callback(lambda _: self._end_soon())
            self._stack = parts.pop_all()

    async def run(self) -> None:
        """Start, and run until ``stop`` is called or this is cancelled; then end in good order.

        Raises:
            StoreFailed: the store can be neither written nor read any more.
            Others: as ``start``.
        """
        await self.start()
        runtime = self._running
        try:
            await self._asked.wait()
        finally:
            await self._end()
        if runtime.broken.done():
            raise runtime.broken.result()

    async def stop(self) -> None:
        """Accept nobody new, let what is in work finish, keep everything, and close.

        A second call, while the first one waits, makes it wait no longer. Where the server does
        not run nothing happens.
        """
        if self._ending is not None:
            self._at_once.set()
        await self._end()

    async def __aenter__(self) -> BrokerServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def _end(self) -> None:
        """End once, however many ask for it; whoever is cancelled meanwhile wants it at once."""
        self._end_soon()
        if self._ending is None:
            return
        try:
            await asyncio.shield(self._ending)
        except asyncio.CancelledError:
            self._at_once.set()
            await self._ending
            raise

    def _end_soon(self) -> None:
        if self._stack is not None and self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._close(self._stack))
        self._asked.set()

    async def _close(self, parts: AsyncExitStack) -> None:
        try:
            await parts.aclose()
        finally:
            self._stack = self._runtime = self._guest = None
            self._health_port = self._http_port = None
            self._ports = []

    async def _settle(self, runtime: Runtime) -> None:
        if not runtime.broken.done():
            await settled(runtime, self._at_once)

    # -- what it tells -------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        return self._runtime is not None

    @property
    def port(self) -> int:
        """The port of the wire protocols that is open."""
        return self.ports[0]

    @property
    def ports(self) -> list[int]:
        """All such ports."""
        _ = self._running
        return list(self._ports)

    @property
    def health_port(self) -> int | None:
        """The port of ``/health/`` and ``/metrics/``, None where there is none."""
        return self._health_port

    @property
    def http_port(self) -> int | None:
        """The port of HTTP, None where it is off."""
        return self._http_port

    @property
    def metrics(self) -> Figures:
        """The figures of this moment (``BrokerMetrics``); ask again for newer ones."""
        return figures(self._running, now_ms())

    @property
    def health(self) -> HealthStatus:
        """Whether it is well at this moment."""
        return health(self._running, now_ms())

    @property
    def active_connections(self) -> int:
        """How many connections are open."""
        return len(self._running.connections)

    @property
    def in_flight_messages(self) -> int:
        """How many messages and copies somebody holds unanswered."""
        return taken(self._running.engine).in_flight

    @property
    def _running(self) -> Runtime:
        if self._runtime is None:
            raise RuntimeError("the server is not running")
        return self._runtime

    @property
    def _inside(self) -> Inside:
        if self._guest is None:
            raise RuntimeError("the server is not running")
        return self._guest


class BrokerBuilder:
    """Sets up a server, step by step; each step returns the builder, the last one is ``build``.

    What is not said is as in ``Settings``, of which every name can be given to ``configure_from``.
    """

    def __init__(self) -> None:
        self._given: dict[str, Any] = {"http": False}
        self._store: Store | None = None

    @classmethod
    def create(cls) -> BrokerBuilder:
        """Begin."""
        return cls()

    def build(self) -> BrokerServer:
        """Return the server, which is not started.

        Raises:
            BadSetting: something cannot be used; the text says what is allowed.
        """
        return BrokerServer(Settings(**self._given), store=self._store)

    def configure_from(self, settings: Settings | Mapping[str, Any]) -> BrokerBuilder:
        """Take settings by their names; of a whole ``Settings`` all, of a mapping those it has."""
        given = asdict(settings) if isinstance(settings, Settings) else settings
        return self._with(**given)

    # -- where -----------------------------------------------------------------------------------

    def use_host(self, host: str) -> BrokerBuilder:
        """Listen on this address; one beyond this machine wants authentication."""
        return self._with(host=host)

    def use_port(self, port: int) -> BrokerBuilder:
        """Speak all wires on this port; 0 takes a free one."""
        return self._with(port=port)

    def use_http(self, port: int = 6790) -> BrokerBuilder:
        """Serve HTTP too; 0 takes a free port."""
        return self._with(http=True, http_port=port)

    def use_tls(self, certificate: str, key: str, *, optional: bool = False) -> BrokerBuilder:
        """Encrypt with this certificate chain and its private key, both PEM files.

        ``optional`` takes connections without TLS too.
        """
        return self._with(tls_cert=certificate, tls_key=key, tls_optional=optional)

    def configure_health_checks(
        self, *, enabled: bool = True, port: int = HEALTH_PORT
    ) -> BrokerBuilder:
        """Serve ``/health/`` and ``/metrics/`` on a port of their own."""
        return self._with(health_port=port if enabled else 0)

    # -- who -------------------------------------------------------------------------------------

    def use_authentication(self, *tokens: str) -> BrokerBuilder:
        """Want one of these tokens from everybody."""
        return self._with(tokens=tokens)

    def use_authorization(self, superuser: str, password: str) -> BrokerBuilder:
        """Want a user from everybody; the first start makes this one, who makes the others."""
        return self._with(superuser=superuser, superuser_password=password)

    # -- how much --------------------------------------------------------------------------------

    def use_max_connections(self, most: int) -> BrokerBuilder:
        """Accept no more connections at a time."""
        return self._with(max_connections=most)

    def use_max_message_size(self, most_bytes: int) -> BrokerBuilder:
        """Read no larger frames of VibeMQ clients."""
        return self._with(max_message_size=most_bytes)

    def configure_rate_limiting(
        self,
        *,
        connections_per_minute: int = 0,
        messages_per_second: int = 0,
        requests_per_minute: int = 0,
    ) -> BrokerBuilder:
        """Limit connections from an address, and frames of a VibeMQ and a bunqueue client.

        0 is no limit.
        """
        return self._with(
            connections_per_minute=connections_per_minute,
            messages_per_second=messages_per_second,
            requests_per_minute=requests_per_minute,
        )

    # -- queues and their store ------------------------------------------------------------------

    def configure_queues(
        self,
        *,
        mode: DeliveryMode | None = None,
        max_size: int | None = None,
        auto_create: bool | None = None,
    ) -> BrokerBuilder:
        """Say what queues are like that clients make by using them, and whether they may."""
        name = None if mode is None else get_args(ModeName)[mode]
        said = {"default_mode": name, "default_queue_size": max_size, "auto_create": auto_create}
        return self._with(**{key: value for key, value in said.items() if value is not None})

    def use_memory(self) -> BrokerBuilder:
        """Keep nothing when the server ends."""
        return self._kept(None, data=MEMORY)

    def use_sqlite(self, path: str) -> BrokerBuilder:
        """Keep messages in this file."""
        return self._kept(None, data=path)

    def use_storage(self, store: Store) -> BrokerBuilder:
        """Keep messages in a store of one's own (``MessageStore``)."""
        return self._kept(store)

    def _kept(self, store: Store | None, **given: str) -> BrokerBuilder:
        self._store = store
        if "data" in given and given["data"] != MEMORY and self._given.get("durability") == MEMORY:
            del self._given["durability"]  # it came with the word memory
        return self._with(**given)

    def _with(self, **given: Any) -> BrokerBuilder:
        self._given |= given
        return self
