"""Dead letters: jobs of a queue that failed for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tandemq.client.job import Job, read_jobs

if TYPE_CHECKING:
    from tandemq.client.pool import Pool

Filter = dict[str, Any]


class DeadLetters:
    """The dead letters of one queue. Filters have the fields of the wire's ``filter``."""

    def __init__(self, pool: Pool, queue: str) -> None:
        self.pool, self.queue = pool, queue

    async def _call(self, command: str, /, **fields: Any) -> dict[str, Any]:
        return await self.pool.call(command, queue=self.queue, **fields)

    async def jobs(self, count: int | None = None, *, filter: Filter | None = None) -> list[Job]:
        """Return them as jobs."""
        answer = await self._call("Dlq", count=count, filter=filter)
        return read_jobs(self.pool, answer["jobs"])

    async def entries(
        self, count: int | None = None, *, filter: Filter | None = None
    ) -> list[dict[str, Any]]:
        """Return what is known of each: its job, cause, moments and attempts."""
        answer = await self._call("Dlq", count=count, filter=filter)
        return list(answer.get("entries") or ())

    async def stats(self) -> dict[str, Any]:
        """Return how many there are, by cause, and how old they are."""
        return dict((await self._call("GetDlqStats"))["data"]["stats"])

    async def retry(
        self,
        id: str | None = None,
        *,
        count: int | None = None,
        filter: Filter | None = None,
        dry_run: bool | None = None,
    ) -> int:
        """Let one run again, the oldest ``count``, those that fit, or all; return how many."""
        answer = await self._call("RetryDlq", jobId=id, count=count, filter=filter, dryRun=dry_run)
        return int(answer["count"])

    async def purge(self, *, filter: Filter | None = None, dry_run: bool | None = None) -> int:
        """Forget all of them, or those that fit; return how many."""
        return int((await self._call("PurgeDlq", filter=filter, dryRun=dry_run))["count"])

    async def remove(self, id: str) -> bool:
        """Forget one; return whether there was one."""
        return bool((await self._call("RemoveDlqJob", jobId=id))["data"]["removed"])

    async def configure(self, /, **config: Any) -> None:
        """Change the rules, under their names on the wire: ``autoRetry``, ``maxAge``, ..."""
        await self._call("SetDlqConfig", config=config)

    async def config(self) -> dict[str, Any]:
        """Return the rules."""
        return dict((await self._call("GetDlqConfig"))["config"])
