"""Schedules: jobs of a queue that come again at their moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from tandemq.client.errors import BadOption, NotFound
from tandemq.client.job_options import FLAG, TEXT, WHOLE, JobOptions, Table, named, one_of, wire
from tandemq.client.spans import Span, millis

if TYPE_CHECKING:
    from tandemq.client.pool import Pool


class ScheduleOptions(TypedDict, total=False):
    """Options of one schedule."""

    tz: str
    """An IANA name; UTC is usual."""
    priority: int
    limit: int
    """It ends after so many runs."""
    immediately: bool
    """Its first run is now."""
    prevent_overlap: bool
    """No run while the last one waits or runs; on unless it is False."""
    skip_missed_on_restart: bool
    skip_if_no_worker: bool
    unique_key: str
    missed: Literal["skip", "once", "all"]
    max_lateness: Span
    job: JobOptions
    """Of each of its jobs: attempts, backoff, timeout, delay, stall_timeout, remove_on_*."""


def _missed(value: Any, name: str) -> str:
    return one_of(value, name, ("skip", "once", "all"))


def _of_jobs(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    fields = wire(value)
    if extra := fields.keys() - _TAKEN:
        raise BadOption(f"jobs of a schedule take no {', '.join(sorted(extra))}")
    return fields


_OPTIONS: Table = {
    "tz": ("timezone", TEXT),
    "priority": ("priority", WHOLE),
    "limit": ("maxLimit", WHOLE),
    "immediately": ("immediately", FLAG),
    "prevent_overlap": ("preventOverlap", FLAG),
    "skip_missed_on_restart": ("skipMissedOnRestart", FLAG),
    "skip_if_no_worker": ("skipIfNoWorker", FLAG),
    "unique_key": ("uniqueKey", TEXT),
    "missed": ("missed", _missed),
    "max_lateness": ("maxLateness", millis),
    "job": ("jobOptions", _of_jobs),
}
_TAKEN = {
    "maxAttempts", "backoff", "timeout", "delay", "stallTimeout", "removeOnComplete",
    "removeOnFail",
}  # fmt: skip


class Schedules:
    """The schedules that add jobs to one queue; their names are unique over all queues."""

    def __init__(self, pool: Pool, queue: str) -> None:
        self.pool, self.queue = pool, queue

    async def cron(
        self,
        name: str,
        pattern: str,
        data: object = None,
        *,
        job_name: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> dict[str, Any]:
        """Run at the moments of a cron expression; the same name again changes the schedule."""
        return await self._put(name, data, job_name, options, schedule=pattern)

    async def every(
        self,
        name: str,
        interval: Span,
        data: object = None,
        *,
        job_name: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> dict[str, Any]:
        """Run at a distance; the same name again changes the schedule."""
        every = millis(interval, "interval")
        return await self._put(name, data, job_name, options, repeatEvery=every)

    async def _put(
        self,
        name: str,
        data: object,
        job_name: str | None,
        options: ScheduleOptions,
        **when: Any,
    ) -> dict[str, Any]:
        fields = {"name": name, "queue": self.queue, "data": data, "jobName": job_name, **when}
        answer = await self.pool.call("Cron", **fields, **named(options, _OPTIONS))
        return dict(answer["cron"])

    async def get(self, name: str, *, preview: int | None = None) -> dict[str, Any] | None:
        """Return a schedule, with ``preview`` also its next runs; None where there is none."""
        try:
            answer = await self.pool.call("CronGet", name=name, preview=preview)
        except NotFound:
            return None
        found = dict(answer["cron"])
        return {**found, "preview": answer["preview"]} if preview else found

    async def list(self) -> list[dict[str, Any]]:
        """Return the schedules of this queue."""
        crons = (await self.pool.call("CronList"))["crons"]
        return [each for each in crons if each["queue"] == self.queue]

    async def count(self) -> int:
        """Return how many schedules this queue has."""
        return len(await self.list())

    async def remove(self, name: str) -> bool:
        """End a schedule; return whether there was one. A job of it stays."""
        try:
            await self.pool.call("CronDelete", name=name)
        except NotFound:
            return False
        return True
