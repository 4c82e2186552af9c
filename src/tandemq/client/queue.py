"""``Queue``: add jobs, find them, and control how they are handed out."""

from __future__ import annotations

from typing import Any

from tandemq.client.pool import Pool


class Queue:
    """One queue of a server, by its name."""

    def __init__(self, pool: Pool, name: str) -> None:
        self.pool, self.name = pool, name

    async def call(self, command: str, /, **fields: Any) -> dict[str, Any]:
        """Send a command that concerns this queue."""
        return await self.pool.call(command, queue=self.name, **fields)
