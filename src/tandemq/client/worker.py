"""``Worker``: runs the jobs of a queue, as many at a time as it may, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Self

from tandemq.client.errors import BadOption, Closed, Misused, TandemqError
from tandemq.client.hands import GRACE_AT_END, Figures, Hands
from tandemq.client.link import Link
from tandemq.client.performing import Repertoire
from tandemq.client.pool import Pool
from tandemq.client.routine import Place, Routine
from tandemq.client.spans import Span, millis, seconds
from tandemq.client.url import Target
from tandemq.client.watchdog import Watchdog
from tandemq.client.work import Why

log = logging.getLogger("tandemq.worker")

PULL_WAIT = 20_000  # ms that a pull waits in the server before it is made again
SHORTEST_LEASE = 50  # ms; of less, nothing would be left after the way to the server
TICK = 1.0  # s between looks at what waits in the worker


class Worker:
    """Runs the jobs of a queue.

    It is an asynchronous context manager, which works in the background; or ``run`` it until
    ``close`` is called. A handler takes the job in hand, a ``Context``; one that is no ``async
    def`` runs in a thread, or with ``pool="process"`` in a process.

    Attributes:
        drained: whether all jobs that it held were finished when it stopped.
        figures: what it has done.
    """

    def __init__(
        self,
        queue: str,
        handler: Callable[..., Any] | Repertoire,
        *,
        url: str | Target | None = None,
        concurrency: int = 10,
        pool: Place | None = None,
        name: str | None = None,
        lease: Span = 30.0,
        heartbeat: Span | None = None,
        drain_timeout: Span = 25.0,
        park: Span = 15.0,
        blocked_after: Span = 1.0,
        **options: Any,
    ) -> None:
        """Nothing is opened before it runs.

        Args:
            concurrency: jobs that run at a time.
            lease: how long a job stays ours without a sign of life.
            heartbeat: between two such signs; a sixth of ``lease`` unless told otherwise.
            drain_timeout: what running jobs have left when it is closed.
            park: how long a job waits whose name nobody here knows, before it is offered again.
            blocked_after: after which a handler that blocks the loop is warned of.
            options: of the connection, as ``AsyncClient`` takes them.

        Raises:
            BadOption, WrongUrl, TypeError: something cannot be used; the text says why.
        """
        if type(concurrency) is not int or concurrency < 1:
            raise BadOption(f"concurrency is {concurrency!r}; give a whole number, 1 or more")
        if isinstance(handler, Repertoire):
            self._repertoire = handler
        else:
            self._repertoire = Repertoire(anything=Routine(handler, pool))
        for word, text in (("queue", queue), ("name", name or "a worker")):
            given: object = text
            if not isinstance(given, str) or not given:
                raise BadOption(f"{word} is {given!r}; give a text that is not empty")
        self.queue, self.concurrency = queue, concurrency
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self.id = f"worker-{uuid.uuid4().hex[:12]}"
        self._lease = millis(lease, "lease")
        if self._lease < SHORTEST_LEASE:
            raise BadOption(f"lease is {lease!r}; give {SHORTEST_LEASE} ms or more")
        self._heartbeat = seconds(heartbeat, "heartbeat") if heartbeat else self._lease / 6000
        self._drain_timeout = seconds(drain_timeout, "drain_timeout")
        self._park = millis(park, "park")
        self._blocked_after = seconds(blocked_after, "blocked_after")
        self._pool = Pool(url, **{"pool_size": 1, **options})
        self._hands: Hands | None = None  # while it runs, and after
        self._main: asyncio.Task[None] | None = None
        self.drained = True

    # -- life ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until ``close`` is called, or this is cancelled.

        Raises:
            NotAuthorized, Refused: the server does not let it work.
            PoolGaveUp: processes for handlers do not come up.
            Misused: it runs already; Closed: it was closed.
        """
        await self._start()
        assert self._main is not None, "it was started"
        try:
            await asyncio.shield(self._main)
        except asyncio.CancelledError:
            await self.close(force=True)
            raise

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, *, force: bool = False) -> None:
        """Take nothing more, finish what runs or give it back, and close the connection.

        With ``force``, or when called again meanwhile by someone who has no time, running handlers
        are cancelled and their jobs given back, without an attempt being charged.
        """
        if self._main is None:
            await self._pool.close()
            return
        self._ending.set()
        if force:
            self._at_once.set()
        if not self._begun.is_set():
            self._main.cancel()
        await asyncio.wait({self._main})
        if not self._main.cancelled() and (error := self._main.exception()) is not None:
            raise error

    def cancel(self, id: str) -> bool:
        """Cancel the handler of a job that runs here; it is a dead letter then.

        False: it does not run here.
        """
        work = None if self._hands is None else self._hands.leases.held.get(id)
        if work is None or self._hands is None or work.settled:
            return False
        self._hands.cancel(work, Why.TOLD)
        return True

    @property
    def figures(self) -> Figures:
        """What it has done so far."""
        return Figures() if self._hands is None else self._hands.figures

    @property
    def active(self) -> int:
        """Jobs that run now."""
        return 0 if self._hands is None else self._hands.running

    async def _start(self) -> None:
        if self._main is not None:
            raise Misused("this worker runs already, or has run: make another one")
        if self._pool.closed:
            raise Closed("this worker was closed: make another one")
        self._ending, self._at_once = asyncio.Event(), asyncio.Event()
        self._begun = asyncio.Event()
        self._started_at = round(time.time() * 1000)
        self._pool.restore.append(self._register)
        pull = {"queue": self.queue, "owner": self.id, "lockTtl": self._lease, "timeout": PULL_WAIT}
        hands = Hands(self._pool, self._repertoire, pull, self.concurrency, self._park)
        self._hands = hands
        self._main = asyncio.create_task(self._work(hands), name=f"worker of {self.queue}")
        await _first(self._main, self._begun.wait())
        if self._main.done():
            await self._main

    async def _work(self, hands: Hands) -> None:
        watchdog = Watchdog(self._blocked_after, self._renew_apart, self._lease / 3000)
        try:
            await hands.performer.open()
            watchdog.start()
            hands.open()
            self._begun.set()
            upkeep = asyncio.create_task(self._upkeep(hands), name="tandemq upkeep")
            broken = hands.fetcher.broken
            try:
                await _first(broken, self._ending.wait(), upkeep)
                await self._drain(hands)
            finally:
                upkeep.cancel()
                await asyncio.gather(upkeep, return_exceptions=True)
            if broken.done():
                raise broken.result()
            if not upkeep.cancelled():
                upkeep.result()  # it ends only by raising
        except asyncio.CancelledError:
            if self._begun.is_set() or not self._ending.is_set():
                raise  # otherwise it was closed while a lifespan began
        finally:
            watchdog.close()
            await hands.close()
            await self._pool.close()

    async def _drain(self, hands: Hands) -> None:
        """Finish what runs, give back what does not end in time, and say good-bye."""
        hands.stop()
        await self._until_idle(hands, self._drain_timeout)
        left = hands.end(Why.STOPPING)
        self._at_once.clear()
        await self._until_idle(hands, GRACE_AT_END)
        for work in left:
            hands.settle_alone(work)
        with suppress(TimeoutError, TandemqError):
            async with asyncio.timeout(2 * GRACE_AT_END):
                await hands.settler.flushed()
                await self._pool.call("UnregisterWorker", workerId=self.id)
        self.drained = not hands.figures.returned

    async def _until_idle(self, hands: Hands, longest: float) -> None:
        """Wait until everything has ended and is said, unless somebody insists; in seconds."""
        end = time.monotonic() + longest
        while hands.busy and not self._at_once.is_set() and time.monotonic() < end:
            await asyncio.sleep(0.01)

    # -- upkeep --------------------------------------------------------------------------------

    async def _upkeep(self, hands: Hands) -> None:
        """Renew leases, and give back what waits too long behind handlers that turned slow.

        Raises:
            PoolGaveUp
        """
        last = time.monotonic()
        while True:
            await asyncio.sleep(min(TICK, self._heartbeat))
            hands.put_down(TICK)
            if hands.performer.broken is not None:
                raise hands.performer.broken
            if (now := time.monotonic()) - last >= self._heartbeat:
                last = now
                await self._beat(hands)

    async def _beat(self, hands: Hands) -> None:
        done = hands.figures
        said = {"activeJobs": hands.running, "processed": done.completed, "failed": done.failed}
        try:
            await hands.leases.renew(self._pool)
            await self._pool.call("Heartbeat", id=self.id, **said)
        except TandemqError as problem:
            log.debug("a heartbeat was not heard: %s", problem)

    async def _register(self, link: Link) -> None:
        """Say on a new connection who works here, and which jobs are still in work."""
        await link.ask(
            "RegisterWorker",
            workerId=self.id,
            name=self.name,
            queues=[self.queue],
            concurrency=self.concurrency,
            hostname=socket.gethostname(),
            pid=os.getpid(),
            startedAt=self._started_at,
        )
        leases = self._hands.leases if self._hands is not None else None
        if leases is not None and (beat := leases.beat()) is not None:
            leases.heard(beat, await link.ask("JobHeartbeatB", **beat))

    def _renew_apart(self) -> None:
        if self._hands is not None and self._pool.target.dial is None:
            self._hands.leases.renew_apart(self._pool.target)


async def _first(*those: Coroutine[Any, Any, Any] | asyncio.Future[Any]) -> None:
    """Wait until one of several things has happened; what is a coroutine is given up then."""
    waits = [asyncio.ensure_future(each) for each in those]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait, each in zip(waits, those, strict=True):
        if wait is not each:
            wait.cancel()
