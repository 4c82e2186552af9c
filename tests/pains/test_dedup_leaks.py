"""Reports of keys that outlived their jobs, and of ids that did not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.making import NOW
from tests.support.restart import Machine
from tests.support.server import Server
from tests.support.wire import Wire

from tandemq.engine import schedules
from tandemq.model.schedule import Schedule


def end(wire: Wire, queue: str, job_id: str, command: str) -> None:
    answer = wire.pull(queue)
    assert answer["job"]["id"] == job_id
    wire.do(command, id=job_id, token=answer["token"])


ENDS: dict[str, Callable[[Wire, str, str], Any]] = {
    "cancel": lambda w, q, id: w.do("Cancel", id=id),
    "discard": lambda w, q, id: w.do("Discard", id=id),
    "drain": lambda w, q, id: w.do("Drain", queue=q),
    "obliterate": lambda w, q, id: w.do("Obliterate", queue=q),
    "clean": lambda w, q, id: w.do("Clean", queue=q, grace=0),
    "complete": lambda w, q, id: end(w, q, id, "ACK"),
    "fail": lambda w, q, id: end(w, q, id, "FAIL"),
}


@pytest.mark.parametrize(
    ("how", "delay"),
    [
        (how, delay)
        for how in sorted(ENDS)
        for delay in (0, 60_000)
        if not delay or how not in ("complete", "fail")  # a delayed job does not run
    ],
)
@pytest.mark.parametrize("policy", ["drop", "queue-one"])
def test_the_key_of_a_job_ends_with_the_job_however_it_ends(
    wire: Wire, queue: str, how: str, policy: str, delay: int
) -> None:
    options = {"uniqueKey": "k", "dedup": {"policy": policy}, "delay": delay, "maxAttempts": 1}
    for _ in range(2):
        job_id = wire.push(queue, 1, **options)
        held = wire.do("GetDeduplicationJobId", queue=queue, deduplicationId="k")
        assert held["data"]["jobId"] == job_id
        ENDS[how](wire, queue, job_id)
        held = wire.do("GetDeduplicationJobId", queue=queue, deduplicationId="k")
        assert held["data"]["jobId"] is None
    assert wire.push(queue, 1, **options) != job_id


@pytest.mark.parametrize("field", ["jobId", "uniqueKey"])
def test_ten_pipelined_pushes_of_one_name_are_one_job(wire: Wire, queue: str, field: str) -> None:
    push = {"cmd": "PUSH", "queue": queue, "data": 1, field: f"only:{queue}"}
    answers = wire.receive_all(wire.send_all([push] * 10))
    assert len({answer["id"] for answer in answers}) == 1
    assert wire.counts(queue) == {"waiting": 1}


def test_ten_members_of_one_batch_with_one_id_are_one_job(wire: Wire, queue: str) -> None:
    job = {"data": 1, "customId": f"only:{queue}"}
    assert wire.do("PUSHB", queue=queue, jobs=[job] * 10)["ids"] == [f"only:{queue}"] * 10
    assert wire.counts(queue) == {"waiting": 1}


def test_pushes_of_one_name_over_many_connections_are_one_job(
    server: Server, wire: Wire, queue: str
) -> None:
    others = [server.connect() for _ in range(10)]
    try:
        sent = [other.send("PUSH", queue=queue, data=1, uniqueKey="k") for other in others]
        answers = [other.receive(req) for other, req in zip(others, sent, strict=True)]
    finally:
        for other in others:
            other.close()
    assert len({answer["id"] for answer in answers}) == 1
    assert wire.counts(queue) == {"waiting": 1}


@pytest.mark.parametrize(
    "fields",
    [{"prevent_overlap": True}, {"prevent_overlap": False, "job": {"unique_key": "k"}}],
)
def test_a_schedule_whose_runs_share_a_key_leaves_one_job_to_a_worker_that_was_away(
    fields: dict[str, Any],
) -> None:
    machine = Machine(NOW)
    made = Schedule(name="s", queue="q", job_name="j", body=b"\x01", every=1_000, **fields)
    schedules.upsert(machine.engine, made, machine.now)
    for second in range(1, 61):
        machine.pass_time(NOW + second * 1_000)
        machine.keep()
    assert len(machine.jobs()) == 1
