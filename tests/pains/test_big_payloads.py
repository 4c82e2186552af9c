"""Reports of bodies that grew, that nobody bounded, and that were more than a peer could take."""

from __future__ import annotations

import os

import pytest
from tests.support.server import Server, figure, is_own
from tests.support.wire import NoAnswer, Refused, Wire

MEGABYTE = 1 << 20
LIMIT = 10_485_760
"""Characters of JSON text in a job's data."""


@pytest.mark.slow
def test_a_megabyte_of_bytes_is_stored_as_a_megabyte(own_server: Server, queue: str) -> None:
    body, result = os.urandom(MEGABYTE), os.urandom(MEGABYTE)
    with own_server.connect() as wire:
        job_id = wire.push(queue, body, durable=True)
        answer = wire.pull(queue)
        assert answer["job"]["data"] == body
        wire.do("ACK", id=job_id, token=answer["token"], result=result)
    own_server.stop()
    assert own_server.data.stat().st_size < 2.2 * MEGABYTE + 200_000
    own_server.start()
    with own_server.connect() as wire:
        assert wire.do("GetJob", id=job_id)["job"]["data"] == body
        assert wire.do("GetResult", id=job_id)["result"] == result


@pytest.mark.parametrize("command", ["PUSH", "PUSHB", "PUSHF"])
def test_a_body_over_the_limit_is_refused_before_anything_is_stored(
    wire: Wire, queue: str, command: str
) -> None:
    large = "x" * (LIMIT - 1)  # with its quotes one character too many
    fields: dict[str, object] = {
        "PUSH": {"queue": queue, "data": large},
        "PUSHB": {"queue": queue, "jobs": [{"data": 1}, {"data": large}]},
        "PUSHF": {"jobs": [{"id": queue, "queue": queue, "input": {"data": {"x": large}}}]},
    }[command]
    with pytest.raises(Refused, match=r"Job data too large \(max 10MB\)"):
        wire.do(command, **fields)
    assert wire.counts(queue) == {}
    assert wire.ping(), "the connection goes on"


def test_a_body_of_just_the_limit_goes_through(wire: Wire, queue: str) -> None:
    largest = "x" * (LIMIT - 2)
    job_id = wire.push(queue, largest)
    answer = wire.pull(queue)
    assert answer["job"]["data"] == largest
    wire.do("ACK", id=job_id, token=answer["token"], removeOnComplete=True)


def test_a_gigabyte_is_refused_when_it_is_announced(server: Server, wire: Wire) -> None:
    with server.connect() as other:
        other.send_raw((1 << 30).to_bytes(4, "big"))
        assert "maximum 67108864" in other.next_answer()["error"]
        assert other.closed_within(5)
    assert wire.ping()


@pytest.mark.slow
def test_a_backlog_of_large_jobs_can_be_counted_listed_and_worked_off(
    own_server: Server, queue: str
) -> None:
    size = figure("TANDEMQ_TEST_BACKLOG", short=100, long=400)
    with own_server.connect() as wire, own_server.connect() as other:
        for n in range(size):
            wire.push(queue, str(n % 10) * MEGABYTE, removeOnComplete=True)
        assert wire.counts(queue) == {"waiting": size}
        assert len(wire.do("GetJobs", queue=queue, limit=20)["jobs"]) == 20
        if is_own():
            assert 20 <= len(wire.do("GetJobs", queue=queue, limit=100)["jobs"]) < 64
        assert wire.ping(), "the connection goes on"
        done = 0
        while done < size:
            taken = other.do("PULLB", queue=queue, owner="w", count=size, timeout=1_000)
            assert taken["jobs"], "as many as fit, and always one"
            done += len(taken["jobs"])
            assert {job["attempts"] for job in taken["jobs"]} == {0}
            ids = [job["id"] for job in taken["jobs"]]
            other.do("ACKB", ids=ids, tokens=taken["tokens"])
        assert wire.counts(queue) == {}


@pytest.mark.slow
@pytest.mark.parametrize("limited", [False, True])
def test_a_waiting_batch_is_given_as_much_as_it_can_take(
    own_server: Server, queue: str, limited: bool
) -> None:
    with own_server.connect() as wire, own_server.connect() as worker:
        if limited:
            wire.do("SetConcurrency", queue=queue, limit=1_000)
        wire.do("Pause", queue=queue)
        waiting = worker.send("PULLB", queue=queue, owner="w", count=100, timeout=30_000)
        assert worker.ping()
        for _ in range(80):
            wire.push(queue, "x" * MEGABYTE)
        with pytest.raises(NoAnswer):
            worker.receive(waiting, timeout=0)
        wire.do("Resume", queue=queue)
        assert 1 <= len(worker.receive(waiting)["jobs"]) < 64
        assert worker.ping()


def test_dead_letters_too_large_for_one_answer_come_in_pages(wire: Wire, queue: str) -> None:
    for _ in range(12):
        wire.push(queue, "x" * (4 * MEGABYTE), maxAttempts=1)
        answer = wire.pull(queue)
        wire.do("FAIL", id=answer["job"]["id"], token=answer["token"], unrecoverable=True)
    if is_own():
        assert 4 <= len(wire.do("Dlq", queue=queue)["entries"]) < 8
    found = [
        entry["job"]["id"]
        for offset in range(0, 12, 4)
        for entry in wire.do("Dlq", queue=queue, filter={"offset": offset, "limit": 4})["entries"]
    ]
    assert len(set(found)) == 12
    wire.do("Obliterate", queue=queue)
