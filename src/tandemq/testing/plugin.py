"""The pytest plugin: fixtures for a server in the test, its clock, its jobs, and a worker.

Nothing of the server is imported before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tandemq.client.job import Job
    from tandemq.client.queue import Queue
    from tandemq.client.task_queue import TaskQueue
    from tandemq.client.worker import Worker
    from tandemq.testing.stage import Stage


@pytest.fixture
def tandemq_server() -> Iterator[Stage]:
    """A server for this test: give its ``target`` where a URL is wanted."""
    from tandemq.testing.stage import Stage

    with Stage() as stage:
        yield stage


@pytest.fixture
def tandemq_clock(tandemq_server: Stage) -> Stage:
    """The server's clock: ``tandemq_clock.advance(minutes=5)``."""
    return tandemq_server


@pytest.fixture
def tandemq_jobs(tandemq_server: Stage) -> Callable[[Queue | str], list[Job]]:
    """What was enqueued: ``[job.name for job in tandemq_jobs("emails")]``."""
    return tandemq_server.jobs


@pytest.fixture
def tandemq_worker(tandemq_server: Stage) -> Callable[..., Worker]:
    """Runs a queue's tasks until nothing waits: ``tandemq_worker(queue)``."""

    def run(queue: TaskQueue, **options: Any) -> Worker:
        return tandemq_server.run_until_idle(queue, **options)

    return run
