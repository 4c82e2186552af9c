"""GET /events: what happens, as Server-Sent Events (http-api 6).

An answer that never ends is written past uvicorn, straight to the socket: a task and two calls for
each of a thousand clients would cost more than the events. Uvicorn begins and ends it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from tandemq.commands.table import Permission
from tandemq.model.errors import AccessDenied
from tandemq.model.permission import Operation
from tandemq.server.feed import SSE, Full, Wants
from tandemq.server.http.express import SMALL
from tandemq.server.http.face import Caller, Face
from tandemq.server.http.merge import segment
from tandemq.server.runtime import Runtime
from tandemq.server.telling import as_sse, line

log = logging.getLogger("tandemq.http")

RETRY: Final = 3_000  # ms after which a client comes again
UNREAD: Final = 1 << 20  # bytes that a client may leave unread
HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # a proxy is not to collect them
    (b"transfer-encoding", b"chunked"),
]


def routes(face: Face) -> list[BaseRoute]:
    """Return the routes of events."""

    async def serve(request: Request) -> Response:
        name = request.path_params.get("queue")
        caller = await face.caller(request, Permission.OPEN)
        queue = None if name is None else segment(name)
        wants = Wants(as_sse, queue, heard_by(caller, queue))
        return Stream(face, caller, wants, _number(request.headers.get("last-event-id")))

    paths = ("/events", "/events/queues/{queue}", "/events/{rest:path}")
    found = [Route(path, serve) for path in paths]
    for route in found:
        route.methods = {"GET"}  # without HEAD, whose answer would never end
    return [*found]


def heard_by(caller: Caller, queue: str | None) -> str | None:
    """Return for whom it has to be looked at what may be heard; None may hear everything.

    Raises:
        AccessDenied: not even the one queue that is asked for.
    """
    if caller.trusted:
        return None
    if queue is not None and not caller.call.may(Operation.SUBSCRIBE, queue):
        raise AccessDenied(Operation.SUBSCRIBE)
    assert caller.identity is not None, "who has proved nothing is trusted, or was refused"
    return caller.identity.user


def send_on(runtime: Runtime, transport: asyncio.Transport, data: bytes) -> None:
    """Write to a client for which nobody waits; one that does not read is cut."""
    if transport.is_closing():
        return
    unread = transport.get_write_buffer_size()
    if unread > UNREAD:
        log.warning("cutting a client of HTTP that leaves %d bytes unread", unread)
        transport.abort()
        return
    transport.write(data)
    if unread or len(data) > SMALL:
        runtime.crowd.grew(len(data))


def _number(text: str | None) -> int:
    """Return the number of the last event that a client has seen; 0 is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 20 else 0


class Stream(Response):
    """An answer that goes on until somebody hangs up."""

    def __init__(self, face: Face, caller: Caller, wants: Wants, last: int) -> None:
        super().__init__()
        self._runtime, self._caller = face.runtime, caller
        self._wants, self._last = wants, last
        self._transport: asyncio.Transport | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell what happens until the client is gone, or may not stay."""
        feed, caller = self._runtime.feed, self._caller
        self._transport = scope["state"]["line"].transport
        over = asyncio.Event()
        caller.farewell = over.set
        try:
            with feed.place(SSE):
                await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
                caller.enter()
                self.write(self._hello())
                feed.join(self, self._wants)
                try:
                    await over.wait()
                finally:
                    feed.leave(self, self._wants)
                    caller.farewell = None
                    caller.gone()
        except Full:
            await PlainTextResponse("Too many SSE connections", 503)(scope, receive, send)
            return
        await send({"type": "http.response.body"})

    def write(self, data: bytes) -> None:
        """Send what is written already."""
        if self._transport is not None:
            send_on(self._runtime, self._transport, b"%x\r\n%b\r\n" % (len(data), data))

    def _hello(self) -> bytes:
        """Return what stands first: who the client is, and what it has missed."""
        welcome = line({"connected": True, "clientId": str(uuid4())})
        missed = self._runtime.feed.since(self._last, self._wants) if self._last else b""
        return b"retry: %d\ndata: %b\n\n%b" % (RETRY, welcome, missed)
