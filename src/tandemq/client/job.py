"""``Job``: one job by its id, what was known of it last, and what can be done to it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from tandemq.client.errors import BadOption
from tandemq.client.spans import Span, millis, moment_of

if TYPE_CHECKING:
    from tandemq.client.pool import Pool


class KnownJob:
    """What was known of a job when it was added or read."""

    __slots__ = ()

    @property
    def id(self) -> str:
        """Its id, its own or the one that was chosen for it."""
        raise NotImplementedError

    @property
    def queue(self) -> str:
        """The name of its queue."""
        raise NotImplementedError

    @property
    def fields(self) -> dict[str, Any]:
        """Everything that is known, under the names on the wire."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"Job({self.id!r}, queue={self.queue!r}, name={self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownJob) and (self.id, self.queue) == (other.id, other.queue)

    def __hash__(self) -> int:
        return hash((self.id, self.queue))

    @property
    def name(self) -> str:
        """What kind of job it is."""
        return str(self.fields.get("name") or "default")

    @property
    def data(self) -> Any:
        """Its payload: as it was given, or as the server has it."""
        return self.fields.get("data")

    @property
    def priority(self) -> int:
        """Higher ones run first."""
        return int(self.fields.get("priority") or 0)

    @property
    def attempts(self) -> int:
        """Failures so far."""
        return int(self.fields.get("attempts") or 0)

    @property
    def max_attempts(self) -> int:
        """Failures after which it is a dead letter."""
        return int(self.fields.get("maxAttempts") or 3)

    @property
    def progress(self) -> float:
        """How far it is, from 0 to 100."""
        return float(self.fields.get("progress") or 0)

    @property
    def created_at(self) -> datetime | None:
        """When it was added."""
        return moment_of(self.fields.get("createdAt"))

    @property
    def run_at(self) -> datetime | None:
        """Before when it is not handed out."""
        return moment_of(self.fields.get("runAt"))

    @property
    def started_at(self) -> datetime | None:
        """When its present or last attempt began."""
        return moment_of(self.fields.get("startedAt"))

    @property
    def ended_at(self) -> datetime | None:
        """When it was completed."""
        return moment_of(self.fields.get("completedAt"))

    @property
    def failed_reason(self) -> str | None:
        """What its worker said when it failed last."""
        return self.fields.get("failedReason")

    @property
    def stack(self) -> tuple[str, ...]:
        """The last lines of the last failure's stack."""
        return tuple(map(str, self.fields.get("stacktrace") or ()))

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags."""
        return tuple(self.fields.get("tags") or ())

    @property
    def group(self) -> str | None:
        """The group that it takes turns in."""
        return self.fields.get("groupId")

    @property
    def parent_id(self) -> str | None:
        """The job that waits for it."""
        return self.fields.get("parentId")

    @property
    def children_ids(self) -> tuple[str, ...]:
        """The jobs that it waits for as their parent."""
        return tuple(self.fields.get("childrenIds") or ())

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The jobs that must be completed before it."""
        return tuple(self.fields.get("dependsOn") or ())


class Job(KnownJob):
    """One job of a server; ``refresh`` reads what is known of it again.

    Attributes:
        children: the jobs below it, where it was added or read as part of a flow.
    """

    __slots__ = ("_pool", "children", "fields", "id", "queue")

    id: str
    queue: str
    fields: dict[str, Any]

    def __init__(self, pool: Pool, queue: str, id: str, fields: dict[str, Any]) -> None:
        self._pool, self.queue, self.id, self.fields = pool, queue, id, fields
        self.children: tuple[Job, ...] = ()

    # -- reading -------------------------------------------------------------------------------

    async def _call(self, command: str, /, **fields: Any) -> dict[str, Any]:
        return await self._pool.call(command, id=self.id, **fields)

    async def refresh(self) -> Job:
        """Read it again, and return it.

        Raises:
            NotFound: it is not kept any more.
        """
        self.fields = (await self._call("GetJob"))["job"]
        self.queue = str(self.fields.get("queue", self.queue))
        return self

    async def result(self, timeout: Span | None = None) -> Any:
        """Wait until it has ended and return its result; nothing is polled.

        Raises:
            JobFailed: it is a dead letter; with what its worker said.
            Cancelled: it was taken away.
            Timeout: it has not ended in that time. It goes on.
            NotFound: there is no such job, or it was removed when it ended.
        """
        return await self._pool.results.of(self.id, timeout)

    async def state(self) -> str:
        """Return its state: waiting, prioritized, delayed, active, completed, failed, or unknown.

        A job that waits for others is in ``waiting-children``.
        """
        return str((await self._call("GetState"))["state"])

    async def explain(self) -> dict[str, Any]:
        """Return why it is not running, what counts most first; of a running job, who has it."""
        found: dict[str, Any] = (await self._call("Explain"))["data"]
        return found

    async def logs(self, start: int = 0, end: int | None = None) -> list[dict[str, Any]]:
        """Return lines of its log, the last one included."""
        found: list[dict[str, Any]] = (await self._call("GetLogs", start=start, end=end))["data"][
            "logs"
        ]
        return found

    async def children_values(self) -> dict[str, Any]:
        """Return the results of its children, by ``queue:id``."""
        return dict((await self._call("GetChildrenValues"))["data"]["values"])

    async def failed_children(self) -> dict[str, str]:
        """Return the errors of children in spite of which it went on."""
        return dict((await self._call("GetFailedChildrenValues"))["values"])

    async def ignored_children(self) -> dict[str, str]:
        """Return the errors of children that it was told to ignore."""
        return dict((await self._call("GetIgnoredChildrenFailures"))["values"])

    # -- while it waits ------------------------------------------------------------------------

    async def cancel(self) -> None:
        """Take it away before it runs."""
        await self._call("Cancel")

    async def discard(self, token: str | None = None) -> None:
        """Make a dead letter of it, whatever attempts are left."""
        await self._call("Discard", token=token)

    async def promote(self) -> None:
        """Let it run now though it is delayed."""
        await self._call("Promote")

    async def retry(self) -> None:
        """Let it run again: a dead letter, a completed job, or one that waits for its time."""
        if await self.state() == "completed":
            await self._pool.call("RetryCompleted", queue=self.queue, id=self.id)
        else:
            await self._call("MoveToWait")

    async def update(self, data: object) -> None:
        """Replace its payload."""
        await self._call("Update", data=data)
        self.fields = {**self.fields, "data": data}

    async def change_priority(self, priority: int, *, lifo: bool | None = None) -> None:
        """Give it another priority."""
        await self._call("ChangePriority", priority=priority, lifo=lifo)

    async def change_delay(self, delay: Span) -> None:
        """Let it wait from now on for another time."""
        await self._call("ChangeDelay", delay=millis(delay, "delay"))

    async def leave_parent(self) -> None:
        """Part it from its parent, which goes on if it waits for nothing else."""
        await self._call("RemoveChildDependency")

    async def remove_unprocessed_children(self) -> None:
        """Take away its children that have not begun; it waits for the others only."""
        await self._call("RemoveUnprocessedChildren")

    async def become_child_of(self, parent: Job | str) -> None:
        """Let another job wait for this one too."""
        id = parent if isinstance(parent, str) else parent.id
        await self._pool.call("UpdateParent", childId=self.id, parentId=id)

    async def free_key(self) -> None:
        """Free the unique key that it holds."""
        await self._call("RemoveJobDeduplicationKey")

    # -- while somebody works on it ------------------------------------------------------------

    async def update_progress(self, progress: float, message: str | None = None) -> None:
        """Say how far it is, from 0 to 100."""
        if not 0 <= progress <= 100:
            raise BadOption(f"progress is {progress!r}; it goes from 0 to 100")
        await self._call("Progress", progress=progress, message=message)

    async def log(self, message: str, level: str = "info") -> None:
        """Add a line to its log."""
        await self._call("AddLog", message=message, level=level)

    async def clear_logs(self, keep: int = 0) -> None:
        """Forget its log but for the newest lines."""
        await self._call("ClearLogs", keepLogs=keep)

    async def heartbeat(self, token: str | None = None) -> None:
        """Say that it is being worked on."""
        await self._call("JobHeartbeat", token=token)

    async def extend_lock(self, duration: Span, token: str | None = None) -> None:
        """Renew its lease from now on."""
        await self._call("ExtendLock", duration=millis(duration, "duration"), token=token)

    async def complete(self, result: object = None, token: str | None = None) -> None:
        """End it well, for somebody who pulled it by hand."""
        await self._call("ACK", result=result, token=token)

    async def fail(
        self, error: str, token: str | None = None, *, final: bool = False, stack: str | None = None
    ) -> None:
        """End an attempt badly; ``final``: there is no other one."""
        lines = stack.splitlines() if stack else None
        await self._call("FAIL", error=error, token=token, unrecoverable=final, stack=lines)

    async def move_to_wait(self, token: str | None = None) -> None:
        """Give it back, or end its delay."""
        await self._call("MoveToWait", token=token)

    async def move_to_delayed(self, delay: Span, token: str | None = None) -> None:
        """Give it back, to be handed out after a time."""
        await self._call("MoveToDelayed", delay=millis(delay, "delay"), token=token)

    async def move_to_waiting_children(self, token: str | None = None) -> bool:
        """Let it wait until all that it depends on is completed; return whether it has to."""
        answer = await self._call("MoveToWaitingChildren", token=token)
        return bool(answer["data"]["moved"])


def read_jobs(pool: Pool, found: list[dict[str, Any]]) -> list[Job]:
    """Return jobs of an answer."""
    return [Job(pool, str(each.get("queue")), str(each["id"]), each) for each in found]
