"""How a worker gets its jobs: a pull that waits in the server for each free place, never a poll.

A worker holds a little more than it runs where its handlers are short, as much as it begins within
``AHEAD`` seconds, so that a queue of short jobs is not a series of round trips.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from tandemq.client.errors import (
    LinkError,
    NotAuthorized,
    TandemqError,
    Timeout,
    Unavailable,
    WrongServer,
)
from tandemq.client.line import HOPELESS
from tandemq.client.pool import Pool
from tandemq.client.reconnect import Backoff

log = logging.getLogger("tandemq.worker")

AHEAD = 0.02  # s of work that may wait in the worker
MOST_AHEAD = 1_000  # jobs
MOST_PULLS = 8  # that wait at a time: a server lets 50 commands of a connection wait
MOST_JOBS = 1_000  # of one PULLB
# Shares of the newest handler in the moving average of their times. One that was slow may have
# waited for the processor only; and what waits too long behind slow ones is given back.
FASTER, SLOWER = 0.3, 0.03
LONGEST = 2.0  # s between attempts to pull from a server that refuses


class Pace:
    """How long handlers take, and so how many jobs may wait for them."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self._average: float | None = None

    def took(self, seconds: float) -> None:
        """A handler has ended."""
        known = self._average
        if known is None:
            self._average = seconds
        else:
            self._average = known + (FASTER if seconds < known else SLOWER) * (seconds - known)

    @property
    def ahead(self) -> int:
        """Jobs that may wait beside those that run."""
        if self._average is None:
            return 0
        return min(MOST_AHEAD, int(self.concurrency * AHEAD / max(self._average, 1e-6)))

    @property
    def step(self) -> int:
        """The smallest number of jobs that is worth a pull of its own."""
        return max(1, self.ahead // 4)


class Fetcher:
    """Keeps pulls waiting for as many jobs as there is room for.

    Attributes:
        broken: resolved with the reason when pulling makes no sense any more.
    """

    def __init__(
        self,
        pool: Pool,
        fields: dict[str, Any],
        pace: Pace,
        held: Callable[[], int],
        take: Callable[[dict[str, Any], str | None], None],
    ) -> None:
        """``fields`` are those of a pull; ``take`` gets each job and its token."""
        self._pool, self._fields, self._take = pool, fields, take
        self._pace, self._held = pace, held
        self._asked = 0
        self._pulls: set[asyncio.Task[None]] = set()
        self._delays = Backoff(0.05, LONGEST)
        self._resting: asyncio.TimerHandle | None = None
        self.open = False
        self.broken: asyncio.Future[TandemqError] = asyncio.get_running_loop().create_future()

    def refill(self) -> None:
        """Ask for as many jobs as there is room for, beyond those that are asked for already."""
        while self.open and self._resting is None and len(self._pulls) < MOST_PULLS:
            most = self._pace.concurrency + self._pace.ahead
            count = min(most - self._held() - self._asked, MOST_JOBS)
            if count < self._pace.step:
                return
            self._asked += count
            pull = asyncio.create_task(self._pull(count), name="tandemq pull")
            self._pulls.add(pull)
            pull.add_done_callback(self._pulls.discard)

    async def close(self) -> None:
        """Wait for nothing any more; what comes all the same is given back by the server."""
        self.open = False
        if self._resting is not None:
            self._resting.cancel()
        pulls = list(self._pulls)
        for pull in pulls:
            pull.cancel()
        await asyncio.gather(*pulls, return_exceptions=True)

    async def _pull(self, count: int) -> None:
        try:
            answer = await self._pool.call("PULLB", count=count, **self._fields)
        except TandemqError as problem:
            self._asked -= count
            self._trouble(problem)
            return
        except BaseException:
            self._asked -= count
            raise
        self._delays.reset()
        self._asked -= count
        jobs = answer.get("jobs") or ()
        tokens = answer.get("tokens") or [None] * len(jobs)
        try:
            for job, token in zip(jobs, tokens, strict=True):
                self._take(job, token)
        except (msgspec.ValidationError, ValueError) as odd:
            text = f"{self._pool.target} handed out what is no job: {odd}"
            self._trouble(WrongServer(text))
            return
        asyncio.get_running_loop().call_soon(self.refill)

    def _trouble(self, problem: TandemqError) -> None:
        """Try again where that may help."""
        passing = isinstance(problem, (LinkError, Timeout, Unavailable))
        if isinstance(problem, (*HOPELESS, NotAuthorized)) or not passing:
            if not self.broken.done():
                self.broken.set_result(problem)
            return
        log.debug("a pull is made again: %s", problem)
        if self.open and self._resting is None:
            loop = asyncio.get_running_loop()
            self._resting = loop.call_later(self._delays.next(), self._rested)

    def _rested(self) -> None:
        self._resting = None
        self.refill()
