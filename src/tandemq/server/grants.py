"""Leases that were handed to a peer which had hung up already.

A pull may be read when its client is long gone: the end of its stream is the next thing in the
socket. Nobody ever saw those jobs, so they go back without counting as interrupted; otherwise ten
clients that gave up would make a dead letter of a healthy job.
"""

from __future__ import annotations

import socket
from typing import Any

from tandemq.server.connections import Connection

ESTABLISHED = 1  # of the states that the kernel tells in the first byte of TCP_INFO


class Grants:
    """Who was handed leases in this turn."""

    def __init__(self) -> None:
        self._fresh: dict[Connection, int] = {}

    def note(self, connection: Connection, now: int) -> None:
        """Leases were handed to this connection at ``now`` (ms)."""
        self._fresh.setdefault(connection, now)

    def check(self) -> None:
        """Before they are told of it: spare the leases of those who are gone."""
        if self._fresh:
            fresh, self._fresh = self._fresh, {}
            for connection, at in fresh.items():
                if connection.spared is None and _hung_up(connection):
                    connection.spared = at


def _hung_up(connection: Connection) -> bool:
    transport: Any = connection.transport  # a guest may have none
    peer = None if transport is None else transport.get_extra_info("socket")
    if peer is None or not hasattr(socket, "TCP_INFO"):
        return False  # not to be told here: then it counts, as if it had been seen
    try:
        state: bytes = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    except OSError:
        return False
    return state[0] != ESTABLISHED
