"""Traces from the call that enqueues a job to the worker that runs it.

``instrument(queue)`` makes a span for each job that is enqueued and another one for each run, which
belongs to the same trace: the job carries ``traceparent``, as one of its tags.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider

from tandemq.client.context import Context
from tandemq.client.task_queue import TaskQueue

MARK = "traceparent="


def instrument(queue: TaskQueue, provider: TracerProvider | None = None) -> None:
    """Trace the jobs of a queue: those that are enqueued here, and those that are run here."""
    tracer = trace.get_tracer("tandemq", tracer_provider=provider)

    def begin(name: str, options: dict[str, Any]) -> None:
        attributes = _attributes(queue.name, name)
        span = tracer.start_span(f"enqueue {name}", kind=SpanKind.PRODUCER, attributes=attributes)
        with trace.use_span(span, end_on_exit=True):
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
        if parent := carrier.get("traceparent"):
            options["tags"] = [*options.get("tags", ()), MARK + parent]

    async def run(context: Context) -> AsyncIterator[None]:
        marks = [tag.removeprefix(MARK) for tag in context.tags if tag.startswith(MARK)]
        parent = propagate.extract({"traceparent": marks[-1]} if marks else {})
        attributes = {
            **_attributes(context.queue, context.name or ""),
            "messaging.message.id": context.id,
            "tandemq.attempt": context.attempt,
        }
        name = f"run {context.name}"
        kind = SpanKind.CONSUMER
        with tracer.start_as_current_span(
            name, parent, kind=kind, attributes=attributes, record_exception=True
        ) as span:
            yield
            span.set_status(Status(StatusCode.OK))

    queue.outgoing.append(begin)
    queue.middleware(run)


def _attributes(queue: str, task: str) -> dict[str, Any]:
    return {
        "messaging.system": "tandemq",
        "messaging.destination.name": queue,
        "tandemq.task": task,
    }
