"""A backend for Django's tasks: those of ``django.tasks``, or of the package ``django-tasks``.

::

    TASKS = {
        "default": {
            "BACKEND": "tandemq.contrib.django.TandemqBackend",
            "QUEUES": ["default", "mail"],
            "OPTIONS": {"url": "tandemq://127.0.0.1:6789", "attempts": 3},
        }
    }

A worker is any ``tandemq worker`` for a queue of ``queue(name)``, in a module that sets Django up::

    # jobs.py
    import django

    django.setup()
    default = tandemq.contrib.django.queue("default")
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

try:
    from django.tasks import TaskResult, TaskResultStatus
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import TaskContext, TaskError
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued
except ImportError:  # before Django 6
    from django_tasks import TaskResult, TaskResultStatus
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import TaskContext, TaskError
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued

from django.utils.module_loading import import_string

from tandemq.client.context import Context
from tandemq.client.routine import Routine
from tandemq.client.sync import Client, Job
from tandemq.client.task_queue import TaskQueue

STATES = {
    "active": TaskResultStatus.RUNNING,
    "completed": TaskResultStatus.SUCCESSFUL,
    "failed": TaskResultStatus.FAILED,
}


class TandemqBackend(BaseTaskBackend):
    """Enqueues the tasks of a Django project, and finds their results.

    ``OPTIONS`` are ``url`` and those of each job, such as ``attempts`` and ``timeout``.
    """

    supports_defer = supports_async_task = supports_get_result = supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        options = dict(self.options)
        self.client = Client(options.pop("url", None))
        self._options = options

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> TaskResult:
        """Add a job that runs a task; its arguments are plain values, as JSON has them."""
        self.validate_task(task)
        result = _result(self.alias, task, list(args), dict(kwargs))
        options = {**self._options, "priority": task.priority}
        if task.run_after is not None:
            options["run_at"] = task.run_after
        data = {"args": result.args, "kwargs": result.kwargs, "backend": self.alias}
        job = self.client.queue(task.queue_name).add(task.module_path, data, **options)
        _fill(result, id=job.id, enqueued_at=datetime.now().astimezone())
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """Return what became of a task.

        Raises:
            TaskResultDoesNotExist: it is not kept, or was no task of this project.
        """
        for name in self.queues:
            job = self.client.queue(name).get(result_id)
            if job is not None:
                return _known(self.alias, job)
        raise TaskResultDoesNotExist(result_id)


def queue(name: str = "default", url: str | None = None, **options: Any) -> TaskQueue:
    """Return a queue whose workers run the tasks of a Django project, found by their names."""
    made = TaskQueue(name, url, **options)
    made.repertoire.anything = Routine(run, "thread")
    return made


def run(job: Context) -> Any:
    """Run a task of the project."""
    data = job.data
    task = import_string(job.name or "")
    args, kwargs = data["args"], data["kwargs"]
    if task.takes_context:
        result = _result(data["backend"], task, args, kwargs)
        _fill(result, id=job.id, status=TaskResultStatus.RUNNING, started_at=job.created)
        result.worker_ids.extend(["tandemq"] * job.attempt)
        args = [TaskContext(task_result=result), *args]
    return task.call(*args, **kwargs)


def _result(alias: str, task: Any, args: list[Any], kwargs: dict[str, Any]) -> TaskResult:
    return TaskResult(
        task=task,
        id="",
        status=TaskResultStatus.READY,
        enqueued_at=None,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=args,
        kwargs=kwargs,
        backend=alias,
        errors=[],
        worker_ids=[],
    )


def _known(alias: str, job: Job) -> TaskResult:
    """Return the result of a job as the server has it."""
    try:
        task = import_string(job.name)
        args, kwargs = job.data["args"], job.data["kwargs"]
    except (ImportError, TypeError, KeyError):
        raise TaskResultDoesNotExist(job.id) from None
    result = _result(alias, task, args, kwargs)
    status = STATES.get(str(job.fields.get("state")), TaskResultStatus.READY)
    _fill(
        result,
        id=job.id,
        status=status,
        enqueued_at=job.created_at,
        started_at=job.started_at,
        last_attempted_at=job.started_at,
        finished_at=job.ended_at,
        _return_value=job.fields.get("returnvalue"),
    )
    if job.failed_reason:
        kind = job.failed_reason.partition(":")[0]
        result.errors.append(TaskError(exception_class_path=kind, traceback="\n".join(job.stack)))
    result.worker_ids.extend(["tandemq"] * (job.attempts + (status in STATES.values())))
    return result


def _fill(result: TaskResult, **values: Any) -> None:
    """Set fields of what Django has frozen, as its own backends do."""
    for name, value in values.items():
        object.__setattr__(result, name, value)
