"""Reports of jobs that ran twice; docs/pains.md says which."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
from tests.support.patience import eventually
from tests.support.server import Server
from tests.support.wire import Wire


def run_workers(
    server: Server,
    count: int,
    work: Callable[[Wire, threading.Event], None],
    until: threading.Event,
) -> list[threading.Thread]:
    """`count` threads, each calling `work` with its own connection until `until` is set."""

    def loop() -> None:
        with server.connect() as wire:
            while not until.is_set():
                work(wire)

    threads = [threading.Thread(target=loop, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.slow
def test_a_job_delayed_for_longer_than_a_lease_is_handed_out_once(
    server: Server, wire: Wire, queue: str
) -> None:
    executions: list[str] = []
    enough = threading.Event()

    def work(mine: Wire) -> None:
        answer = mine.pull(queue, owner="w", lockTtl=600, timeout=300)
        if answer["job"]:
            executions.append(answer["job"]["id"])
            time.sleep(0.1)
            mine.do("ACK", id=answer["job"]["id"], token=answer["token"])

    job_id = wire.push(queue, {"n": 1}, delay=2_000)
    workers = run_workers(server, 3, work, enough)
    eventually(lambda: wire.state(job_id) == "completed", "the job completes", within=10)
    time.sleep(0.8)  # longer than the lease: a second hand-out would show itself
    enough.set()
    for each in workers:
        each.join(10)
    assert executions == [job_id]


@pytest.mark.slow
def test_a_delayed_job_is_counted_once_until_it_is_due(wire: Wire, queue: str) -> None:
    job_id = wire.push(queue, {"n": 1}, delay=2_000)
    seen = set()
    deadline = time.monotonic() + 15
    while wire.state(job_id) == "delayed" and time.monotonic() < deadline:
        counts = wire.counts(queue)
        seen.add(tuple(sorted(counts.items())))
        assert sum(counts.values()) == 1
        assert wire.do("Count", queue=queue)["count"] == 1
        time.sleep(0.02)
    assert seen <= {(("delayed", 1),), (("waiting", 1),)}
    assert wire.counts(queue) == {"waiting": 1}


@pytest.mark.slow
def test_five_thousand_short_jobs_on_eight_workers_are_executed_five_thousand_times(
    server: Server, wire: Wire, queue: str
) -> None:
    size, executions, lock, enough = 5_000, Counter[int](), threading.Lock(), threading.Event()

    def work(mine: Wire) -> None:
        answer = mine.do("PULLB", queue=queue, owner="w", count=20, timeout=100, lockTtl=10_000)
        jobs = answer["jobs"]
        with lock:
            executions.update(job["data"] for job in jobs)
        if jobs:
            mine.do("ACKB", ids=[job["id"] for job in jobs], tokens=answer["tokens"])

    workers = run_workers(server, 8, work, enough)
    for start in range(0, size, 250):
        jobs = [{"data": n, "delay": n % 7 * 10} for n in range(start, start + 250)]
        wire.do("PUSHB", queue=queue, jobs=jobs)
    eventually(lambda: wire.counts(queue) == {"completed": size}, "all complete", within=60)
    enough.set()
    for each in workers:
        each.join(10)
    assert executions == Counter(range(size))


def test_a_repeated_acknowledgement_finishes_the_job_once(wire: Wire, queue: str) -> None:
    job_id = wire.push(queue, {"n": 1})
    token = wire.pull(queue)["token"]
    answers = wire.do_all(
        [{"cmd": "ACK", "id": job_id, "token": token, "result": n} for n in range(10)]
    )
    assert [answer["ok"] for answer in answers] == [True] + [False] * 9
    assert wire.do("GetResult", id=job_id)["result"] == 0
    assert wire.counts(queue) == {"completed": 1}


def test_pulls_that_wait_together_get_one_job_each(server: Server, wire: Wire, queue: str) -> None:
    others = [server.connect() for _ in range(20)]
    try:
        waiting = [other.send("PULL", queue=queue, owner="w", timeout=10_000) for other in others]
        ids = wire.do("PUSHB", queue=queue, jobs=[{"data": n} for n in range(20)])["ids"]
        pairs = zip(others, waiting, strict=True)
        got = [other.receive(req_id)["job"]["id"] for other, req_id in pairs]
        assert Counter(got) == Counter(ids)
    finally:
        for other in others:
            other.close()


def test_ten_pushes_of_one_id_in_one_write_make_one_job(wire: Wire, queue: str) -> None:
    push = {"cmd": "PUSH", "queue": queue, "data": 1, "jobId": f"only:{queue}"}
    answers = wire.receive_all(wire.send_all([push] * 10))
    assert [answer["id"] for answer in answers] == [f"only:{queue}"] * 10
    assert wire.counts(queue) == {"waiting": 1}
