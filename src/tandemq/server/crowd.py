"""The open connections: how many there may be, what all may keep, and who goes when it is too much.

A peer that does not read, or does not finish what it sends, has a bound of its own; many of them
together have one too. What is kept is summed up only now and then: when more has been added since
the last time than a sixteenth of what may be.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tandemq.server.guard import Arrivals, affordable

if TYPE_CHECKING:
    from tandemq.config import Settings
    from tandemq.server.connections import Connection

log = logging.getLogger("tandemq.server")


class Crowd:
    """Every connection that is open, by its id."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.most = affordable(settings.max_connections)
        self.most_bytes = settings.max_buffered_bytes
        self._grown = 0  # bytes that were added since the last look
        self.open: dict[int, Connection] = {}
        self.silent: dict[int, Connection] = {}  # have not sent a whole frame yet
        self._last_id = 0
        self.accepted = 0  # since the start
        self.rejected = 0  # for want of a place
        self._arrivals = Arrivals(settings.connections_per_minute)

    def next_id(self) -> int:
        """Return an id for a connection that is about to come."""
        self._last_id += 1
        return self._last_id

    def enter(self, connection: Connection) -> bool:
        """Take in a connection; False when there are too many."""
        if len(self.open) >= self.most:
            if not self.silent:
                self.rejected += 1
                return False
            silent = self.silent.pop(next(iter(self.silent)))  # aborted once: many may come now
            silent.transport.abort()  # nobody misses it
        self.accepted += 1
        self.open[connection.id] = self.silent[connection.id] = connection
        return True

    def leave(self, connection: Connection) -> bool:
        """Forget a connection; False when it is not known."""
        self.silent.pop(connection.id, None)
        return self.open.pop(connection.id, None) is not None

    def welcomes(self, origin: str) -> bool:
        """Count a connection from an address; False when too many have come from there."""
        welcome = self._arrivals.admit(origin, int(self._loop.time() * 1000))
        self.rejected += not welcome
        return welcome

    # -- what is kept for them -----------------------------------------------------------------

    def grew(self, size: int) -> None:
        """So many bytes are kept for one of them, perhaps not for long."""
        self._grown += size
        if self._grown > self.most_bytes // 16:
            self._grown = 0
            self._loop.call_soon(self._look)  # in the next turn: what is read at once is gone

    def _look(self) -> None:
        """Cut those for which most is kept until the rest is little enough."""
        kept = {connection: connection.kept_bytes for connection in self.open.values()}
        total = sum(kept.values())
        if total <= self.most_bytes:
            return
        for connection, size in sorted(kept.items(), key=lambda item: -item[1]):
            log.warning("closing a connection that makes us keep %d of %d bytes", size, total)
            connection.transport.abort()
            total -= size
            if total <= self.most_bytes:
                return
