"""The HTTP server: a Starlette application, served by uvicorn's protocol in our own loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.server import ServerState

from tandemq.model.errors import TandemqError
from tandemq.server.guests import Guest
from tandemq.server.http import (
    boards,
    brokerui,
    events,
    health,
    manual,
    metrics,
    openapi,
    routes,
    ui,
    websocket,
)
from tandemq.server.http.door import Door
from tandemq.server.http.face import Face, refusal
from tandemq.server.http.line import SILENT, Line, Lines, SocketLine
from tandemq.server.inside import Inside
from tandemq.server.ports import bound
from tandemq.server.runtime import Runtime
from tandemq.server.tls import ServerCertificate

log = logging.getLogger("tandemq.http")

PARTS: tuple[Callable[[Face], list[BaseRoute]], ...] = (
    health.routes,
    metrics.routes,
    events.routes,
    websocket.routes,
    boards.routes,
    brokerui.routes,
    openapi.routes,
    manual.routes,
    ui.routes,
)
BACKLOG = 1024
HANDSHAKE = 10.0  # s a TLS handshake may take
GRACE = 0.5  # s in which answers that are being made may still be sent


def application(face: Face) -> ASGIApp:
    """Return the application: the routes of every part, and what is said where there is none."""

    async def nowhere(request: Request, _: Exception) -> Response:
        return await face.nowhere(request)

    async def refused(_: Request, error: Exception) -> Response:
        return refusal(error)

    async def broken(request: Request, error: Exception) -> Response:
        return refusal(error)

    handlers: dict[Any, Any] = {
        HTTPException: nowhere,
        TandemqError: refused,
        ConnectionError: refused,
        Exception: broken,
    }
    others = [route for part in PARTS for route in part(face)]
    face.commands = routes.CommandPaths(others)
    app = Starlette(routes=[*others, *routes.routes(face)], exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Door(app, face)


@asynccontextmanager
async def serving(
    runtime: Runtime, certificate: ServerCertificate | None
) -> AsyncIterator[int | None]:
    """The part that speaks HTTP; its value is the port, None where HTTP is off.

    It goes on while the server waits for what is in work, so that this can be settled.
    """
    settings = runtime.settings
    if not settings.http:
        yield None
        return
    face = Face(runtime)
    config = Config(
        application(face),
        http=Line,
        ws=SocketLine,
        proxy_headers=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=int(SILENT),
        ws_max_size=1 << 20,
    )
    config.load()
    state = ServerState()
    lines = Lines(face, state, runtime.loop)
    lines.look()
    with bound(settings.host, settings.http_port, "--http-port"):
        server = await runtime.loop.create_server(
            lambda: Line(face, config, state, runtime.loop),
            settings.host,
            settings.http_port,
            backlog=BACKLOG,
            ssl=certificate.context if certificate else None,
            ssl_handshake_timeout=HANDSHAKE if certificate else None,
        )
    runtime.http_port = port = int(server.sockets[0].getsockname()[1])
    try:
        yield port
    finally:
        runtime.http_port = None
        server.close()
        lines.close()
        await _ended(runtime, state)


async def _ended(runtime: Runtime, state: ServerState) -> None:
    """Let what is being answered be answered, then hang up."""
    open: list[Any] = list(runtime.connections.values())
    for guest in open:
        if isinstance(guest, Guest) and not isinstance(guest, Inside):
            guest.close()
    await asyncio.sleep(0)  # they are told so
    for line in list(state.connections):
        line.shutdown()
    if state.tasks:
        await asyncio.wait(state.tasks, timeout=GRACE)
    for task in list(state.tasks):
        task.cancel()
    for line in list(state.connections):
        transport = line.transport
        if transport is not None:
            transport.abort()
