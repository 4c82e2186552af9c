"""One accepted socket: bytes to its session, frames back, and its limits."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from tandemq.commands.call import Call
from tandemq.server.doorway import SNIFF, SURPLUS, Doorway
from tandemq.server.guard import Window, origin_of
from tandemq.server.manners import Manners
from tandemq.server.tls import secure
from tandemq.wires.bunqueue.session import Session

if TYPE_CHECKING:
    import ssl

    from tandemq.server.runtime import Runtime

log = logging.getLogger("tandemq.server")

HIGH_WATER = 1 << 20  # unread bytes above which a connection is read no further
BACKLOG = 1_000  # requests that may wait behind a full window before reading stops
HELD = 1_000  # publishes of a VibeMQ client that may wait for room
SMALL = 1 << 16  # bytes that a socket takes at once from a peer that reads


class Connection(asyncio.Protocol):
    """Thin on purpose: the session knows the protocol, the runtime what a request does."""

    __slots__ = (
        "_begun", "_broker", "_half_frame", "_muted", "_postponed", "_room", "backlog", "broken",
        "call", "delivered", "door", "failed_logins", "id", "limiter", "out", "owed", "runtime",
        "session", "spared", "stuck", "tls", "transport", "trusted", "user", "waiting", "window",
    )  # fmt: skip

    def __init__(
        self,
        runtime: Runtime,
        id: int,
        *,
        greets: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """``greets`` wants the first bytes soon, as a port for VibeMQ clients does.

        ``tls`` is for a peer that wants it, on a port where that is up to the peer.
        """
        settings = runtime.settings
        self.runtime = runtime
        self.id = id
        self.session: Any = Session(settings.max_frame_bytes)
        self.door: Doorway | None = Doorway(self)
        self.tls = tls
        if greets:
            self.door.wait(SNIFF)
        self._broker: Manners | None = None  # what only VibeMQ clients are held to
        self.delivered = 0.0  # when a message was pushed to it last, by the loop's clock
        self.broken = True  # if it ends now: it has not taken its leave
        self.trusted = runtime.accounts.open
        self.user: str | None = None
        self.failed_logins = 0
        self.call = Call(runtime.engine, runtime, self)
        self.out: list[bytes] = []  # frames to be written at the end of this turn
        self._room = self.window = settings.in_flight
        self.waiting = 0  # pulls that wait: each takes a place of the window
        self.backlog: deque[Any] = deque()  # what came while the window was full
        self.stuck = False  # the peer does not read
        self.owed = 0  # bytes of answers that are made but not written yet
        self.spared: int | None = None  # leases taken from here on may never have been seen
        limit = settings.requests_per_minute
        self.limiter = Window(limit, settings.request_window_ms) if limit else None
        self._half_frame: asyncio.TimerHandle | None = None
        self._muted = False  # we do not read
        self._begun = 0  # bytes of a frame that is not finished yet, at most
        self._postponed = 0  # about how many bytes the backlog came in

    # -- from asyncio --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=HIGH_WATER)
        if (peer := transport.get_extra_info("socket")) is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # half-open peers (seed)
        if self.door is not None and self.door.inside:
            return  # the same peer as before, after its handshake
        if not self.runtime.crowd.welcomes(self.origin):
            self.transport.close()
        elif self.door is not None and not self.runtime.crowd.enter(self):
            self.door.surplus = True
            self.door.wait(SURPLUS)

    def secure(self, first: bytes) -> None:
        """Look anew inside of TLS, which begins with these bytes."""
        assert self.door is not None, "it speaks a wire already"
        context, self.tls = self.tls, None
        assert context is not None, "there is no certificate"
        self.door = Doorway(self, inside=True, surplus=self.door.surplus)
        secure(self.transport, self, context, first)

    def subscribes(self, session: Any) -> None:
        """Speak a VibeMQ wire from now on."""
        settings = self.runtime.settings
        self.session, self.trusted = session, False
        self._room = self.window = HELD
        limit = settings.messages_per_second
        self.limiter = Window(limit, 1_000) if limit else None
        self._broker = Manners(self)

    def data_received(self, data: bytes) -> None:
        if self.door is not None and not (data := self.door.look(data)):
            return
        if self._broker is not None:
            self._broker.heard()
        items = self.session.receive(data)
        size = len(data)
        if self._half_frame is not None or self.session.mid_frame:
            self.runtime.crowd.grew(size)
            size += self._begun
            self._begun = len(data) if items else size
            self._watch(restart=bool(items))
        if items:
            self.runtime.received(self, items)
            if self.backlog:
                self._postponed += size
                self.runtime.crowd.grew(size)
                self._listen()

    def eof_received(self) -> None:
        """A peer that sends no more is gone: nothing could be answered in its name."""

    def pause_writing(self) -> None:
        self.stuck = True
        self._listen()
        if self._broker is not None:
            self._broker.stuck()

    def resume_writing(self) -> None:
        self.stuck = False
        self._listen()
        self.runtime.turns.resume(self)
        if self._broker is not None:
            self._broker.reads()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        if self.door is not None:
            self.door.close()
        if self._broker is not None:
            self._broker.close()
        self.runtime.lost(self)
        self.session, self.out = Session(), []  # they would stay until the next collection

    # -- for the runtime -----------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """No request may start now: the window is full, or too many answers are not read yet."""
        return self.waiting >= self.window or self.stuck or self.owed > HIGH_WATER

    @property
    def kept_bytes(self) -> int:
        """About what is kept for it: output that is not read, input that is not done with."""
        unread = self.transport.get_write_buffer_size()
        return unread + self.owed + self._begun + self._postponed

    @property
    def origin(self) -> str:
        """What stands for the address of the peer."""
        return origin_of(self.transport.get_extra_info("peername"))

    @property
    def title(self) -> str:
        """Who it is, for people: its user, or else its address."""
        peer = self.transport.get_extra_info("peername")
        return self.user or (f"{peer[0]}:{peer[1]}" if peer else f"connection {self.id}")

    @property
    def is_broker(self) -> bool:
        """Whether it speaks a VibeMQ wire."""
        return self._broker is not None

    def leave(self) -> None:
        """End in good order: the peer has said that it goes."""
        self.broken = False
        self.runtime.hang_up(self)

    def farewell(self, reason: str) -> None:
        """End from our side, and say why."""
        self.out.append(said := self.session.goodbye(reason))
        self.owed += len(said)
        self.close()

    def hold(self) -> None:
        """Start no more requests until ``let_go``: who asks is not known yet."""
        self.window = 0

    def let_go(self) -> None:
        """Start requests again; whoever answers the one that was waited for sees to it."""
        self.window = self._room

    def postpone(self, items: list[Any]) -> None:
        """Keep requests until there is room, and read no further if there are many."""
        self.backlog += items
        self._listen()

    def flush(self) -> None:
        """Write what was said in this turn."""
        out, self.out = self.out, []
        data = out[0] if len(out) == 1 else b"".join(out)
        self.owed -= len(data)
        transport = self.transport
        if transport.is_closing():
            return
        unread = transport.get_write_buffer_size()  # what is to be written is nobody's fault yet
        if unread > self.runtime.settings.max_unread_bytes:
            log.warning("closing a connection that leaves %d bytes unread", unread)
            if self._broker is not None:
                self._broker.fails()
            transport.abort()
            return
        transport.write(data)
        if unread or len(data) > SMALL:
            self.runtime.crowd.grew(len(data))

    def close(self) -> None:
        """Say what is left to say, then hang up."""
        if self.out:
            self.flush()
        self.transport.close()

    def _listen(self) -> None:
        mute = self.stuck or len(self.backlog) > BACKLOG or self._postponed > HIGH_WATER
        if mute != self._muted and not self.transport.is_closing():
            self._muted = mute
            (self.transport.pause_reading if mute else self.transport.resume_reading)()

    def heard(self, before: int) -> None:
        """The backlog has shrunk from so many requests: read again if there is room."""
        self._postponed = self._postponed * len(self.backlog) // before
        self._listen()

    # -- half frames ---------------------------------------------------------------------------

    def _watch(self, *, restart: bool) -> None:
        """Give the rest of a frame so much time in all, however it dribbles in (quirk 7)."""
        if not self.session.mid_frame:
            self._begun = 0
            self._unwatch()
        elif restart or self._half_frame is None:
            self._unwatch()
            self._wait_for_rest()

    def _wait_for_rest(self) -> None:
        wait = self.runtime.settings.half_frame_timeout
        self._half_frame = self.runtime.loop.call_later(wait, self._cut)

    def _unwatch(self) -> None:
        if self._half_frame is not None:
            self._half_frame.cancel()
            self._half_frame = None

    def _cut(self) -> None:
        if self._muted:  # it is we who keep it from being finished
            self._wait_for_rest()
            return
        log.info("closing a connection that left a frame unfinished")
        self.transport.abort()
