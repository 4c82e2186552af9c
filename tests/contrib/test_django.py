"""Django's tasks, enqueued by its interface and run by our workers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import django
import pytest
from django.conf import settings

from tandemq import Client
from tandemq.testing import Stage

if not settings.configured:
    settings.configure(
        USE_TZ=True,
        INSTALLED_APPS=["django_tasks"],
        TASKS={
            "default": {
                "BACKEND": "tandemq.contrib.django.TandemqBackend",
                "QUEUES": ["default", "mail"],
                "OPTIONS": {"url": "tandemq://127.0.0.1:1", "attempts": 1},
            }
        },
    )
    django.setup()

from django_tasks import TaskResultStatus, task_backends
from django_tasks.exceptions import TaskResultDoesNotExist
from tests.contrib import jobs

from tandemq.contrib.django import TandemqBackend, queue


@pytest.fixture
def backend(tandemq_server: Stage) -> Iterator[TandemqBackend]:
    backend: Any = task_backends["default"]
    real, backend.client = backend.client, Client(tandemq_server.target)
    yield backend
    backend.client.close()
    backend.client = real


def work(stage: Stage, name: str = "default") -> None:
    stage.run_until_idle(queue(name, stage.target))


@pytest.mark.usefixtures("backend")
def test_a_task_is_enqueued_and_its_result_found(tandemq_server: Stage) -> None:
    result = jobs.add.enqueue(2, b=3)
    assert result.status == TaskResultStatus.READY
    work(tandemq_server)
    result.refresh()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 5)
    assert (result.args, result.kwargs, result.attempts) == ([2], {"b": 3}, 1)
    assert result.enqueued_at is not None
    assert result.enqueued_at <= result.finished_at


@pytest.mark.usefixtures("backend")
def test_a_task_may_want_its_context(tandemq_server: Stage) -> None:
    result = jobs.who.enqueue()
    work(tandemq_server, "mail")
    assert jobs.who.get_result(result.id).return_value == [1, result.id]


@pytest.mark.usefixtures("backend")
def test_a_failure_is_told(tandemq_server: Stage) -> None:
    result = jobs.fails.enqueue()
    work(tandemq_server)
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.errors[0].exception_class_path == "ValueError"
    assert "jobs.py" in result.errors[0].traceback


@pytest.mark.usefixtures("backend")
def test_priority_and_a_later_moment_are_kept(tandemq_server: Stage) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    result = jobs.add.using(priority=50, run_after=soon).enqueue(1)
    (job,) = tandemq_server.jobs("default")
    assert (job.id, job.priority) == (result.id, 50)
    assert abs((job.run_at or soon) - soon) < timedelta(seconds=5)
    work(tandemq_server)
    result.refresh()
    assert result.status == TaskResultStatus.READY
    tandemq_server.advance(hours=2)
    work(tandemq_server)
    result.refresh()
    assert result.return_value == 2


def test_what_is_not_there_is_told(backend: TandemqBackend) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result("nothing")
