"""The server process: its parts start in order and stop in the reverse."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Any

from tandemq.config import BadSetting, Settings
from tandemq.config.secrets import tokens_from
from tandemq.server.banner import banner
from tandemq.server.connections import Connection
from tandemq.server.health import figures, health
from tandemq.server.healthport import HealthCheckServer
from tandemq.server.http.app import serving
from tandemq.server.meter import now_ms
from tandemq.server.ports import bound
from tandemq.server.runtime import Runtime
from tandemq.server.tls import HANDSHAKE, ServerCertificate
from tandemq.stores.base import Store
from tandemq.stores.open import open_store

log = logging.getLogger("tandemq.server")

LISTEN_BACKLOG = 1024
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(settings: Settings) -> int:
    """Run a server until it is told to stop; return the exit code of the process.

    Raises:
        BadSetting, StoreUnusable, StoreFailed, OSError: it could not start, or not go on.
    """
    with asyncio.Runner(loop_factory=_loop_factory(settings.loop)) as runner:
        return runner.run(_main(settings))


def _loop_factory(kind: str) -> type[asyncio.AbstractEventLoop] | None:
    if kind == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        if kind == "uvloop":
            raise BadSetting(
                "uvloop is not installed: pip install 'tandemq[fast]'", "loop"
            ) from None
        return None
    return uvloop.Loop


async def _main(settings: Settings) -> int:
    certificate = ServerCertificate.of(settings)
    stop = _Stop()
    stop.watch()
    with opened(settings) as store:
        began = time.perf_counter()
        async with running(settings, store) as runtime:
            log.info("loaded %d messages in %.1f s", len(runtime.engine.messages), _since(began))
            async with reporting(runtime) as health_port, serving(runtime, certificate) as http:
                async with listening(runtime, certificate) as ports:
                    with _reloading(runtime, certificate):
                        kept = _kept(settings, len(runtime.engine.messages))
                        shown = banner(
                            settings,
                            ports,
                            http,
                            certificate is not None,
                            kept,
                            len(runtime.engine.users),
                            health_port,
                        )
                        print(shown, flush=True)
                        await _told_to_stop(runtime, stop)
                        log.info("stopping")
                await settled(runtime, stop.at_once)
    log.info("stopped")
    return 0


# -- parts ---------------------------------------------------------------------------------------


@contextmanager
def opened(settings: Settings, store: Store | None = None) -> Iterator[Store]:
    """The part that owns the store: it starts first and stops last.

    ``store`` is taken instead of the one that the settings name.
    """
    if store is None:
        store = open_store(settings.data)
    else:
        store.open()
    try:
        yield store
    finally:
        store.close()


@asynccontextmanager
async def running(
    settings: Settings, store: Store, *, alone: bool = True
) -> AsyncIterator[Runtime]:
    """The part that owns the engine; it keeps everything that was accepted before it ends.

    ``alone`` lets it set up the interpreter for itself, which is no business of a guest.
    """
    runtime = Runtime(settings, store)
    with _tuned() if alone else nullcontext():
        runtime.start()
    try:
        yield runtime
    finally:
        await runtime.stop()


@contextmanager
def _tuned() -> Iterator[None]:
    """Load messages, and serve them, in an interpreter that does nothing else."""
    sys.setswitchinterval(0.001)  # s; the writer thread must get its turns
    gc.disable()  # a collection over a million fresh messages would only find them alive
    yield
    gc.freeze()
    gc.enable()
    gc.set_threshold(100_000, 50, 1_000)


@asynccontextmanager
async def reporting(runtime: Runtime) -> AsyncIterator[int | None]:
    """The part that tells probes of the server's health; its value is the port, if there is one.

    It goes on while the server waits for what is in work, and then says that it stops.
    """
    settings = runtime.settings
    if not settings.health_port:
        yield None
        return
    async with HealthCheckServer(
        lambda: health(runtime, now_ms()),
        lambda: figures(runtime, now_ms()),
        host=settings.host,
        port=settings.health_port,
    ) as server:
        yield server.port


@asynccontextmanager
async def listening(
    runtime: Runtime, certificate: ServerCertificate | None
) -> AsyncIterator[list[int]]:
    """The part that accepts connections; its value are the ports that are open."""
    settings = runtime.settings
    with bound(settings.host, settings.port, "--port"):
        servers = [await _listen(runtime, certificate, settings.port, greets=False)]
    try:
        if extra := settings.broker_port:
            with bound(settings.host, extra, "--broker-port"):
                servers.append(await _listen(runtime, certificate, extra, greets=True))
        yield [server.sockets[0].getsockname()[1] for server in servers]
    finally:
        for server in servers:
            server.close()


async def _listen(
    runtime: Runtime, certificate: ServerCertificate | None, port: int, *, greets: bool
) -> asyncio.Server:
    context = certificate.context if certificate else None
    optional = context if runtime.settings.tls_optional else None
    always = None if optional else context
    return await runtime.loop.create_server(
        lambda: Connection(runtime, runtime.next_id(), greets=greets, tls=optional),
        runtime.settings.host,
        port,
        backlog=LISTEN_BACKLOG,
        ssl=always,
        ssl_handshake_timeout=HANDSHAKE if always else None,
    )


async def _told_to_stop(runtime: Runtime, stop: _Stop) -> None:
    """Wait for a signal.

    Raises:
        StoreFailed: the store can be neither written nor read, so that going on would lose data.
    """
    asked = asyncio.ensure_future(stop.asked.wait())
    either: list[asyncio.Future[Any]] = [asked, runtime.broken]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if runtime.broken.done():
        asked.cancel()
        raise runtime.broken.result()


async def settled(runtime: Runtime, at_once: asyncio.Event) -> None:
    """Wait until nothing is leased any more, but not for ever, and not if told twice."""
    runtime.wind_down()
    end = time.monotonic() + runtime.settings.shutdown_timeout
    while runtime.leased and time.monotonic() < end and not at_once.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(at_once.wait(), 0.05)


# -- signals -------------------------------------------------------------------------------------


class _Stop:
    """The wish to stop: the first signal asks, a second one insists."""

    def __init__(self) -> None:
        self.asked, self.at_once = asyncio.Event(), asyncio.Event()

    def watch(self) -> None:
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._signalled)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)  # too early or too late to reload

    def _signalled(self) -> None:
        (self.at_once if self.asked.is_set() else self.asked).set()


@contextmanager
def _reloading(runtime: Runtime, certificate: ServerCertificate | None) -> Iterator[None]:
    """Read certificate and tokens again on SIGHUP; what is bad changes nothing."""
    path = runtime.settings.token_file
    from_file = path is not None and runtime.settings.tokens == tokens_from(path)

    def reload() -> None:
        if certificate is not None:
            certificate.reload()
        if path is not None and from_file:
            try:
                runtime.accounts.tokens.replace(tokens_from(path))
            except BadSetting as problem:
                log.error("tokens not reloaded, the old ones stay: %s", problem)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        loop.add_signal_handler(signal.SIGHUP, lambda: None)


def _kept(settings: Settings, count: int) -> str:
    """Return where messages are kept, and how many there are."""
    if settings.in_memory:
        return "memory"
    return f"{settings.data}, {count} {'message' if count == 1 else 'messages'}"


def _since(began: float) -> float:
    return time.perf_counter() - began
