"""What only VibeMQ clients are held to: to be heard of now and then, and to read.

A client sends a Ping every 30 s; one that is silent for three times as long is gone, whatever its
socket says (seed). A subscriber that does not read is passed over, and finally cut.
"""

from __future__ import annotations

import logging
from asyncio import TimerHandle
from typing import TYPE_CHECKING

from tandemq.engine import subscriptions

if TYPE_CHECKING:
    from tandemq.server.connections import Connection

log = logging.getLogger("tandemq.server")


class Manners:
    """The patience with one connection."""

    __slots__ = ("_connection", "_heard", "_idle", "_limit", "_slow")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._limit = connection.runtime.settings.idle_timeout
        self._heard = 0.0  # when the peer sent something last, by the loop's clock
        self._idle: TimerHandle | None = None
        self._slow: TimerHandle | None = None
        self.heard()
        if self._limit:
            self._look_in(self._limit)

    def heard(self) -> None:
        """The peer has sent something."""
        self._heard = self._connection.runtime.loop.time()

    def stuck(self) -> None:
        """The peer does not read: others get its share, and its time runs."""
        self._stall(stalled=True)
        if self._slow is None:
            runtime = self._connection.runtime
            self._slow = runtime.loop.call_later(runtime.settings.slow_timeout, self._cut)

    def reads(self) -> None:
        """The peer reads again."""
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None
        self._stall(stalled=False)

    def close(self) -> None:
        """The connection has ended."""
        for timer in (self._idle, self._slow):
            if timer is not None:
                timer.cancel()

    def _stall(self, *, stalled: bool) -> None:
        runtime, id = self._connection.runtime, self._connection.id
        if id in runtime.engine.subscribers:
            subscriptions.stall(runtime.engine, id, runtime.begin(), stalled=stalled)

    def _look_in(self, seconds: float) -> None:
        self._idle = self._connection.runtime.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        left = self._heard + self._limit - self._connection.runtime.loop.time()
        if left > 0:
            self._look_in(left)
            return
        log.info("closing a connection that was silent for %g s", self._limit)
        self._connection.farewell("keepalive_timeout")

    def _cut(self) -> None:
        log.warning("closing a subscriber that does not read")
        self.fails()
        self._connection.transport.abort()

    def fails(self) -> None:
        """The connection is ended because nothing more can be sent on it (S-045)."""
        self._connection.runtime.engine.counters.errors += 1
