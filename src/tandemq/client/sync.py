"""``Client``: the same surface for programs without asyncio; each method waits for its answer.

A twin has no code of its own for a method: it names the asynchronous one, whose signature, options
and documentation are its own, and runs it in the event loop of its client's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from tandemq.client import client as aio_client
from tandemq.client import dead_letters as aio_dead_letters
from tandemq.client import events as aio_events
from tandemq.client import flow as aio_flow
from tandemq.client import groups as aio_groups
from tandemq.client import job as aio_job
from tandemq.client import limits as aio_limits
from tandemq.client import queue as aio_queue
from tandemq.client import schedules as aio_schedules
from tandemq.client import webhooks as aio_webhooks
from tandemq.client.blocking import Blocking, Waits, blocking
from tandemq.client.job import KnownJob
from tandemq.client.portal import LoopThread
from tandemq.client.url import Target

A = TypeVar("A")
P = ParamSpec("P")
T = TypeVar("T")


def gives_job(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, aio_job.Job]],
) -> Blocking[P, Job]:
    """Return the twin of a method that returns a job."""
    return Blocking(method, lambda job, thread: Job(job, thread))


def gives_jobs(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, list[aio_job.Job]]],
) -> Blocking[P, list[Job]]:
    """Return the twin of a method that returns jobs."""
    return Blocking(method, lambda jobs, thread: [Job(each, thread) for each in jobs])


def finds_job(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, aio_job.Job | None]],
) -> Blocking[P, Job | None]:
    """Return the twin of a method that returns a job or None."""
    return Blocking(method, lambda job, thread: None if job is None else Job(job, thread))


class Job(Waits[aio_job.Job], KnownJob):
    """One job of a server."""

    @property
    def id(self) -> str:
        """Its id, its own or the one that was chosen for it."""
        return self.inner.id

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self.inner.queue

    @property
    def fields(self) -> dict[str, Any]:
        """Everything that is known, under the names on the wire."""
        return self.inner.fields

    @property
    def children(self) -> tuple[Job, ...]:
        """The jobs below it, where it was added or read as part of a flow."""
        return tuple(Job(each, self._thread) for each in self.inner.children)

    def become_child_of(self, parent: Job | str) -> None:
        """Let another job wait for this one too."""
        self.wait(self.inner.become_child_of(parent if isinstance(parent, str) else parent.id))

    refresh = gives_job(aio_job.Job.refresh)
    result = blocking(aio_job.Job.result)
    state = blocking(aio_job.Job.state)
    explain = blocking(aio_job.Job.explain)
    logs = blocking(aio_job.Job.logs)
    children_values = blocking(aio_job.Job.children_values)
    failed_children = blocking(aio_job.Job.failed_children)
    ignored_children = blocking(aio_job.Job.ignored_children)
    cancel = blocking(aio_job.Job.cancel)
    discard = blocking(aio_job.Job.discard)
    promote = blocking(aio_job.Job.promote)
    retry = blocking(aio_job.Job.retry)
    update = blocking(aio_job.Job.update)
    change_priority = blocking(aio_job.Job.change_priority)
    change_delay = blocking(aio_job.Job.change_delay)
    leave_parent = blocking(aio_job.Job.leave_parent)
    remove_unprocessed_children = blocking(aio_job.Job.remove_unprocessed_children)
    free_key = blocking(aio_job.Job.free_key)
    update_progress = blocking(aio_job.Job.update_progress)
    log = blocking(aio_job.Job.log)
    clear_logs = blocking(aio_job.Job.clear_logs)
    heartbeat = blocking(aio_job.Job.heartbeat)
    extend_lock = blocking(aio_job.Job.extend_lock)
    complete = blocking(aio_job.Job.complete)
    fail = blocking(aio_job.Job.fail)
    move_to_wait = blocking(aio_job.Job.move_to_wait)
    move_to_delayed = blocking(aio_job.Job.move_to_delayed)
    move_to_waiting_children = blocking(aio_job.Job.move_to_waiting_children)


class DeadLetters(Waits[aio_dead_letters.DeadLetters]):
    """The dead letters of one queue."""

    jobs = gives_jobs(aio_dead_letters.DeadLetters.jobs)
    entries = blocking(aio_dead_letters.DeadLetters.entries)
    stats = blocking(aio_dead_letters.DeadLetters.stats)
    retry = blocking(aio_dead_letters.DeadLetters.retry)
    purge = blocking(aio_dead_letters.DeadLetters.purge)
    remove = blocking(aio_dead_letters.DeadLetters.remove)
    configure = blocking(aio_dead_letters.DeadLetters.configure)
    config = blocking(aio_dead_letters.DeadLetters.config)


class Limits(Waits[aio_limits.Limits]):
    """The limits of one queue."""

    get = blocking(aio_limits.Limits.get)
    set_rate = blocking(aio_limits.Limits.set_rate)
    clear_rate = blocking(aio_limits.Limits.clear_rate)
    set_concurrency = blocking(aio_limits.Limits.set_concurrency)
    clear_concurrency = blocking(aio_limits.Limits.clear_concurrency)
    set_stall = blocking(aio_limits.Limits.set_stall)
    stall = blocking(aio_limits.Limits.stall)


class Group(Waits[aio_groups.Group]):
    """One group of one queue."""

    count = blocking(aio_groups.Group.count)
    active_count = blocking(aio_groups.Group.active_count)
    pause = blocking(aio_groups.Group.pause)
    resume = blocking(aio_groups.Group.resume)
    is_paused = blocking(aio_groups.Group.is_paused)
    set_rate = blocking(aio_groups.Group.set_rate)
    rate = blocking(aio_groups.Group.rate)
    clear_rate = blocking(aio_groups.Group.clear_rate)
    shut_for = blocking(aio_groups.Group.shut_for)
    shut_ms = blocking(aio_groups.Group.shut_ms)
    set_concurrency = blocking(aio_groups.Group.set_concurrency)
    concurrency = blocking(aio_groups.Group.concurrency)
    clear_concurrency = blocking(aio_groups.Group.clear_concurrency)
    set_weight = blocking(aio_groups.Group.set_weight)
    weight = blocking(aio_groups.Group.weight)


class Schedules(Waits[aio_schedules.Schedules]):
    """The schedules that add jobs to one queue."""

    cron = blocking(aio_schedules.Schedules.cron)
    every = blocking(aio_schedules.Schedules.every)
    get = blocking(aio_schedules.Schedules.get)
    list = blocking(aio_schedules.Schedules.list)
    count = blocking(aio_schedules.Schedules.count)
    remove = blocking(aio_schedules.Schedules.remove)


class Flows(Waits[aio_flow.Flows]):
    """Adds and reads flows."""

    add = gives_job(aio_flow.Flows.add)
    add_many = gives_jobs(aio_flow.Flows.add_many)
    chain = gives_job(aio_flow.Flows.chain)
    fan_in = gives_job(aio_flow.Flows.fan_in)
    get = finds_job(aio_flow.Flows.get)


class Webhooks(Waits[aio_webhooks.Webhooks]):
    """The webhooks of a server."""

    add = blocking(aio_webhooks.Webhooks.add)
    remove = blocking(aio_webhooks.Webhooks.remove)
    list = blocking(aio_webhooks.Webhooks.list)
    enable = blocking(aio_webhooks.Webhooks.enable)


class Events(Waits[aio_events.Events]):
    """The events of one queue: enter it, or just iterate."""

    close = blocking(aio_events.Events.close)

    def __enter__(self) -> Self:
        self.wait(self.inner.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> aio_events.Event:
        event: aio_events.Event | None = self.wait(self.inner.next())
        if event is None:
            raise StopIteration
        return event


class Queue(Waits[aio_queue.Queue]):
    """One queue of a server, by its name; it comes into being with its first job."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.inner.name

    add = gives_job(aio_queue.Queue.add)
    add_many = blocking(aio_queue.Queue.add_many)
    get = finds_job(aio_queue.Queue.get)
    get_by_custom_id = finds_job(aio_queue.Queue.get_by_custom_id)
    jobs = gives_jobs(aio_queue.Queue.jobs)
    counts = blocking(aio_queue.Queue.counts)
    count = blocking(aio_queue.Queue.count)
    counts_per_priority = blocking(aio_queue.Queue.counts_per_priority)
    holder_of = blocking(aio_queue.Queue.holder_of)
    free_key = blocking(aio_queue.Queue.free_key)
    pause = blocking(aio_queue.Queue.pause)
    resume = blocking(aio_queue.Queue.resume)
    is_paused = blocking(aio_queue.Queue.is_paused)
    drain = blocking(aio_queue.Queue.drain)
    clean = blocking(aio_queue.Queue.clean)
    obliterate = blocking(aio_queue.Queue.obliterate)
    promote = blocking(aio_queue.Queue.promote)
    retry_completed = blocking(aio_queue.Queue.retry_completed)
    metrics = blocking(aio_queue.Queue.metrics)
    trim_events = blocking(aio_queue.Queue.trim_events)
    grouped_count = blocking(aio_queue.Queue.grouped_count)

    def job(self, id: str) -> Job:
        """Return a job by its id without asking for it, to do something to it."""
        return Job(self.inner.job(id), self._thread)

    @property
    def dead_letters(self) -> DeadLetters:
        """Jobs that failed for good."""
        return DeadLetters(self.inner.dead_letters, self._thread)

    @property
    def limits(self) -> Limits:
        """How fast, and how many at a time."""
        return Limits(self.inner.limits, self._thread)

    @property
    def schedules(self) -> Schedules:
        """Jobs that come again."""
        return Schedules(self.inner.schedules, self._thread)

    def group(self, name: str) -> Group:
        """Return one of the groups whose jobs take turns."""
        return Group(self.inner.group(name), self._thread)

    def events(self) -> Events:
        """Return what happens in this queue, from now on."""
        return Events(self.inner.events(), self._thread)


class Client(Waits[aio_client.AsyncClient]):
    """A client for threads; any number of them may use it. In a forked child it connects anew.

    Nothing is opened before the first call. It is a context manager; without that, ``close`` it.
    """

    def __init__(self, url: str | Target | None = None, **options: Any) -> None:
        """Name the server and how to speak to it, as for ``AsyncClient``.

        Raises:
            WrongUrl, BadOption
        """
        super().__init__(aio_client.AsyncClient(url, **options), LoopThread())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; later calls raise ``Closed``."""
        self._thread.close(self.inner.close)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something asynchronous, with ``inner``, in this client's loop and wait for it."""
        return self._thread.run(work)

    connect = blocking(aio_client.AsyncClient.connect)
    call = blocking(aio_client.AsyncClient.call)
    ping = blocking(aio_client.AsyncClient.ping)
    queues = blocking(aio_client.AsyncClient.queues)
    workers = blocking(aio_client.AsyncClient.workers)
    stats = blocking(aio_client.AsyncClient.stats)
    metrics = blocking(aio_client.AsyncClient.metrics)
    schedules = blocking(aio_client.AsyncClient.schedules)

    def queue(self, name: str) -> Queue:
        """Return a queue by its name; it need not exist yet."""
        return Queue(self.inner.queue(name), self._thread)

    @property
    def flows(self) -> Flows:
        """Jobs that wait for other jobs."""
        return Flows(self.inner.flows, self._thread)

    @property
    def webhooks(self) -> Webhooks:
        """URLs that are told what happens."""
        return Webhooks(self.inner.webhooks, self._thread)
