"""What is told of the end of a lease, in which order."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import NOW, hold, make_engine, put, token_of, wait

from tandemq.engine import clock, consume, settle
from tandemq.engine.core import Engine

Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def engine() -> Engine:
    engine = make_engine()
    engine.listening = True
    return engine


def told(engine: Engine) -> Told:
    return [(event.type, event.fields) for event in engine.heard()]


def held(engine: Engine, **options: Any) -> Any:
    span = options.pop("span", 30_000)
    put(engine, **options)
    m = hold(engine, span=span)
    engine.heard()
    return m


def test_a_completion_carries_its_result(engine: Engine) -> None:
    m = held(engine, remove_on_complete=True)
    settle.ack(engine, m.id, token_of(m), NOW, b"\x01")
    assert told(engine) == [("completed", {"data": b"\x01"})]


def test_a_failure_is_told_before_the_retry_and_the_next_pull(engine: Engine) -> None:
    m = held(engine, backoff=0)
    wait(engine, "r")
    settle.fail(engine, m.id, token_of(m), NOW, error="no")
    types = [type for type, _ in told(engine)]
    assert types == ["failed", "retried", "pulled"]


def test_a_failure_carries_error_data_and_whether_it_is_the_last(engine: Engine) -> None:
    m = held(engine, max_attempts=2, backoff=0)
    settle.fail(engine, m.id, token_of(m), NOW, error="one")
    fields = {"error": "one", "data": b"x", "terminal": False}
    assert told(engine) == [("failed", fields), ("retried", {"prev": "failed"})]
    m = hold(engine)
    settle.fail(engine, m.id, token_of(m), NOW)
    assert told(engine)[1:] == [("failed", {"error": None, "data": b"x", "terminal": True})]


def test_a_timeout_is_a_failure(engine: Engine) -> None:
    held(engine, timeout=100, max_attempts=1)
    clock.tick(engine, NOW + 10_000)
    fields = {"error": "Job timeout exceeded", "data": b"x", "terminal": True}
    assert told(engine) == [("failed", fields)]


def test_a_lease_that_ran_out_is_a_stall_without_data(engine: Engine) -> None:
    held(engine, span=100)
    clock.tick(engine, NOW + 5_000)
    assert told(engine) == [("stalled", {})]


def test_the_last_stall_of_a_lease_is_a_failure_with_its_error_only(engine: Engine) -> None:
    held(engine, span=100, max_attempts=1)
    clock.tick(engine, NOW + 5_000)
    assert told(engine) == [
        ("stalled", {}),
        ("failed", {"error": "Lock expired at max attempts (1)"}),
    ]


@pytest.mark.parametrize(("attempts", "action"), [(3, "retry"), (1, "move_to_dlq")])
def test_a_silent_worker_is_a_stall_with_what_comes_of_it(
    engine: Engine, attempts: int, action: str
) -> None:
    held(engine, span=None, max_attempts=attempts)
    clock.tick(engine, NOW + 60_000)
    clock.tick(engine, NOW + 120_000)
    found = told(engine)
    assert found[0] == ("stalled", {"data": {"stallCount": 1, "action": action}})
    assert [type for type, _ in found[1:]] == (["failed"] if attempts == 1 else [])


def test_a_job_that_took_too_many_connections_with_it_is_a_failure(engine: Engine) -> None:
    m = held(engine)
    for _ in range(9):
        consume.disconnect(engine, 1, NOW)
        hold(engine)
    engine.heard()
    consume.disconnect(engine, 1, NOW)
    error = "Connection lost 10 times while it was running"
    assert told(engine) == [("failed", {"error": error})]
    assert engine.tallies.of("q").failed.total == 1
    assert m.run.cause == "worker_lost"
