"""The first bytes of a connection: which wire its peer speaks, and how long that may take.

Nobody is cut for silence on a port that job clients use; there the time begins with the first byte
(ruling 8). Whoever is one too many is let speak as well, so that it is refused in its own words.
"""

from __future__ import annotations

import logging
from asyncio import TimerHandle
from typing import TYPE_CHECKING

from tandemq.model.errors import TooManyConnections
from tandemq.wires.sniff import LONGEST_FRAME, Wire, http_answer, sniff
from tandemq.wires.vibemq.session import Session

if TYPE_CHECKING:
    from tandemq.server.connections import Connection

log = logging.getLogger("tandemq.server")

SNIFF = 10.0  # s for the few bytes that tell
SURPLUS = 1.0  # s for those of somebody who is one too many


class Doorway:
    """Where a connection stands until it is known what it speaks."""

    __slots__ = ("_connection", "_first", "_timer", "inside", "surplus")

    def __init__(
        self, connection: Connection, *, inside: bool = False, surplus: bool = False
    ) -> None:
        """``inside`` of TLS, ``surplus``: there is no place for it."""
        self._connection = connection
        self.inside = inside
        self._first = b""
        self._timer: TimerHandle | None = None
        self.surplus = surplus

    def wait(self, seconds: float) -> None:
        """Give the peer so much time from now on."""
        if self._timer is None:
            self._timer = self._connection.runtime.loop.call_later(seconds, self._cut)

    def close(self) -> None:
        """Wait no more."""
        if self._timer is not None:
            self._timer.cancel()

    def look(self, data: bytes) -> bytes:
        """Add bytes; return all of them when it is known who has to read them, b"" until then."""
        self._first += data
        wire = sniff(self._first)
        if wire is None and self._too_long():
            wire = Wire.BUNQUEUE
        if wire is None:
            self.wait(min(SNIFF, self._connection.runtime.settings.half_frame_timeout))
            return b""
        self.close()
        connection, first = self._connection, self._first
        if wire is Wire.TLS and connection.tls is not None:
            connection.secure(first)
            return b""
        connection.door = None
        if not self._let_in(wire):
            connection.transport.close()
            return b""
        return first

    def _too_long(self) -> bool:
        """Whether a frame is announced that nobody here would read.

        What is longer than any frame may still be HTTP or TLS, which is not ours to judge.
        """
        settings = self._connection.runtime.settings
        longest = max(settings.max_frame_bytes, settings.max_message_size)
        announced = int.from_bytes(self._first[:4], "big")
        return len(self._first) >= 4 and longest < announced <= LONGEST_FRAME

    def _let_in(self, wire: Wire) -> bool:
        connection = self._connection
        if wire is Wire.HTTP:
            connection.transport.write(http_answer(connection.runtime.http_port))
            return False
        if wire is Wire.TLS:
            log.info("closing a connection that wants TLS where there is none")
            return False
        if wire is not Wire.BUNQUEUE:
            settings = connection.runtime.settings
            connection.subscribes(
                Session(
                    wire,
                    settings.max_message_size,
                    settings.compressions,
                    settings.compression_threshold,
                )
            )
        if self.surplus:
            self._refuse()
        return not self.surplus

    def _refuse(self) -> None:
        connection = self._connection
        error = TooManyConnections(connection.runtime.crowd.most)
        connection.transport.write(connection.session.refuse(error))

    def _cut(self) -> None:
        """It has taken too long; who is one too many is told so, whatever it speaks."""
        if self.surplus:
            self._refuse()
            self._connection.transport.close()
        else:
            log.info("closing a connection that did not say what it speaks")
            self._connection.transport.abort()
