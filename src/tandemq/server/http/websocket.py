"""GET /ws: commands and events over a WebSocket (http-api 7 and 8).

Every command of the bunqueue wire can be sent as a JSON object. A client that says nothing of
events is told of those of all jobs, whole; one that subscribes is told of what it chose, in short.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any, Final

from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from tandemq.commands import fields as check
from tandemq.commands.all import COMMANDS
from tandemq.commands.table import Permission
from tandemq.model.errors import (
    BadRequest,
    Malformed,
    TandemqError,
    UnknownCommand,
)
from tandemq.server.feed import SOCKET, Full, Wants
from tandemq.server.guard import Window
from tandemq.server.http import jsontext
from tandemq.server.http.events import heard_by, send_on
from tandemq.server.http.face import Caller, Face, in_http, refusal
from tandemq.server.http.merge import segment
from tandemq.server.telling import CLOSE, as_message, as_raw, framed

log = logging.getLogger("tandemq.http")

AT_A_TIME: Final = 1_000  # commands of one client that may wait for their answers
ASKING: Final = 8 << 20  # bytes of them
RESTART: Final = 1012  # why a WebSocket is closed: the server goes
POLICY: Final = 1008  # or whoever has it may not stay
NAMES: Final = {
    "job": "pushed active completed failed removed promoted progress delayed stalled retried"
    " discarded priority-changed data-updated delay-changed timeout lock-expired deduplicated"
    " waiting-children dependencies-resolved moved-to-delayed expired",
    "queue": "created removed paused resumed drained cleaned obliterated counts idle threshold",
    "dlq": "added retried retry-all purged auto-retried expired",
    "flow": "completed failed",
    "cron": "created updated deleted fired missed skipped",
    "worker": "connected disconnected heartbeat idle removed-stale overloaded error",
    "ratelimit": "set cleared hit rejected",
    "concurrency": "set cleared rejected",
    "webhook": "added removed fired failed enabled disabled",
    "batch": "pushed pulled",
    "client": "connected disconnected",
    "auth": "failed",
    "cleanup": "orphans-removed stale-deps-removed",
    "health": "status",
    "stats": "snapshot",
    "storage": "status backup-started backup-completed backup-failed size-warning",
    "server": "started shutdown recovered memory-warning",
    "memory": "compacted",
    "config": "stall-changed dlq-changed",
}
PATTERNS: Final = frozenset(
    ("*", *(f"{of}:{what}" for of, names in NAMES.items() for what in ("*", *names.split())))
)


def routes(face: Face) -> list[BaseRoute]:
    """Return the routes of WebSockets."""

    async def serve(socket: WebSocket) -> None:
        try:
            caller = await face.caller(socket, Permission.OPEN, lasting=True)
            try:
                name = socket.path_params.get("queue")
                talk = Talk(face, socket, caller, None if name is None else segment(name))
                with face.runtime.feed.place(SOCKET):
                    await socket.accept()
                    await talk.go_on()
            finally:
                caller.gone()
        except Full:
            await socket.send_denial_response(
                PlainTextResponse("Too many WebSocket connections", 503)
            )
        except (TandemqError, ConnectionError) as error:
            await socket.send_denial_response(refusal(error))

    async def nowhere(socket: WebSocket) -> None:
        await socket.send_denial_response(await face.nowhere(socket))

    known = [WebSocketRoute(path, serve) for path in ("/ws", "/ws/queues/{queue}")]
    return [*known, WebSocketRoute("/{rest:path}", nowhere)]


class Talk:
    """One WebSocket: its commands, their answers, and what it is told of."""

    def __init__(self, face: Face, socket: WebSocket, caller: Caller, queue: str | None) -> None:
        """Raise AccessDenied where the events of ``queue`` may not be heard."""
        self._face, self._socket, self._caller, self._queue = face, socket, caller, queue
        self._feed = face.runtime.feed
        self._wants = Wants(as_raw, queue, heard_by(caller, queue))
        self._chosen: dict[str, None] = {}  # patterns of names, in the order of their coming
        self._asked: set[asyncio.Task[None]] = set()
        self._transport: asyncio.Transport = socket.scope["state"]["line"].transport

    async def go_on(self) -> None:
        """Talk until somebody hangs up."""
        caller, settings = self._caller, self._face.settings
        if settings.requests_per_minute:
            caller.limiter = Window(settings.requests_per_minute, settings.request_window_ms)
        # What is answered meanwhile goes first.
        caller.farewell = partial(self._face.runtime.loop.call_soon, self._hang_up)
        self._feed.join(self, self._wants)
        try:
            while (message := await self._socket.receive())["type"] == "websocket.receive":
                await self._heard(message["bytes"])
        finally:
            self._feed.leave(self, self._wants)
            caller.farewell = None

    def write(self, data: bytes) -> None:
        """Send frames."""
        send_on(self._face.runtime, self._transport, data)

    def _hang_up(self) -> None:
        why = RESTART if self._face.runtime.winding_down else POLICY
        self.write(framed(why.to_bytes(2, "big"), CLOSE))
        self._transport.close()

    # -- commands ------------------------------------------------------------------------------

    async def _heard(self, text: bytes) -> None:
        """Begin with a command; the next one need not wait for its answer."""
        while len(self._asked) >= AT_A_TIME or self._caller.asking > ASKING:
            await asyncio.wait(self._asked, return_when=asyncio.FIRST_COMPLETED)
        self._caller.asking += len(text)
        task = asyncio.get_running_loop().create_task(self._answer(text))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    async def _answer(self, text: bytes) -> None:
        req: dict[str, Any] = {}
        try:
            fields = _read(text)
            req = {"reqId": fields["reqId"]} if "reqId" in fields else {}
            told = await self._done(fields.pop("cmd"), fields)
        except (TandemqError, ConnectionError) as error:
            told = {"ok": False, "error": in_http(error)}
        except Exception as bug:
            log.exception("a bug in a command of a WebSocket")
            told = {"ok": False, "error": in_http(bug)}
        finally:
            self._caller.asking -= len(text)
        self.write(framed(jsontext.written({**told, **req})))

    async def _done(self, name: Any, fields: dict[str, Any]) -> dict[str, Any]:
        own = OWN.get(name) if isinstance(name, str) else None
        if own is not None:
            return own(self, fields)
        row = COMMANDS.get(name) if isinstance(name, str) else None
        if row is None:
            raise UnknownCommand(f"Unknown command: {name}")
        answered: dict[str, Any] = await self._face.asked(self._caller, row, fields)
        return answered

    # -- events --------------------------------------------------------------------------------

    def _subscribe(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Tell the client of more of what it chooses."""
        patterns = fields.get("events")
        if not isinstance(patterns, list) or not patterns:
            raise BadRequest("events must be a non-empty array")
        unknown = [str(name)[:100] for name in patterns if name not in PATTERNS]
        if unknown:
            raise BadRequest(f"Invalid: {', '.join(unknown[:100])}")
        self._chosen |= dict.fromkeys(patterns)
        return self._choose()

    def _unsubscribe(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Tell the client of less of that, or of nothing."""
        patterns = fields.get("events")
        left = patterns if isinstance(patterns, list) and patterns else list(self._chosen)
        self._chosen = {name: None for name in self._chosen if name not in left}
        return self._choose()

    def _choose(self) -> dict[str, Any]:
        patterns = frozenset(self._chosen)
        self._want(self._wants._replace(form=as_message, queue=self._queue, patterns=patterns))
        return {"ok": True, "subscribed": list(self._chosen)}

    def _whole(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Tell the client of the events of one queue, whole, as on the wire of frames."""
        queue = check.queue_name(fields.get("queue"))
        heard_by(self._caller, queue)
        self._want(self._wants._replace(form=as_raw, queue=queue, patterns=None))
        return {"ok": True}

    def _nothing(self, _: dict[str, Any]) -> dict[str, Any]:
        """Tell the client of nothing."""
        self._chosen.clear()
        self._choose()
        return {"ok": True}

    def _want(self, wants: Wants) -> None:
        self._feed.leave(self, self._wants)
        self._wants = wants
        self._feed.join(self, wants)


OWN: Final = {
    "Subscribe": Talk._subscribe,
    "Unsubscribe": Talk._unsubscribe,
    "SubscribeEvents": Talk._whole,
    "UnsubscribeEvents": Talk._nothing,
}
"""Commands about what a client is told, which a WebSocket has of its own."""


def _read(text: bytes) -> dict[str, Any]:
    """Return the fields of a command.

    Raises:
        Malformed: it is none.
        BadRequest: a number in it would change.
    """
    try:
        value = jsontext.read(text)
    except Malformed:
        raise Malformed("Invalid JSON") from None
    if value is None:
        raise Malformed("Invalid JSON")
    if not isinstance(value, dict) or not value.get("cmd"):
        raise Malformed("Invalid command")
    return value
