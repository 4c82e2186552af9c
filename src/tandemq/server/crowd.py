"""The open connections: how many there may be, and who goes when there are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tandemq.server.guard import affordable

if TYPE_CHECKING:
    from tandemq.config import Settings
    from tandemq.server.connections import Connection


class Crowd:
    """Every connection that is open, by its id."""

    def __init__(self, settings: Settings) -> None:
        self.most = affordable(settings.max_connections)
        self.open: dict[int, Connection] = {}
        self.silent: dict[int, Connection] = {}  # have not sent a whole frame yet
        self._last_id = 0

    def next_id(self) -> int:
        """Return an id for a connection that is about to come."""
        self._last_id += 1
        return self._last_id

    def enter(self, connection: Connection) -> bool:
        """Take in a connection; False when there are too many."""
        if len(self.open) >= self.most:
            if not self.silent:
                return False
            silent = self.silent.pop(next(iter(self.silent)))  # aborted once: many may come now
            silent.transport.abort()  # nobody misses it
        self.open[connection.id] = self.silent[connection.id] = connection
        return True

    def leave(self, connection: Connection) -> bool:
        """Forget a connection; False when it is not known."""
        self.silent.pop(connection.id, None)
        return self.open.pop(connection.id, None) is not None
