"""Turns of connections that were held up: each goes on for its share, so that nobody waits long.

A pipeline of requests that take long would otherwise run to its end while everybody waits. So a
turn has a time; what is not done by then goes on in the next one, after whatever came meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandemq.server.connections import Connection
    from tandemq.server.meter import Meter

SLICE = 0.02  # s that requests may take in one turn


class Turns:
    """The connections that go on in the next turn, in the order in which they were held up.

    ``run(connection, ends)`` runs what was postponed until a moment of the meter's clock.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        meter: Meter,
        run: Callable[[Connection, float], None],
    ) -> None:
        self._loop, self._meter, self._run = loop, meter, run
        self._next: dict[Connection, None] = {}

    def resume(self, connection: Connection) -> None:
        """Let a connection go on in the next turn, once however often this is called."""
        if not self._next:
            self._loop.call_soon(self._go_on)
        self._next[connection] = None

    def _go_on(self) -> None:
        turn, self._next = self._next, {}
        share = SLICE / len(turn)
        for connection in turn:
            if connection.backlog and not connection.busy:
                self._run(connection, self._meter.clock() + share)
