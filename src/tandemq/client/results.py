"""Waiting for the ends of jobs: told by the server, however many wait.

A waiting request holds one of the few places that a connection has for them, so only some wait at a
time. While others queue up for a place each wait is short, and they take turns.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tandemq.client.errors import Cancelled, JobFailed, NotFound, Timeout
from tandemq.client.spans import Span, seconds

if TYPE_CHECKING:
    from tandemq.client.pool import Pool

PLACES = 32  # of the 50 that one connection has
LONG, SHORT = 10.0, 0.25  # seconds of one wait: while places are free, and while they are not
ENDED = ("completed", "failed", "unknown")


class Results:
    """Waits for the ends of jobs over one pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._taken = 0
        self.forget()

    def forget(self) -> None:
        """Drop what belongs to another process or loop."""
        self._taken = 0
        self._places = asyncio.Semaphore(PLACES)

    async def of(self, id: str, timeout: Span | None = None) -> Any:
        """Return the result of a job when it has one.

        Raises:
            JobFailed: it is a dead letter.
            Cancelled: it was taken away.
            Timeout: it has not ended in that time.
            NotFound: there is no such job, or it was removed when it ended.
        """
        if timeout is None:
            return await self._wait(id)
        limit = seconds(timeout, "timeout")
        try:
            async with asyncio.timeout(limit):
                return await self._wait(id)
        except TimeoutError as error:
            if isinstance(error, Timeout):
                raise
            raise Timeout(f"job {id} has not ended within {limit:g} s; it goes on") from None

    async def _wait(self, id: str) -> Any:
        while True:
            async with self._places:
                self._taken += 1
                try:
                    span = LONG if self._taken <= PLACES // 2 else SHORT
                    answer = await self._pool.call(
                        "WaitJob", id=id, timeout=int(span * 1000), anyEnd=True
                    )
                finally:
                    self._taken -= 1
            if answer.get("completed"):
                return answer.get("result")
            if answer.get("removed"):
                raise Cancelled(f"job {id} was removed before it ended")
            if answer.get("failed") or span == LONG:
                await self._look(id)

    async def _look(self, id: str) -> None:
        """Raise for a job that has failed; other servers tell of completed ones only."""
        if (await self._pool.call("GetState", id=id))["state"] not in ("failed", "unknown"):
            return
        try:
            job = (await self._pool.call("GetJob", id=id))["job"]
        except NotFound:
            raise Cancelled(f"job {id} is not kept any more") from None
        if job.get("state", "failed") == "failed":
            error = job.get("failedReason")
            raise JobFailed(id, error, tuple(map(str, job.get("stacktrace") or ())))
