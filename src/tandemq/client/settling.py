"""What became of jobs, told to the server: many in one command, and until it has been heard.

A settlement whose answer was lost is said again with the same token, which can settle a job only
once: the server refuses the second one, and that is the sign that the first was heard.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from tandemq.client.errors import (
    LeaseLost,
    LinkError,
    NotFound,
    Refused,
    Timeout,
    Unavailable,
    Unencodable,
)
from tandemq.client.pool import Pool
from tandemq.client.reconnect import Backoff
from tandemq.client.work import Work

log = logging.getLogger("tandemq.worker")

BATCH = 1_000  # jobs of one ACKB
WORTH = 100  # jobs that are worth a command of their own while others are about to end
DELAY = 0.002  # s that fewer of them wait
BATCH_BYTES = 4 << 20  # of their results
FLIGHTS = 2  # batches under way; what ends meanwhile waits, and so the next one is larger
AGAIN, LONGEST = 0.1, 2.0  # s before something is said again
LOST = LeaseLost, NotFound
PASSING = LinkError, Timeout, Unavailable  # the same may be heard later

Ack = tuple[Work, Raw]


class Settler:
    """Tells the server what became of jobs, in the background."""

    def __init__(
        self, pool: Pool, settled: Callable[[Work], None], more: Callable[[], bool]
    ) -> None:
        """``settled`` is told when nothing more can be said of a job.

        ``more`` says whether other jobs are about to end, so that it is worth waiting for them.
        """
        self._pool, self._settled, self._more = pool, settled, more
        self._loop = asyncio.get_running_loop()
        self._acks: deque[Ack] = deque()
        self._flights = 0
        self._due = False
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def ack(self, work: Work, result: Raw) -> None:
        """A job was done."""
        self._acks.append((work, result))
        self._flush_soon()

    def fail(self, work: Work, fields: dict[str, Any]) -> None:
        """A job was not done; ``fields`` are those of FAIL."""
        self._spawn(self._fail(work, fields))

    @property
    def pending(self) -> int:
        """Settlements that the server has not answered yet, at least."""
        return len(self._acks) + len(self._tasks)

    async def flushed(self) -> None:
        """Wait until everything is said and heard."""
        while self._acks or self._tasks:
            if self._tasks:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(0)

    async def close(self) -> None:
        """Give up what was not heard."""
        self._acks.clear()
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _flush_soon(self) -> None:
        if self._flights >= FLIGHTS:
            return
        if len(self._acks) >= WORTH or not self._more():
            if not self._due:
                self._due = True
                self._loop.call_soon(self._flush)
        elif self._timer is None:
            self._timer = self._loop.call_later(DELAY, self._flush)

    def _flush(self) -> None:
        self._due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch: list[Ack] = []
        size = 0
        while self._acks and len(batch) < BATCH and size < BATCH_BYTES:
            batch.append(self._acks.popleft())
            size += len(bytes(batch[-1][1]))
        if batch:
            self._flights += 1
            self._spawn(self._ack_all(batch))
        if self._acks:
            self._flush_soon()

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ack_all(self, batch: list[Ack]) -> None:
        try:
            if len(batch) == 1 or not await self._ack_many(batch):
                for work, result in batch:
                    await self._ack(work, result, again=len(batch) > 1)
        finally:
            self._flights -= 1
            if self._acks:
                self._flush_soon()

    async def _ack_many(self, batch: list[Ack]) -> bool:
        """Acknowledge many jobs; False when some of them have to be looked at one by one."""
        fields = {
            "ids": [work.job.id for work, _ in batch],
            "results": [result for _, result in batch],
            "tokens": [work.token for work, _ in batch],
        }
        try:
            await self._say("ACKB", fields)
        except (Refused, Unencodable):
            return False
        for work, _ in batch:
            self._settled(work)
        return True

    async def _ack(self, work: Work, result: Raw, *, again: bool) -> None:
        fields = {"id": work.job.id, "token": work.token, "result": result}
        try:
            await self._say("ACK", fields, again=again)
        except LOST as lost:
            log.warning("%r was done, but its lease is lost: %s", work, lost.text)
        except (Refused, Unencodable) as refused:
            said = {"error": f"its result was refused: {refused}", "unrecoverable": True}
            await self._fail(work, said)
            return
        self._settled(work)

    async def _fail(self, work: Work, fields: dict[str, Any]) -> None:
        try:
            await self._say("FAIL", {"id": work.job.id, "token": work.token, **fields})
        except LOST:
            log.info("%r failed, but its lease is lost", work)
        except Refused as refused:
            log.error("%r failed, and that was refused: %s", work, refused.text)
        self._settled(work)

    async def _say(self, command: str, fields: dict[str, Any], *, again: bool = False) -> None:
        """Say something until it is heard; ``again``: it may have been heard before.

        Raises:
            Refused: it was heard now, and refused.
        """
        delays = Backoff(AGAIN, LONGEST)
        while True:
            try:
                await self._pool.call(command, **fields)
            except PASSING as passing:
                log.debug("%s is said again: %s", command, passing)
                again = True
                await asyncio.sleep(delays.next())
            except LOST:
                if not again:
                    raise
                return
            else:
                return
