"""The jobs in a worker's hands: begun, run, cancelled, and what becomes of each."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

import msgspec
from msgspec import Raw

from tandemq.client.context import Leased
from tandemq.client.failures import failure_of
from tandemq.client.fetching import Fetcher, Pace
from tandemq.client.leases import Leases
from tandemq.client.outcomes import Skip
from tandemq.client.performing import Performer, Repertoire
from tandemq.client.pool import Pool
from tandemq.client.processes import Failed
from tandemq.client.routine import Routine
from tandemq.client.settling import Settler
from tandemq.client.work import Why, Work

log = logging.getLogger("tandemq.worker")

GRACE = 5.0  # s a cancelled handler has to clean up before its job is settled without it
GRACE_AT_END = 0.5  # the same when the worker stops
NOTHING = Raw(b"\xc0")


class Figures(msgspec.Struct):
    """What a worker has done."""

    completed: int = 0
    failed: int = 0
    parked: int = 0  # jobs of names that it does not know, given back
    returned: int = 0  # jobs given back because it stopped
    lost: int = 0  # jobs whose leases were lost while they ran


class Hands:
    """Everything that a worker holds between its first pull and its last settlement.

    Attributes:
        running: how many handlers run.
        ahead: jobs that wait for one of them to end.
    """

    def __init__(
        self, pool: Pool, repertoire: Repertoire, pull: dict[str, Any], concurrency: int, park: int
    ) -> None:
        """``pull`` are the fields of a pull; ``park`` is in ms."""
        self._pool, self._repertoire = pool, repertoire
        self._concurrency, self._park = concurrency, park
        self._queue: str = pull["queue"]
        self._loop = asyncio.get_running_loop()
        self.figures = Figures()
        self.leases = Leases()
        self.ahead: deque[Work] = deque()
        self.running = 0
        self.pace = Pace(concurrency)
        self.performer = Performer(repertoire, concurrency, f"tandemq {self._queue}")
        self.settler = Settler(pool, self._let_go, lambda: bool(self.ahead))
        held = self.leases.held.__len__
        self.fetcher = Fetcher(pool, pull, self.pace, held, self._take)
        self._at_work: set[Work] = set()
        self._unknown: set[str] = set()
        self._refilling = False

    @property
    def busy(self) -> bool:
        """Whether a handler runs, or something is not said yet."""
        return bool(self.running or self.settler.pending)

    def open(self) -> None:
        """Begin to pull."""
        self.fetcher.open = True
        self._refill()

    def stop(self) -> None:
        """Pull nothing more, and give back what has not begun."""
        self.fetcher.open = False
        self.put_down(0)

    def put_down(self, longest: float) -> None:
        """Give back what has waited behind other handlers for more than so many seconds."""
        now = self._loop.time()
        while self.ahead and now - self.ahead[0].began >= longest:
            self._return(self.ahead.popleft())

    def end(self, why: Why) -> list[Work]:
        """Cancel every handler that runs; return their jobs."""
        left = [work for work in self.leases.held.values() if not work.settled]
        for work in left:
            self.cancel(work, why)
        return left

    async def close(self) -> None:
        """Let go of everything at once."""
        await self.fetcher.close()
        await self.settler.close()
        self.performer.give_up()
        if tasks := [work.task for work in self._at_work if work.task is not None]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=GRACE_AT_END)
        await self.performer.close()

    # -- jobs ----------------------------------------------------------------------------------

    def _take(self, fields: dict[str, Any], token: str | None) -> None:
        """Hold a job that the server handed out."""
        job = msgspec.convert(fields, Leased)
        known = self.leases.held.get(job.id)
        if known is not None and not known.settled and known.why is not Why.LOST:
            known.token = token  # its lease ended with a connection, and it came back to us
            return
        work = Work(job, token, self._say, self._loop.time())
        self.leases.held[job.id] = work
        if not self.fetcher.open:
            self._return(work)
        elif self.running < self._concurrency:
            self._begin(work)
        else:
            self.ahead.append(work)

    async def _say(self, command: str, fields: dict[str, Any]) -> Any:
        return await self._pool.call(command, **fields)

    def _begin(self, work: Work) -> None:
        routine = self._repertoire.find(work.job.name)
        if routine is None:
            self._park_unknown(work)
            return
        self.running += 1
        self._at_work.add(work)
        work.began = self._loop.time()
        if work.job.timeout:
            after = work.job.timeout / 1000
            work.timers.append(self._loop.call_later(after, self.cancel, work, Why.LATE))
        work.task = self._loop.create_task(self._perform(routine, work), name=repr(work))

    async def _perform(self, routine: Routine, work: Work) -> None:
        error: BaseException | None = None
        result = NOTHING
        try:
            result = await self.performer.perform(routine, work)
        except BaseException as raised:
            if isinstance(raised, KeyboardInterrupt) or not self._loop.is_running():
                raise  # the program ends
            error = raised
        finally:
            self._ended(work)
        self._settle(work, result, error)

    def _ended(self, work: Work) -> None:
        """A handler is done: its place is free."""
        self.running -= 1
        self._at_work.discard(work)
        work.rest()
        self.pace.took(self._loop.time() - work.began)
        while self.ahead and self.running < self._concurrency:
            self._begin(self.ahead.popleft())
        self._refill()

    def _refill(self) -> None:
        """Ask for more once this turn of the loop has ended."""
        if not self._refilling:
            self._refilling = True
            self._loop.call_soon(self._refill_now)

    def _refill_now(self) -> None:
        self._refilling = False
        self.fetcher.refill()

    # -- what becomes of them ------------------------------------------------------------------

    def _settle(self, work: Work, result: Raw, error: BaseException | None) -> None:
        """Decide what becomes of a job whose handler has ended."""
        if work.settled:
            return
        if work.why is not None and error is not None:
            self.settle_alone(work)
            return
        if error is None or isinstance(error, Skip):
            self._done(work, result)
            return
        fields = error.fields if isinstance(error, Failed) else failure_of(error)
        if fields is None:
            self._done(work, NOTHING)
        else:
            self._failed(work, fields)

    def _done(self, work: Work, result: Raw) -> None:
        work.settled = True
        if work.why is Why.LOST:
            self._let_go(work)
            return
        self.figures.completed += 1
        self.settler.ack(work, result)

    def _failed(self, work: Work, fields: dict[str, Any]) -> None:
        work.settled = True
        self.figures.failed += 1
        log.info("%r failed: %s", work, fields.get("error"))
        self.settler.fail(work, fields)

    def cancel(self, work: Work, why: Why) -> None:
        work.cancel(why)
        grace = self._loop.call_later(GRACE, self.settle_alone, work)
        work.timers.append(grace)

    def settle_alone(self, work: Work) -> None:
        """Settle a job whose handler was told to end, whether it has or not."""
        if work.settled:
            return
        match work.why:
            case Why.LOST:
                work.settled = True
                self.figures.lost += 1
                self._let_go(work)
            case Why.LATE:
                limit = (work.job.timeout or 0) / 1000
                self._failed(work, {"error": f"TimeoutError: not done within {limit:g} s"})
            case Why.TOLD:
                self._failed(work, {"error": "it was cancelled", "unrecoverable": True})
            case _:
                self.figures.returned += 1
                self._return(work)

    def _return(self, work: Work) -> None:
        """Give a job back uncharged."""
        work.settled = True
        self.settler.fail(work, {"charge": False})

    def _park_unknown(self, work: Work) -> None:
        """Give a job back that nobody here knows how to run, for a worker that does."""
        name = work.job.name or ""
        if name not in self._unknown:
            self._unknown.add(name)
            log.warning(
                "no task of this worker is named %r; its jobs wait in %s for a worker that has it",
                name,
                self._queue,
            )
        work.settled = True
        self.figures.parked += 1
        error = f"no worker of {self._queue} has a task named {name!r} yet"
        self.settler.fail(work, {"charge": False, "delay": self._park, "error": error})

    def _let_go(self, work: Work) -> None:
        """Nothing more is said of a job."""
        work.rest()
        if self.leases.held.get(work.job.id) is work:
            del self.leases.held[work.job.id]
        self._refill()
