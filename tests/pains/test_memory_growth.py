"""Reports of servers that grew until the machine was full."""

from __future__ import annotations

import pytest
from tests.support.patience import eventually
from tests.support.server import Server, figure, room
from tests.support.wire import Wire

MEGABYTE = 1 << 20


def size_on_disk(server: Server) -> int:
    return sum(file.stat().st_size for file in server.data.parent.glob(server.data.name + "*"))


def work_through(wire: Wire, queue: str, count: int) -> None:
    """Push, pull and acknowledge that many jobs which leave nothing behind."""
    body = "x" * 200
    for _ in range(0, count, 500):
        jobs = [{"data": body, "removeOnComplete": True}] * 500
        wire.do("PUSHB", queue=queue, jobs=jobs)
        taken = wire.do("PULLB", queue=queue, owner="w", count=500)
        ids = [job["id"] for job in taken["jobs"]]
        assert len(ids) == 500
        wire.do("ACKB", ids=ids, tokens=taken["tokens"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_jobs_that_are_removed_on_completion_leave_nothing_behind(
    own_server: Server, queue: str
) -> None:
    half = figure("TANDEMQ_TEST_GROWTH", short=15_000, long=500_000)
    with own_server.connect(timeout=60) as wire:
        work_through(wire, queue, half)
        memory, disk = own_server.memory(), size_on_disk(own_server)
        work_through(wire, queue, half)
        assert own_server.memory() < memory * 1.1 + room(8)
        assert size_on_disk(own_server) < disk * 1.5 + 8 * MEGABYTE
        assert wire.counts(queue) == {}
        assert wire.jobs(queue) == []


def test_workers_that_vanish_are_forgotten(server: Server, wire: Wire, queue: str) -> None:
    def listed() -> int:
        workers = wire.do("ListWorkers")["data"]["workers"]
        return sum(worker["name"] == queue for worker in workers)

    memory = server.memory()
    for start in range(0, 1_000, 50):
        with server.connect() as connection:
            register = {"cmd": "RegisterWorker", "name": queue, "queues": [queue]}
            answers = connection.do_all(
                {**register, "workerId": f"{queue}-{n}"} for n in range(start, start + 50)
            )
            assert all(answer["ok"] for answer in answers)
            assert listed() >= 50
    eventually(lambda: listed() == 0, "all thousand are gone", within=5)
    assert server.memory() < memory + room(40)


def test_a_log_that_is_written_for_ever_keeps_its_newest_hundred_lines(
    wire: Wire, queue: str
) -> None:
    job_id = wire.push(queue, 1)
    wire.do_all({"cmd": "AddLog", "id": job_id, "message": f"line {n}"} for n in range(1_000))
    kept = wire.do("GetLogs", id=job_id)["data"]
    assert kept["count"] == 100
    assert [line["message"] for line in kept["logs"]] == [f"line {n}" for n in range(900, 1_000)]


def test_a_job_that_fails_for_ever_keeps_a_bounded_history(wire: Wire, queue: str) -> None:
    job_id = wire.push(queue, 1, maxAttempts=1_000, backoff=0)
    for n in range(200):
        token = wire.pull(queue, timeout=1_000)["token"]
        stack = [f"frame {k} of failure {n}" for k in range(500)]
        wire.do("FAIL", id=job_id, token=token, error="e" * 1_000, stack=stack)
    job = wire.do("GetJob", id=job_id)["job"]
    assert job["attempts"] == 200
    assert len(job["timeline"]) <= 20
    assert len(job["stacktrace"]) <= 10


@pytest.mark.slow
def test_bodies_that_are_gone_give_their_memory_back(own_server: Server, queue: str) -> None:
    with own_server.connect(timeout=60) as wire:
        base = own_server.memory()
        for _ in range(4):
            for _ in range(40):
                wire.push(queue, "x" * MEGABYTE, removeOnComplete=True)
            for _ in range(40):
                answer = wire.pull(queue)
                wire.do("ACK", id=answer["job"]["id"], token=answer["token"])
        eventually(
            lambda: own_server.memory() < base + room(120),
            "160 MB went through",
            within=5,
        )
