"""Limits of a queue: how fast jobs are handed out, how many at a time, and when they stall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tandemq.client.spans import Span, millis

if TYPE_CHECKING:
    from tandemq.client.pool import Pool


class Limits:
    """The limits of one queue."""

    def __init__(self, pool: Pool, queue: str) -> None:
        self.pool, self.queue = pool, queue

    async def _call(self, command: str, /, **fields: Any) -> dict[str, Any]:
        return await self.pool.call(command, queue=self.queue, **fields)

    async def get(self, jobs: int = 1) -> dict[str, Any]:
        """Return ``rateLimit``, ``rateLimitTtl`` (ms until ``jobs`` may go), ``concurrencyLimit``.

        ``maxed`` says whether as many are active as may be.
        """
        return dict((await self._call("GetQueueLimits", maxJobs=jobs))["data"]["limits"])

    async def set_rate(self, max: int, per: Span, *, expires: Span | None = None) -> None:
        """Hand out at most so many in a time, until it expires or is cleared."""
        ttl = None if expires is None else millis(expires, "expires")
        await self._call("RateLimit", limit=max, duration=millis(per, "per"), ttl=ttl)

    async def clear_rate(self) -> None:
        """Hand out as fast as somebody pulls."""
        await self._call("RateLimitClear")

    async def set_concurrency(self, limit: int) -> None:
        """Let so many be active at a time."""
        await self._call("SetConcurrency", limit=limit)

    async def clear_concurrency(self) -> None:
        """Let any number be active."""
        await self._call("ClearConcurrency")

    async def set_stall(
        self,
        *,
        enabled: bool | None = None,
        interval: Span | None = None,
        max_stalls: int | None = None,
        grace: Span | None = None,
    ) -> None:
        """Change when a job without sign of life is taken back."""
        config = {
            "enabled": enabled,
            "stallInterval": None if interval is None else millis(interval, "interval"),
            "maxStalls": max_stalls,
            "gracePeriod": None if grace is None else millis(grace, "grace"),
        }
        given = {name: value for name, value in config.items() if value is not None}
        await self._call("SetStallConfig", config=given)

    async def stall(self) -> dict[str, Any]:
        """Return when a job without sign of life is taken back."""
        return dict((await self._call("GetStallConfig"))["config"])
