"""``Queue``: add jobs, find them, and control how they are handed out."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Unpack

from tandemq.client.calls import looked_at
from tandemq.client.dead_letters import DeadLetters
from tandemq.client.errors import BadOption, Closed, NotFound
from tandemq.client.events import Events
from tandemq.client.groups import Group
from tandemq.client.job import Job, read_jobs
from tandemq.client.job_options import JobOptions, wire
from tandemq.client.limits import Limits
from tandemq.client.schedules import Schedules
from tandemq.client.spans import Span, millis, moment_ms

if TYPE_CHECKING:
    from tandemq.client.pool import Pool

JobState = Literal[
    "waiting", "prioritized", "delayed", "active", "completed", "failed", "waiting-children"
]
Cleanable = Literal["waiting", "prioritized", "delayed", "paused", "completed", "failed"]
NewJob = tuple[str, object] | tuple[str, object, JobOptions]
PART = 1_000  # jobs of one request of ``add_many``
AHEAD = 16  # of its requests that wait for their answers


class Queue:
    """One queue of a server, by its name; it comes into being with its first job."""

    def __init__(self, pool: Pool, name: str) -> None:
        given: object = name
        if not isinstance(given, str) or not given:
            raise BadOption(f"the name of a queue is {name!r}; give a text that is not empty")
        self.pool, self.name = pool, name

    def __repr__(self) -> str:
        return f"Queue({self.name!r})"

    async def _call(self, command: str, /, **fields: Any) -> dict[str, Any]:
        return await self.pool.call(command, queue=self.name, **fields)

    # -- adding --------------------------------------------------------------------------------

    async def add(self, name: str, data: object = None, **options: Unpack[JobOptions]) -> Job:
        """Add a job and return it when the server has it.

        Jobs that are added at the same time travel together.

        Args:
            name: what kind of job it is.
            data: anything that msgspec can write: dataclasses, structs, pydantic models, or plain
                values.
            options: see ``JobOptions``.

        Raises:
            Unencodable: data cannot be written; the text names the place.
            BadOption, Refused, QueueFull, PayloadTooLarge, Timeout, ConnectionLost, NotSent
        """
        fields: dict[str, Any] = {"name": name, "data": data}
        if options:
            fields |= wire(options)
        id = await self.pool.adding.add(self.name, fields)
        return Job(self.pool, self.name, id, fields)

    async def add_many(self, jobs: Iterable[NewJob], *, part: int = PART) -> list[str]:
        """Add jobs, each a tuple of name, data and perhaps options, and return their ids.

        They go in parts, some of them at a time; each is added as a whole, or not at all. After a
        failure those before it may have been added.
        """
        ids: list[str] = []
        sent: deque[asyncio.Future[dict[str, Any]]] = deque()
        waiting = iter(jobs)
        try:
            while fields := [_fields(job) for job in islice(waiting, part)]:
                if len(sent) == AHEAD:
                    ids += (await sent.popleft())["ids"]
                sent.append(self.pool.send("PUSHB", {"queue": self.name, "jobs": fields}))
            while sent:
                ids += (await sent.popleft())["ids"]
        finally:
            for answer in sent:
                answer.add_done_callback(looked_at)
        return ids

    # -- finding -------------------------------------------------------------------------------

    def job(self, id: str) -> Job:
        """Return a job by its id without asking for it, to do something to it."""
        return Job(self.pool, self.name, id, {})

    async def get(self, id: str) -> Job | None:
        """Return a job as it is now, None where there is none."""
        try:
            return await self.job(id).refresh()
        except NotFound:
            return None

    async def get_by_custom_id(self, id: str) -> Job | None:
        """Return the unfinished job that bears an id of your own."""
        try:
            fields = (await self.pool.call("GetJobByCustomId", customId=id))["job"]
        except NotFound:
            return None
        return read_jobs(self.pool, [fields])[0] if fields else None

    async def jobs(
        self,
        state: JobState | Sequence[JobState] | None = None,
        *,
        start: int = 0,
        limit: int = 100,
        ascending: bool = True,
    ) -> list[Job]:
        """Return jobs by order of publication, in one state or several, or all of them."""
        found = await self._call("GetJobs", state=state, offset=start, limit=limit, asc=ascending)
        return read_jobs(self.pool, found["jobs"])

    async def counts(self) -> dict[str, int]:
        """Return how many jobs are in each state."""
        return _whole((await self._call("GetJobCounts"))["counts"])

    async def count(self) -> int:
        """Return how many jobs wait, the delayed ones included."""
        return int((await self._call("Count"))["count"])

    async def counts_per_priority(self) -> dict[int, int]:
        """Return how many jobs of each priority wait."""
        found = (await self._call("GetCountsPerPriority"))["counts"]
        return {int(priority): int(count) for priority, count in found.items()}

    async def holder_of(self, key: str) -> str | None:
        """Return the id of the job that holds a unique key."""
        found = await self._call("GetDeduplicationJobId", deduplicationId=key)
        id: str | None = found["data"]["jobId"]
        return id

    async def free_key(self, key: str) -> bool:
        """Free a unique key, whoever holds it; return whether somebody did."""
        return bool(
            (await self._call("RemoveDeduplicationKey", deduplicationId=key))["data"]["count"]
        )

    # -- control -------------------------------------------------------------------------------

    async def pause(self) -> None:
        """Hand out nothing; adding and settling go on."""
        await self._call("Pause")

    async def resume(self) -> None:
        """Hand out jobs again."""
        await self._call("Resume")

    async def is_paused(self) -> bool:
        """Return whether nothing is handed out."""
        return bool((await self._call("IsPaused"))["paused"])

    async def drain(self) -> int:
        """Take away what waits or is delayed; return how many there were."""
        return int((await self._call("Drain"))["count"])

    async def clean(
        self, older_than: Span, *, state: Cleanable = "waiting", limit: int | None = None
    ) -> list[str]:
        """Take away old jobs of a state, the oldest first; return their ids."""
        grace = millis(older_than, "older_than")
        return list((await self._call("Clean", grace=grace, state=state, limit=limit))["ids"])

    async def obliterate(self) -> None:
        """Take away everything, active jobs and settings too."""
        await self._call("Obliterate")

    async def promote(self, count: int | None = None) -> int:
        """Let delayed jobs run now; return how many there were."""
        return int((await self._call("PromoteJobs", count=count))["count"])

    async def retry_completed(
        self, *, count: int | None = None, before: datetime | None = None
    ) -> int:
        """Let completed jobs run again; return how many there were."""
        moment = None if before is None else moment_ms(before, "before")
        return int((await self._call("RetryCompleted", count=count, timestamp=moment))["count"])

    async def metrics(
        self, type: Literal["completed", "failed"], start: int = 0, end: int = -1
    ) -> dict[str, Any]:
        """Return how many jobs ended in each minute, newest first."""
        end_given = None if end == -1 else end
        found = await self._call("Metrics", type=type, start=start, end=end_given)
        return dict(found["data"])

    async def trim_events(self, keep: int) -> int:
        """Forget all but the newest events of the journal; return how many."""
        return int((await self._call("TrimEvents", maxLength=keep))["data"]["removed"])

    # -- its parts -----------------------------------------------------------------------------

    @property
    def dead_letters(self) -> DeadLetters:
        """Jobs that failed for good."""
        return DeadLetters(self.pool, self.name)

    @property
    def limits(self) -> Limits:
        """How fast, and how many at a time."""
        return Limits(self.pool, self.name)

    @property
    def schedules(self) -> Schedules:
        """Jobs that come again."""
        return Schedules(self.pool, self.name)

    def group(self, name: str) -> Group:
        """Return one of the groups whose jobs take turns."""
        return Group(self.pool, self.name, name)

    async def grouped_count(self) -> int:
        """Return how many jobs with a group wait."""
        return int((await self._call("GetGroupsJobsCount"))["data"]["count"])

    def events(self) -> Events:
        """Return what happens in this queue, from now on.

        Raises:
            Closed
        """
        if self.pool.closed:
            raise Closed("this client was closed: make a new one")
        return Events(self.pool.target, self.name)


def _fields(job: NewJob) -> dict[str, Any]:
    given: object = job
    if not isinstance(given, tuple) or not 2 <= len(given) <= 3:
        raise BadOption(f"a job is {job!r}; give a tuple of name, data and perhaps options")
    fields: dict[str, Any] = {"name": job[0], "data": job[1]}
    if len(job) == 3:
        fields |= wire(job[2])
    return fields


def _whole(counts: dict[str, float]) -> dict[str, int]:
    return {name: int(count) for name, count in counts.items()}
