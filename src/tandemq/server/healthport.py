"""A small HTTP server for probes: ``/health/`` and ``/metrics/`` on a port of their own.

It reads one request from a connection, answers it and hangs up; whatever is too long, too slow or
too many is cut. It knows no server: whoever starts it says what to tell. Source: VibeMQ semantics
13.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from tandemq.model.health import Figures, HealthStatus, members
from tandemq.server.ports import bound

log = logging.getLogger("tandemq.server")

PORT: Final = 8081  # the reference's
LONGEST: Final = 8 << 10  # bytes of a request, without its body, which nobody reads
WAIT: Final = 10.0  # s for all of them, and for the answer to be taken
MOST: Final = 64  # connections at a time

Answer = tuple[HTTPStatus, dict[str, Any]]


class HealthCheckServer:
    """Serves what two functions return at the moment of a request.

    ``health`` also decides between 200 and 503; without ``metrics`` there are none. It is an
    asynchronous context manager.
    """

    def __init__(
        self,
        health: Callable[[], HealthStatus],
        metrics: Callable[[], Figures] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = PORT,
    ) -> None:
        """``port`` 0 takes a free one."""
        self._health, self._metrics = health, metrics
        self._host, self._wanted = host, port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the address cannot be used.
            RuntimeError: it listens already.
        """
        if self._server is not None:
            raise RuntimeError("the health server listens already")
        with bound(self._host, self._wanted, "--health-port"):
            self._server = await asyncio.start_server(
                self._serve, self._host, self._wanted, limit=LONGEST
            )

    async def stop(self) -> None:
        """Listen no more and cut who is connected; nothing happens where it does not listen."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def __aenter__(self) -> HealthCheckServer:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        """The port that is open.

        Raises:
            RuntimeError: none is.
        """
        if self._server is None:
            raise RuntimeError("the health server does not listen")
        return int(self._server.sockets[0].getsockname()[1])

    # -- one connection ------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "streams are served by tasks"
        if len(self._open) >= MOST:
            writer.transport.abort()
            return
        self._open.add(task)
        try:
            async with asyncio.timeout(WAIT):
                if said := await self._reply(reader):
                    writer.write(said)
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        except (TimeoutError, OSError, asyncio.CancelledError):
            log.debug("cutting a connection of the health port")
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _reply(self, reader: asyncio.StreamReader) -> bytes:
        """Return what to write, nothing if the peer has not asked for anything."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return b""
        except asyncio.LimitOverrunError:
            return _written("GET", (HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, {}))
        line = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
        if len(line) != 3 or not line[2].startswith("HTTP/1."):
            return _written("GET", (HTTPStatus.BAD_REQUEST, {}))
        try:
            return _written(line[0], self._answer(line[1]))
        except Exception:
            log.exception("a bug in what the health port tells")
            return _written(line[0], (HTTPStatus.INTERNAL_SERVER_ERROR, {}))

    def _answer(self, target: str) -> Answer:
        """Answer by path; any method may be used."""
        with contextlib.suppress(ValueError):  # some targets are none
            url = urlsplit(target)
            snake = parse_qs(url.query).get("naming") == ["snake"]
            path = url.path.rstrip("/")
            if path == "/health":
                seen = self._health()
                well = HTTPStatus.OK if seen.is_healthy else HTTPStatus.SERVICE_UNAVAILABLE
                return well, members(seen, snake=snake)
            if path == "/metrics" and self._metrics is not None:
                return HTTPStatus.OK, members(self._metrics(), snake=snake)
        return HTTPStatus.NOT_FOUND, {}


def _written(method: str, answer: Answer) -> bytes:
    status, told = answer
    told = told or {"error": status.phrase}
    body = msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n"
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + (b"" if method == "HEAD" else body)
