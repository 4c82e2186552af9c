"""Groups of a queue: their jobs take turns, and each may have limits of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tandemq.client.spans import Span, millis

if TYPE_CHECKING:
    from tandemq.client.pool import Pool


class Group:
    """One group of one queue."""

    def __init__(self, pool: Pool, queue: str, name: str) -> None:
        self.pool, self.queue, self.name = pool, queue, name

    async def _call(self, command: str, /, **fields: Any) -> dict[str, Any]:
        answer = await self.pool.call(command, queue=self.queue, groupId=self.name, **fields)
        return dict(answer.get("data") or {})

    async def count(self) -> int:
        """Return how many jobs wait."""
        return int((await self._call("GetGroupJobsCount"))["count"])

    async def active_count(self) -> int:
        """Return how many jobs are active."""
        return int((await self._call("GetGroupActiveCount"))["count"])

    async def pause(self) -> bool:
        """Hand out nothing of it; return whether that is new."""
        return bool((await self._call("PauseGroup"))["changed"])

    async def resume(self) -> bool:
        """Hand out its jobs again; return whether that is new."""
        return bool((await self._call("ResumeGroup"))["changed"])

    async def is_paused(self) -> bool:
        """Return whether nothing of it is handed out."""
        return bool((await self._call("IsGroupPaused"))["paused"])

    async def set_rate(self, max: int, per: Span) -> None:
        """Hand out at most so many in a time, to pulls that bring a rate limit."""
        await self._call("SetGroupRateLimit", max=max, duration=millis(per, "per"))

    async def rate(self) -> dict[str, Any] | None:
        """Return ``max`` and ``duration`` (ms), None where none is set."""
        found: dict[str, Any] | None = (await self._call("GetGroupRateLimit"))["limit"]
        return found

    async def clear_rate(self) -> bool:
        """Forget its rate limit; return whether there was one."""
        return bool((await self._call("RemoveGroupRateLimit"))["removed"])

    async def shut_for(self, duration: Span) -> None:
        """Hand out nothing of it for a time."""
        await self._call("RateLimitGroup", duration=millis(duration, "duration"))

    async def shut_ms(self) -> int | None:
        """Return the ms for which it is shut, None where it is open."""
        ttl = int((await self._call("GetGroupRateLimitTtl"))["ttl"])
        return None if ttl < 0 else ttl

    async def set_concurrency(self, limit: int) -> None:
        """Let so many of its jobs be active at a time, for pulls that bring a limit."""
        await self._call("SetGroupConcurrency", concurrency=limit)

    async def concurrency(self) -> int | None:
        """Return its concurrency, None where none is set."""
        found: int | None = (await self._call("GetGroupConcurrency"))["concurrency"]
        return found

    async def clear_concurrency(self) -> bool:
        """Forget its concurrency; return whether there was one."""
        return bool((await self._call("RemoveGroupConcurrency"))["removed"])

    async def set_weight(self, weight: int) -> None:
        """Let it have so many jobs in each of its turns."""
        await self._call("SetGroupWeight", weight=weight)

    async def weight(self) -> int:
        """Return how many jobs it has in each of its turns."""
        return int((await self._call("GetGroupWeight"))["weight"])
