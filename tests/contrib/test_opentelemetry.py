"""Traces that go through the queue."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tandemq import Queue, Retry
from tandemq.client.task_queue import TaskQueue
from tandemq.contrib.opentelemetry import instrument
from tandemq.testing import Stage


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def queue(spans: InMemorySpanExporter, tandemq_server: Stage) -> TaskQueue:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    queue = Queue("traced", tandemq_server.target)
    instrument(queue, provider)

    @queue.task(retry=Retry(1), tags=["own"])
    def divide(by: int) -> float:
        return 1 / by

    return queue


def test_a_run_belongs_to_the_trace_of_its_enqueueing(
    queue: TaskQueue, spans: InMemorySpanExporter, tandemq_server: Stage
) -> None:
    job = queue.tasks["divide"].enqueue_sync(2)
    tandemq_server.run_until_idle(queue)
    begun, ran = spans.get_finished_spans()
    assert (begun.name, begun.kind) == ("enqueue divide", SpanKind.PRODUCER)
    assert (ran.name, ran.kind, ran.status.status_code) == (
        "run divide", SpanKind.CONSUMER, StatusCode.OK,
    )  # fmt: skip
    assert ran.parent is not None
    assert begun.context is not None
    assert (ran.parent.trace_id, ran.parent.span_id) == (
        begun.context.trace_id, begun.context.span_id,
    )  # fmt: skip
    attributes = dict(ran.attributes or {})
    assert attributes["messaging.message.id"] == job.id
    assert attributes["tandemq.attempt"] == 1
    assert job.refresh().inner.tags[0] == "own"
    queue.client.close()


def test_a_failure_is_in_the_span(
    queue: TaskQueue, spans: InMemorySpanExporter, tandemq_server: Stage
) -> None:
    queue.tasks["divide"].enqueue_sync(0)
    tandemq_server.run_until_idle(queue)
    ran = spans.get_finished_spans()[-1]
    assert ran.status.status_code is StatusCode.ERROR
    assert [event.name for event in ran.events] == ["exception"]
    queue.client.close()
