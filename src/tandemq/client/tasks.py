"""Tasks: functions that are called as ever, and run as jobs of a queue.

A task keeps its name, its signature and its types. What it needs beside its arguments, the job in
hand and dependencies, is filled in where it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import update_wrapper
from string import Formatter
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack, cast

from tandemq.client.context import alone
from tandemq.client.depends import Needs, Scope, at_once, awaits
from tandemq.client.errors import BadOption, Misused
from tandemq.client.job import Job
from tandemq.client.job_options import JobOptions, wire
from tandemq.client.outcomes import Retry
from tandemq.client.payload import Payload
from tandemq.client.routine import Place, Routine
from tandemq.client.sync import Job as SyncJob

if TYPE_CHECKING:
    from tandemq.client.task_queue import TaskQueue

P = ParamSpec("P")
R = TypeVar("R")


class TaskOptions(JobOptions, total=False):
    """Options of a task's jobs: those of any job, and two that are shorter for tasks."""

    retry: Retry
    """How often it is tried and how long it waits between; instead of attempts and backoff."""
    key: str
    """A unique key made of the arguments: ``user:{user_id}``; it is the task's own."""


class Task(Generic[P, R]):
    """A function whose calls can be jobs; called as it is, it just runs."""

    def __init__(
        self,
        queue: TaskQueue,
        function: Callable[P, R],
        name: str,
        pool: Place | None,
        options: TaskOptions,
    ) -> None:
        """Make a task; ``TaskQueue.task`` does it for you.

        Raises:
            TypeError, BadOption: the function cannot be a task, or an option cannot be used.
        """
        self.queue, self.function, self.name = queue, function, name
        self.routine = Routine(function, pool, as_task=True)
        self.given = options
        _checked(self, options)
        update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<task {self.name} of {self.queue.name}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; what it needs and is not given is made for this call."""
        needs = _missing(self.routine.needs, self.payload, args, kwargs)
        if not needs:
            return self.function(*args, **kwargs)
        if self.routine.is_async:
            return cast(R, self._call(needs, args, kwargs))
        if awaits(needs, self.queue.repertoire.overrides):
            raise Misused(
                f"{self.name} has an asynchronous dependency: give that argument yourself"
            )
        return cast(R, at_once(self._call(needs, args, kwargs)))

    async def _call(self, needs: Needs, args: Any, kwargs: Any) -> Any:
        """Call the function with what it needs; it has to wait only where that or it waits."""
        async with Scope(self.queue.repertoire.overrides) as scope:
            filled = await scope.fill(needs, alone(self.name))
            result: Any = self.function(*args, **{**kwargs, **filled})
            return await result if self.routine.is_async else result

    @property
    def payload(self) -> Payload:
        """How its arguments travel."""
        assert self.routine.payload is not None, "it was made as a task"
        return self.routine.payload

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Add a job that calls the function with these arguments.

        Raises:
            TypeError: the function does not take them.
            Others: as ``Queue.add``.
        """
        return await Prepared(self, self.given).enqueue(*args, **kwargs)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncJob:
        """As ``enqueue``, for programs without asyncio: it waits for the server's answer."""
        return Prepared(self, self.given).enqueue_sync(*args, **kwargs)

    def options(self, **options: Unpack[TaskOptions]) -> Prepared[P]:
        """Return the task with other options for the next job.

        Raises:
            BadOption: there is no such option, or its value cannot be.
        """
        _checked(self, options)
        return Prepared(self, cast(TaskOptions, {**self.given, **options}))


@dataclass(frozen=True, slots=True)
class Prepared(Generic[P]):
    """A task with the options of a job."""

    task: Task[P, Any]
    given: TaskOptions

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """As ``Task.enqueue``."""
        data, options = self._said(args, kwargs)
        return await self.task.queue.add(self.task.name, data, **options)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncJob:
        """As ``Task.enqueue_sync``."""
        data, options = self._said(args, kwargs)
        queue = self.task.queue
        return queue.client.queue(queue.name).add(self.task.name, data, **options)

    def _said(self, args: Any, kwargs: Any) -> tuple[dict[str, Any], JobOptions]:
        data = self.task.payload.bind(args, kwargs)
        options = dict(self.given)
        key = options.pop("key", None)
        if key is not None:
            values = {**self.task.payload.defaults, **data}
            options["unique_key"] = f"{self.task.name}:{str(key).format(**values)}"
        for change in self.task.queue.outgoing:
            change(self.task.name, options)
        return data, with_retry(options)


def _missing(needs: Needs, payload: Payload, args: Any, kwargs: Mapping[str, Any]) -> Needs:
    """Return what is needed and not given."""
    if not needs:
        return needs
    given = payload.signature.bind_partial(*args, **kwargs).arguments
    return Needs(
        tuple(name for name in needs.contexts if name not in given),
        {name: value for name, value in needs.values.items() if name not in given},
    )


def with_retry(options: Mapping[str, Any]) -> JobOptions:
    """Return options of a task as those of a job."""
    said = dict(options)
    retry: Retry | None = said.pop("retry", None)
    return cast(JobOptions, said if retry is None else {**said, **retry.options()})


def _checked(task: Task[..., Any], options: TaskOptions) -> None:
    """Find out now what would go wrong with the first job.

    Raises:
        BadOption
    """
    said = dict(options)
    key = said.pop("key", None)
    if "retry" in said and not isinstance(said["retry"], Retry):
        raise BadOption(f"retry is {said['retry']!r}; give Retry(5), or attempts=5")
    wire(with_retry(said))
    if key is None:
        return
    if not isinstance(key, str):
        raise BadOption(f"key is {key!r}; give a text such as 'user:{{user_id}}'")
    for _, field, _, _ in Formatter().parse(key):
        name = (field or "").partition(".")[0].partition("[")[0]
        if field is not None and name not in task.payload.names:
            known = ", ".join(task.payload.names) or "no parameters"
            raise BadOption(f"key={key!r}: {task.name} has no {name!r}; it has {known}")
