"""Tasks of a Django project."""

from __future__ import annotations

from typing import Any

from django_tasks import task


@task
def add(a: int, b: int = 1) -> int:
    return a + b


@task(takes_context=True, queue_name="mail")
async def who(context: Any) -> list[Any]:
    return [context.attempt, context.task_result.id]


@task
def fails() -> None:
    raise ValueError("oh")
