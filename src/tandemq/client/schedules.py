"""Schedules: jobs of a queue that come again at their moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from tandemq.client.errors import BadOption, NotFound
from tandemq.client.job_options import JobOptions, wire
from tandemq.client.spans import Span, millis

if TYPE_CHECKING:
    from tandemq.client.pool import Pool

TAKEN = frozenset(
    (
        "maxAttempts",
        "backoff",
        "timeout",
        "delay",
        "stallTimeout",
        "removeOnComplete",
        "removeOnFail",
    )
)


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


_NAMES = {
    "tz": "timezone",
    "priority": "priority",
    "limit": "maxLimit",
    "immediately": "immediately",
    "prevent_overlap": "preventOverlap",
    "skip_missed_on_restart": "skipMissedOnRestart",
    "skip_if_no_worker": "skipIfNoWorker",
    "unique_key": "uniqueKey",
    "missed": "missed",
}


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
        answer = await self.pool.call("Cron", **fields, **_wire(options))
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


def _wire(options: ScheduleOptions) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name in _NAMES:
            fields[_NAMES[name]] = value
        elif name == "max_lateness":
            fields["maxLateness"] = millis(options["max_lateness"], name)
        elif name == "job":
            fields["jobOptions"] = wire(options["job"])
            if extra := fields["jobOptions"].keys() - TAKEN:
                raise BadOption(f"jobs of a schedule take no {', '.join(sorted(extra))}")
        else:
            known = ", ".join((*_NAMES, "max_lateness", "job"))
            raise BadOption(f"there is no option {name}; there are {known}")
    return fields
