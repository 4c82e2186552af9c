"""Reports of jobs that took worker after worker down, and of ends that could not be told.

A worker's own exceptions are the business of clients. Here is what a server does with what they
send, and with workers that are gone.
"""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from tests.support.patience import eventually
from tests.support.server import Server, is_own
from tests.support.wire import Wire, frame


@pytest.mark.skipif(not is_own(), reason="the reference hands it out for ever")
def test_a_job_that_takes_its_workers_down_ends_as_worker_lost_while_others_run(
    server: Server, wire: Wire, queue: str
) -> None:
    poison = wire.push(queue, "poison", priority=1)
    healthy = [wire.push(queue, n) for n in range(10)]
    for _ in healthy:
        with server.connect() as worker:
            assert worker.pull(queue, timeout=5_000)["job"]["id"] == poison
            other = wire.pull(queue)
            wire.do("ACK", id=other["job"]["id"], token=other["token"])
        eventually(lambda: wire.state(poison) != "active", "noticed", within=5)
    assert wire.counts(queue) == {"completed": 10, "failed": 1}
    [entry] = wire.do("Dlq", queue=queue)["entries"]
    assert (entry["job"]["id"], entry["reason"]) == (poison, "worker_lost")
    assert "Connection lost 10 times" in entry["error"]


@pytest.mark.slow
def test_a_job_whose_workers_fall_silent_is_started_as_often_as_it_may_be(
    server: Server, wire: Wire, queue: str
) -> None:
    job_id = wire.push(queue, 1, maxAttempts=3, backoff=0)
    wire.do("SetStallConfig", queue=queue, config={"maxStalls": 0})
    with server.connect() as silent:
        for start in range(3):
            job = silent.pull(queue, timeout=20_000, lockTtl=50)["job"]
            assert (job["id"], job["attempts"]) == (job_id, start)
        eventually(lambda: wire.state(job_id) == "failed", "given up", within=10)
        assert silent.pull(queue, timeout=200)["job"] is None, "no fourth start"
    [entry] = wire.do("Dlq", queue=queue)["entries"]
    assert entry["reason"] == "max_attempts_exceeded"


ODD_ERRORS: dict[str, Any] = {
    "nothing": None,
    "a map": {"message": "m", "cause": {"deep": [1, 2]}},
    "a list": ["a", 1],
    "a number": 5,
    "bytes": b"\xff\xfe",
    "a flag": True,
    "control characters": "\0\x1b[31m\r\n\u202e",
}


@pytest.mark.parametrize("name", sorted(ODD_ERRORS))
def test_a_failure_that_says_something_odd_is_a_failure(wire: Wire, queue: str, name: str) -> None:
    job_id = wire.push(queue, 1, maxAttempts=1)
    token = wire.pull(queue)["token"]
    odd = ODD_ERRORS[name]
    wire.do("FAIL", id=job_id, token=token, error=odd, stack=[odd, "a line", odd])
    assert wire.state(job_id) == "failed"
    said = wire.do("GetJob", id=job_id)["job"].get("failedReason")
    assert said is None or isinstance(said, str)
    assert len(wire.do("Dlq", queue=queue)["entries"]) == 1


def test_ten_megabytes_of_error_are_cut(wire: Wire, queue: str) -> None:
    job_id = wire.push(queue, 1, maxAttempts=1, stackTraceLimit=1_000)
    token = wire.pull(queue)["token"]
    stack = ["s" * 10_000] * 1_000
    wire.do("FAIL", id=job_id, token=token, error="e" * 10_000_000, stack=stack)
    job = wire.do("GetJob", id=job_id)["job"]
    assert job["failedReason"].startswith("eeee")
    assert len(job["failedReason"]) < 70_000
    assert sum(map(len, job["stacktrace"])) < 1_000_000


def test_a_result_that_cannot_be_kept_is_refused_and_whoever_waits_is_told_of_the_failure(
    server: Server, wire: Wire, queue: str
) -> None:
    job_id = wire.push(queue, 1, maxAttempts=1)
    token = wire.pull(queue)["token"]
    with server.connect() as waiter:
        waiting = waiter.send("WaitJob", id=job_id, timeout=20_000, anyEnd=True)
        assert waiter.ping()
        deep = {"cmd": "ACK", "id": job_id, "token": token, "reqId": "deep"}
        body = b"".join(msgpack.packb(part) for pair in deep.items() for part in pair)
        nested = b"\x91" * 5_000 + b"\xc0"
        wire.send_raw(frame(bytes([0x85]) + body + msgpack.packb("result") + nested))
        if wire.next_answer()["ok"]:
            assert waiter.receive(waiting)["completed"] is True
            return
        assert not waiter.answered(waiting)
        wire.do("FAIL", id=job_id, token=token, error="result not serialisable")
        assert waiter.receive(waiting, timeout=5)["completed"] is False
    assert wire.do("GetJob", id=job_id)["job"]["failedReason"] == "result not serialisable"


def test_a_job_that_comes_back_from_the_dead_fifty_times_is_there_with_a_bounded_history(
    wire: Wire, queue: str
) -> None:
    job_id = wire.push(queue, {"n": 1}, maxAttempts=2, backoff=0)
    for n in range(50):
        for _ in range(2):
            token = wire.pull(queue, timeout=5_000)["token"]
            wire.do("FAIL", id=job_id, token=token, error=f"round {n}", stack=["line"] * 20)
        assert wire.do("RetryDlq", queue=queue, jobId=job_id)["count"] == 1
    answer = wire.pull(queue)
    assert (answer["job"]["id"], answer["job"]["attempts"]) == (job_id, 0)
    wire.do("FAIL", id=job_id, token=answer["token"], error="e", unrecoverable=True)
    [entry] = wire.do("Dlq", queue=queue)["entries"]
    assert entry["job"]["data"] == {"n": 1}
    assert entry["retryCount"] == 50
    assert len(entry["attempts"]) <= 51
    assert len(entry["job"]["timeline"]) <= 20
    assert wire.counts(queue) == {"failed": 1}
