"""Leases that were handed to a peer which had hung up already.

A pull may be read in the moment in which its client is long gone: the end of its stream is the next
thing in the socket. Its jobs were never seen by anybody, so they go back without counting as
interrupted, or ten clients that gave up would make a dead letter of a healthy job. What follows in
the socket is read within two turns of the loop; a worker that crashes over its job takes longer.
"""

from __future__ import annotations

import asyncio

from tandemq.server.connections import Connection

TURNS = 2  # of the loop, until what was in the socket has been read


class Grants:
    """Who was handed leases just now."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._fresh: list[Connection] = []

    def note(self, connection: Connection, now: int) -> None:
        """Leases were handed to this connection at ``now`` (ms)."""
        if connection.spared is None:
            connection.spared = now
            self._fresh.append(connection)

    def age(self) -> None:
        """The turn in which they were told of it is over."""
        if self._fresh:
            fresh, self._fresh = self._fresh, []
            self._loop.call_soon(self._older, fresh, TURNS)

    def _older(self, fresh: list[Connection], turns: int) -> None:
        if turns:
            self._loop.call_soon(self._older, fresh, turns - 1)
            return
        for connection in fresh:
            connection.spared = None
