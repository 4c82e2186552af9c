"""Reports of lost jobs; docs/pains.md says which."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.patience import eventually
from tests.support.server import Server, is_own, lease_grace
from tests.support.wire import Refused, Wire

ROOT = Path(__file__).parents[2]


def start_holder(server: Server, queue: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.pains.holder", str(server.port), queue],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_job_whose_worker_process_is_killed_runs_again_at_once_on_another(
    server: Server, wire: Wire, queue: str
) -> None:
    job_id = wire.push(queue, {"n": 1}, maxAttempts=3)
    with start_holder(server, queue) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == job_id
        with server.connect() as second:
            waiting = second.send("PULL", queue=queue, owner="second", timeout=2_000)
            holder.kill()
            while not second.answered(waiting):
                assert sum(wire.counts(queue).values()) == 1, "in exactly one state"
                assert wire.state(job_id) in ("active", "waiting")
            answer = second.receive(waiting)
            assert answer["job"]["id"] == job_id
            assert answer["job"]["attempts"] == 0, "a lost worker is no failure of the job"
            second.do("ACK", id=job_id, token=answer["token"])
    assert wire.counts(queue) == {"completed": 1}


@pytest.mark.slow
def test_a_delayed_job_starts_on_time_although_the_server_was_killed_meanwhile(
    own_server: Server, queue: str
) -> None:
    with own_server.connect() as wire:
        job_id = wire.push(queue, {"n": 1}, delay=3_000, durable=True)
        due = time.time() + 3
        assert wire.state(job_id) == "delayed"
    own_server.kill()
    own_server.start()
    with own_server.connect() as wire:
        answer = wire.pull(queue, timeout=10_000)
        assert answer["job"]["id"] == job_id
        assert answer["job"]["attempts"] == 0
        assert due - 0.1 <= time.time() <= due + 1
        assert wire.pull(queue)["job"] is None


@pytest.mark.parametrize("job_id", ["patch-job:0190", "a:b:c", ":", "00123", "123", "a/b", ".."])
def test_an_id_with_colons_slashes_or_digits_is_kept_exactly(
    wire: Wire, queue: str, job_id: str
) -> None:
    mine = f"{job_id}:{queue}"
    assert wire.push(queue, {"n": 1}, jobId=mine) == mine
    assert wire.do("GetJobByCustomId", customId=mine)["job"]["customId"] == mine
    assert wire.do("GetJob", id=mine)["job"]["id"] == mine
    assert wire.push(queue, {"n": 2}, jobId=mine) == mine
    assert wire.counts(queue) == {"waiting": 1}


def test_unacknowledged_jobs_of_a_closed_consumer_go_to_the_next_one(
    server: Server, wire: Wire, queue: str
) -> None:
    wire.do("PUSHB", queue=queue, jobs=[{"data": n} for n in range(50)])
    with server.connect() as first:
        taken = first.do("PULLB", queue=queue, owner="first", count=50)["jobs"]
        assert len(taken) == 50
        assert wire.counts(queue) == {"active": 50}
    eventually(lambda: wire.counts(queue) == {"waiting": 50}, "they are waiting again", within=2)
    again = wire.do("PULLB", queue=queue, owner="second", count=50)
    assert [job["id"] for job in again["jobs"]] == [job["id"] for job in taken], "in their order"
    assert {job["attempts"] for job in again["jobs"]} == {0}
    wire.do("ACKB", ids=[job["id"] for job in again["jobs"]], tokens=again["tokens"])
    assert wire.counts(queue) == {"completed": 50}


def test_unacknowledged_jobs_of_a_silent_consumer_go_to_the_next_one_when_the_leases_end(
    server: Server, wire: Wire, queue: str
) -> None:
    wire.do("PUSHB", queue=queue, jobs=[{"data": n} for n in range(50)])
    with server.connect() as silent:
        taken = silent.do("PULLB", queue=queue, owner="silent", count=50, lockTtl=300)
        assert len(taken["jobs"]) == 50
        found: dict[str, str] = {}

        def pull() -> bool:
            answer = wire.do("PULLB", queue=queue, owner="second", count=50)
            pairs = zip(answer["jobs"], answer["tokens"], strict=True)
            found.update({job["id"]: token for job, token in pairs})
            return len(found) == 50

        eventually(pull, "all fifty arrive again", within=2 + lease_grace())
        with pytest.raises(Refused, match="lock token"):
            silent.do("ACK", id=taken["jobs"][0]["id"], token=taken["tokens"][0])
        wire.do("ACKB", ids=list(found), tokens=list(found.values()))
    assert wire.counts(queue) == {"completed": 50}


def test_closing_a_connection_gives_its_jobs_back_at_once_and_charges_no_attempt(
    server: Server, wire: Wire, queue: str
) -> None:
    ids = [wire.push(queue, n) for n in range(3)]
    for close in ("close", "reset"):
        other = server.connect()
        tokens = [other.pull(queue, owner="w")["token"] for _ in ids]
        assert len(set(tokens)) == 3
        getattr(other, close)()
        eventually(lambda: wire.states(ids) == ["waiting"] * 3, "given back", within=2)
        jobs = [wire.do("GetJob", id=each)["job"] for each in ids]
        assert [(job["attempts"], job["stallCount"]) for job in jobs] == [(0, 0)] * 3
        assert [job["startedAt"] for job in jobs] == [None] * 3


def test_a_closing_connection_takes_nothing_that_it_had_finished(
    server: Server, wire: Wire, queue: str
) -> None:
    good, bad = wire.push(queue, 1), wire.push(queue, 2, maxAttempts=1)
    with server.connect() as worker:
        worker.do("ACK", id=good, token=worker.pull(queue)["token"], result="r")
        worker.do("FAIL", id=bad, token=worker.pull(queue)["token"], error="e")
    assert wire.states([good, bad]) == ["completed", "failed"]
    time.sleep(0.2)
    assert wire.states([good, bad]) == ["completed", "failed"]


@pytest.mark.slow
def test_a_lease_that_was_renewed_outlives_its_connection_until_it_ends(
    server: Server, wire: Wire, queue: str
) -> None:
    """A pooled client pulls on one connection and renews on another."""
    job_id = wire.push(queue, 1)
    with server.connect() as worker:
        token = worker.pull(queue, lockTtl=1_500)["token"]
        wire.do("JobHeartbeat", id=job_id, token=token)
    time.sleep(0.3)
    assert wire.state(job_id) == "active"
    assert wire.pull(queue)["job"] is None
    again = eventually(
        lambda: wire.pull(queue, owner="next")["job"], "it ends", within=2 + lease_grace()
    )
    assert (again["id"], again["attempts"]) == (job_id, 1)


@pytest.mark.skipif(not is_own(), reason="the reference hands it out for ever")
def test_a_job_whose_workers_vanish_ten_times_is_given_up_and_kept_as_a_dead_letter(
    server: Server, wire: Wire, queue: str
) -> None:
    job_id = wire.push(queue, {"n": 1})
    for n in range(10):
        assert wire.state(job_id) == "waiting", f"given up after {n}"
        with server.connect() as worker:
            job = worker.pull(queue, timeout=5_000)["job"]
            assert (job["id"], job["attempts"]) == (job_id, 0)
        eventually(lambda: wire.state(job_id) != "active", "noticed", within=5)
    assert wire.state(job_id) == "failed"
    assert wire.pull(queue)["job"] is None
    assert wire.do("GetJob", id=job_id)["job"]["data"] == {"n": 1}
