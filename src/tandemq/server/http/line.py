"""One HTTP connection: uvicorn's protocol, with the bounds that it lacks and a short way past it.

What is read takes the short way (``express``) where it can. The rest is uvicorn's, and so is
everything until that request is answered.
"""

from __future__ import annotations

import logging
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tandemq.model.errors import TooManyConnections
from tandemq.server.http import jsontext
from tandemq.server.http.events import UNREAD
from tandemq.server.http.express import Express
from tandemq.wires.wording import in_bunqueue

if TYPE_CHECKING:
    import asyncio

    from uvicorn import Config
    from uvicorn.server import ServerState

    from tandemq.server.http.face import Caller, Face

log = logging.getLogger("tandemq.http.line")
log.setLevel(logging.ERROR)  # what strangers send is no news

MOST_HEAD: Final = 64 << 10  # bytes of a request before its body
SLACK: Final = 1 << 20  # bytes that chunks and trailers may take beside a body
HELD: Final = 64 << 10  # bytes of requests to come that are read before the present one is done
SILENT: Final = 75.0  # s between two requests
SWEEP: Final = 1.0  # s between two looks at all lines

NO_HANDSHAKE: Final = "The request is no handshake of a WebSocket that can be understood"
STATUSES: Final = {
    400: "The request is not HTTP that can be understood",
    408: "The request did not arrive in time",
    413: "The request is too large",
    431: f"The head of the request is larger than {MOST_HEAD} bytes",
}


class Line(HttpToolsProtocol):
    """Knows who is being answered on it, and for how long nothing has come."""

    def __init__(
        self, face: Face, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(config, state, {"line": self}, loop)
        self.logger, self.access_log = log, False
        self.face = face
        self._callers: set[Caller] = set()
        self._express: Express | None = None
        self._left = bytearray()  # what has come for the short way and cannot be served yet
        self._parsing = self._in_head = False  # uvicorn's parser has part of a request
        self._touched = False  # it has had one, ever
        self._known = False  # its head is read, so that the cycle is the one that answers it
        self._size = 0  # bytes of it
        self._status = 400  # what is wrong with it
        self._heard = 0.0  # when it began, or the one before ended
        self._stuck = 0.0  # since when the client does not read

    @property
    def common(self) -> bytes:
        """The headers that all answers of the short way have."""
        return self.face.common

    @property
    def unfinished(self) -> int:
        """Bytes of requests that are not served yet."""
        return len(self._left)

    # -- from asyncio --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._heard = self.loop.time()
        self._express = express = Express(self.face, self)
        crowd = self.face.runtime.crowd
        if not crowd.welcomes(express.origin):
            transport.close()
        elif not crowd.enter(express):  # type: ignore[arg-type]
            self._refuse(503, in_bunqueue(TooManyConnections(crowd.most)))

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody will read an answer any more."""
        for caller in list(self._callers):
            caller.gone()
        self._callers.clear()
        self._close_short_way()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the protocol of WebSockets, once all before is answered."""
        cycle: Any = self.cycle  # None at first
        if cycle is not None and not cycle.response_complete:
            self._refuse(400)
            return
        self._close_short_way()
        super().handle_websocket_upgrade()

    def _close_short_way(self) -> None:
        if self._express is not None:
            self.face.runtime.lost(self._express)  # type: ignore[arg-type]
            self._express.session = None  # it would stay until the next collection
            self._express = None

    def data_received(self, data: bytes) -> None:
        express = self._express
        if express is None or (self._touched and self._elsewhere):
            self._take_long_way(data)
        elif self._left or express.unanswered or self.flow.write_paused:
            self._left += data
            if express.unanswered or self.flow.write_paused:
                if len(self._left) > HELD:
                    self.flow.pause_reading()
            elif len(self._left) >= express.need:
                self._go_on()
        else:
            self._serve(express, data)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stuck = 0.0
        self.answered()

    @property
    def _elsewhere(self) -> bool:
        """Uvicorn is not done with what came before."""
        cycle: Any = self.cycle  # None at first
        return self._parsing or (cycle is not None and not cycle.response_complete)

    # -- the short way -------------------------------------------------------------------------

    def _serve(self, express: Express, data: bytes) -> None:
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        while data:
            if express.unanswered or self.flow.write_paused:
                self._left += data
                return
            size = express.take(data)
            if size > 0:
                self._heard = 0.0
                data = data[size:]
            elif size == 0:
                if not self._left:
                    self._heard = self.loop.time()
                self._left += data
                return
            else:
                self._take_long_way(data)
                return

    def answered(self) -> None:
        """The short way is free again."""
        self._heard = self.loop.time()
        if self._left:
            self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        express = self._express
        if express is None or express.unanswered or self._elsewhere or not self._left:
            return
        data = bytes(self._left)
        self._left.clear()
        self.flow.resume_reading()
        self._serve(express, data)

    # -- the long way --------------------------------------------------------------------------

    def _take_long_way(self, data: bytes) -> None:
        self._size += len(data)
        most = MOST_HEAD if self._in_head else self.face.settings.max_frame_bytes + SLACK
        if self._parsing and self._size > most:
            self._refuse(431 if self._in_head else 413)
            return
        self.data_fed(data)

    def data_fed(self, data: bytes) -> None:
        """Let uvicorn read on."""
        if self._express is not None:
            self.face.runtime.crowd.silent.pop(self._express.id, None)
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._parsing = self._in_head = self._touched = True
        self._known = False
        self._size, self._status = 0, 400
        self._heard = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        head = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if head > MOST_HEAD:
            self._status = 431
            raise ValueError("too much stands before the body")  # the parser passes it on
        version, hosts = self.parser.get_http_version(), _hosts(self.headers)
        if version not in ("1.0", "1.1") or hosts > 1 or (version == "1.1" and not hosts):
            raise ValueError("it cannot be told for whom it is")
        super().on_headers_complete()
        self._known = True

    def on_message_complete(self) -> None:
        self._parsing = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._heard = self.loop.time()
        self._callers.clear()
        self.face.runtime.crowd.grew(self.transport.get_write_buffer_size())
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with a request that uvicorn could not read."""
        self._refuse(self._status)

    def _refuse(self, status: int, text: str = "") -> None:
        """Say what is wrong, and hang up: where the next request would begin is not known."""
        cycle: Any = self.cycle  # None at first
        before = cycle is None or (cycle.response_complete and not self._known)
        if before or not cycle.response_started:
            self.transport.write(_last_words(self.face, status, text))
        self.transport.close()

    # -- who is answered, and when it is enough ------------------------------------------------

    def answers(self, caller: Caller) -> None:
        """A caller's request came on this connection."""
        self._callers.add(caller)

    def looked_at(self, now: float, longest: float) -> None:
        """Hang up where a request takes longer than ``longest`` s to arrive, or none comes.

        Also where the client has not read for a while.
        """
        if self._stuck and now - self._stuck > SILENT:
            self.transport.abort()
            return
        begun = self._parsing or bool(self._left)
        busy = self._express is not None and self._express.unanswered
        if busy or not self._heard or (self._elsewhere and not self._parsing):
            return
        if begun and now - self._heard > longest:
            self._refuse(408)
        elif not begun and now - self._heard > SILENT:
            self.transport.close()


def _last_words(face: Face, status: int, text: str = "") -> bytes:
    """Return an answer behind which nothing comes."""
    body = jsontext.written({"ok": False, "error": text or STATUSES[status]})
    head = b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
    return STATUS_LINE[status] + face.common + head + body


class SocketLine(WebSocketsSansIOProtocol):
    """One WebSocket."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.logger = log

    def data_received(self, data: bytes) -> None:
        """Read on. What comes first is a whole request, which may still be no handshake."""
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.write(_last_words(self.app_state["line"].face, 400, NO_HANDSHAKE))
            self.transport.close()

    def handle_ping(self) -> None:
        """Answer a ping; who leaves the answers unread is cut."""
        if self.transport.get_write_buffer_size() > UNREAD:
            self.transport.abort()
        else:
            super().handle_ping()

    def handle_text(self, event: Any) -> None:
        """Hand text over as the bytes it is; what is no UTF-8 is no JSON either."""
        self.handle_bytes(event)

    async def send(self, message: Any) -> None:
        """Send what the application says; a refusal ends the handshake too."""
        await super().send(message)
        self.handshake_complete = self.handshake_complete or self.close_sent


def _hosts(headers: list[tuple[bytes, bytes]]) -> int:
    return sum(name == b"host" for name, _ in headers)


class Lines:
    """All lines of a server, looked at now and then; and what time it is in their answers."""

    def __init__(self, face: Face, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        self._face, self._state, self._loop = face, state, loop
        self._timer: asyncio.TimerHandle | None = None
        self._fixed = [*face.headers, (b"content-type", b"application/json")]

    def look(self) -> None:
        """Look at all of them, and again in a while."""
        date = (b"date", formatdate(usegmt=True).encode("ascii"))
        self._state.default_headers = [date]
        headers = (b"%b: %b\r\n" % header for header in (date, *self._fixed))
        self._face.common = b"".join(headers)
        self._face.good = STATUS_LINE[200] + self._face.common + b"content-length: "
        now, longest = self._loop.time(), self._face.settings.half_frame_timeout
        for line in list(self._state.connections):
            if isinstance(line, Line):
                line.looked_at(now, longest)
        self._timer = self._loop.call_later(SWEEP, self.look)

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
