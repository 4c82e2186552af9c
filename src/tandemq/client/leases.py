"""The jobs that a worker holds: their leases are renewed, and what is lost is noticed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tandemq.client.errors import Refused
from tandemq.client.pool import Pool
from tandemq.client.url import Target
from tandemq.client.work import Why, Work

log = logging.getLogger("tandemq.worker")


class Leases:
    """Jobs by their ids."""

    def __init__(self) -> None:
        self.held: dict[str, Work] = {}

    def beat(self) -> dict[str, Any] | None:
        """Return the fields of a heartbeat for all of them, None where there is none."""
        held = list(self.held.values())
        if not held:
            return None
        return {
            "ids": [work.job.id for work in held],
            "tokens": [work.token for work in held],
            "nameLost": True,
        }

    def heard(self, beat: dict[str, Any], answer: dict[str, Any]) -> bool:
        """Take note of an answer; False when some are lost, but it does not name them."""
        told = answer.get("data") or {}
        tokens = dict(zip(beat["ids"], beat["tokens"], strict=True))
        for id in told.get("lost", ()):
            self.lose(id, tokens.get(id))
        return "lost" in told or told.get("count") == len(beat["ids"])

    def lose(self, id: str, token: str | None) -> None:
        """End the handler of a job that is not ours any more."""
        work = self.held.get(id)
        if work is not None and work.token == token and not work.settled:
            log.warning("%r: its lease is lost, so its handler is cancelled", work)
            work.cancel(Why.LOST)

    async def renew(self, pool: Pool) -> None:
        """Renew all of them once.

        Raises:
            TandemqError: the server could not be asked.
        """
        beat = self.beat()
        if beat is None or self.heard(beat, await pool.call("JobHeartbeatB", **beat)):
            return
        for id, token in zip(beat["ids"], beat["tokens"], strict=True):
            try:
                await pool.call("JobHeartbeat", id=id, token=token)
            except Refused:
                self.lose(id, token)

    def renew_apart(self, target: Target) -> None:
        """Renew all of them from another thread, while the loop that owns them does not turn.

        Raises:
            TandemqError: the server could not be asked.
        """
        beat = self.beat()
        if beat is not None:
            asyncio.run(_beat_once(target, beat))


async def _beat_once(target: Target, beat: dict[str, Any]) -> None:
    pool = Pool(target, pool_size=1)
    try:
        await pool.call("JobHeartbeatB", **beat)
    finally:
        await pool.close()
