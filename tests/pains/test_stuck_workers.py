"""Reports of workers that stood still, and of jobs that stayed active for ever."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from tests.support.patience import eventually
from tests.support.proxy import Proxy
from tests.support.server import Server, is_own, lease_grace
from tests.support.wire import Lost, Refused, Wire


def test_a_worker_whose_link_is_cut_again_and_again_still_gets_the_next_job(
    server: Server, wire: Wire, queue: str
) -> None:
    with Proxy(server.port) as proxy:
        for _ in range(5):
            with Wire(proxy.port) as worker:
                waiting = worker.send("PULL", queue=queue, owner="w", timeout=60_000)
                assert worker.ping()
                proxy.cut()
                with pytest.raises(Lost):
                    worker.receive(waiting)
        with Wire(proxy.port) as worker:
            waiting = worker.send("PULL", queue=queue, owner="w", timeout=5_000)
            job_id = wire.push(queue, {"n": 1})
            answer = worker.receive(waiting, timeout=5)
            assert answer["job"]["id"] == job_id, "not given to a pull that is gone"


def test_an_idle_worker_gets_each_delayed_job_when_it_is_due(
    server: Server, wire: Wire, queue: str
) -> None:
    dues = {}
    for delay in (1_200, 400, 800):
        dues[wire.push(queue, {}, delay=delay)] = time.time() + delay / 1000
    with server.connect() as worker:
        for job_id, due in sorted(dues.items(), key=lambda item: item[1]):
            answer = worker.pull(queue, timeout=10_000)
            assert answer["job"]["id"] == job_id
            assert due - 0.1 <= time.time() <= due + 1


@pytest.mark.parametrize("prune", [False, True])
def test_a_job_is_recovered_by_its_own_lease_whatever_its_workers_name_does(
    server: Server, wire: Wire, queue: str, prune: bool
) -> None:
    name = f"w1-{queue}"
    register = {"name": name, "workerId": name, "queues": [queue]}
    with server.connect() as hanging, server.connect() as reborn:
        hanging.do("RegisterWorker", **register)
        job_id = wire.push(queue, {"n": 1})
        assert hanging.pull(queue, owner=name, lockTtl=500)["job"]["id"] == job_id
        if prune:
            wire.do("UnregisterWorker", workerId=name)
        reborn.do("RegisterWorker", **register)

        def recovered() -> str | None:
            reborn.do("Heartbeat", id=name, activeJobs=0)
            job = reborn.pull(queue, owner=name)["job"]
            return job["id"] if job else None

        assert eventually(recovered, "recovery", within=2 + lease_grace()) == job_id


@pytest.mark.slow
def test_ten_jobs_that_were_active_when_the_server_was_killed_run_again_with_attempts_counted(
    own_server: Server, queue: str
) -> None:
    with own_server.connect() as wire:
        jobs = [{"data": n, "backoff": 0, "durable": True} for n in range(10)]
        ids = wire.do("PUSHB", queue=queue, jobs=jobs)["ids"]
        taken = wire.do("PULLB", queue=queue, owner="w", count=10)
        assert len(taken["jobs"]) == 10
        time.sleep(0.6)  # leases are written behind, a tenth of a second or so
    own_server.kill()
    own_server.start()
    with own_server.connect() as wire:
        found: dict[str, tuple[int, str]] = {}

        def pull() -> bool:
            answer = wire.do("PULLB", queue=queue, owner="w", count=10, timeout=500)
            for job, token in zip(answer["jobs"], answer["tokens"], strict=True):
                assert job["id"] not in found
                found[job["id"]] = (job["attempts"], token)
            return len(found) == 10

        eventually(pull, "all ten run again", within=10)
        assert set(found) == set(ids)
        assert {attempts for attempts, _ in found.values()} == {1}
        wire.do("ACKB", ids=list(found), tokens=[token for _, token in found.values()])
        assert wire.counts(queue) == {"completed": 10}


def test_no_job_stays_active_after_its_lease_has_ended(
    server: Server, wire: Wire, queue: str
) -> None:
    wire.do("PUSHB", queue=queue, jobs=[{"data": n} for n in range(10)])
    with server.connect() as silent:
        taken = silent.do("PULLB", queue=queue, owner="w", count=10, lockTtl=500)
        leases_end = time.monotonic() + 0.5
        ids = [job["id"] for job in taken["jobs"]]
        while (states := Counter(wire.states(ids)))["active"]:
            assert time.monotonic() < leases_end + lease_grace() + 0.5, states
            time.sleep(0.1)
        assert wire.counts(queue) == {"waiting": 10}


@pytest.mark.slow
def test_a_renewed_lease_holds_as_long_as_it_is_renewed(
    server: Server, wire: Wire, queue: str
) -> None:
    job_id = wire.push(queue, 1)
    token = wire.pull(queue, lockTtl=1_000)["token"]
    with server.connect() as other:
        for _ in range(10):
            time.sleep(0.2)
            wire.do("JobHeartbeat", id=job_id, token=token)
            assert other.pull(queue)["job"] is None
    wire.do("ACK", id=job_id, token=token)
    assert wire.state(job_id) == "completed"


def test_a_lease_that_has_ended_cannot_be_renewed(wire: Wire, queue: str) -> None:
    job_id = wire.push(queue, 1)
    token = wire.pull(queue, lockTtl=50)["token"]
    time.sleep(0.2)
    for refused in (
        lambda: wire.do("JobHeartbeat", id=job_id, token=token),
        lambda: wire.do("ExtendLock", id=job_id, token=token, duration=1_000),
    ):
        with pytest.raises(Refused):
            refused()


@pytest.mark.slow
def test_waiting_pulls_on_an_idle_server_cost_no_polling_and_are_all_served(
    server: Server, wire: Wire, queue: str
) -> None:
    connections = [server.connect() for _ in range(50)]
    try:
        pull = {"cmd": "PULL", "queue": queue, "owner": "w", "timeout": 60_000}
        waiting = [(each, each.send_all([pull] * 20)) for each in connections]
        assert wire.ping()
        before, started = server.cpu_seconds(), time.monotonic()
        time.sleep(2)
        busy = (server.cpu_seconds() - before) / (time.monotonic() - started)
        assert busy < 0.1, f"a thousand waiting pulls use {busy:.0%} of a core"
        ids = wire.do("PUSHB", queue=queue, jobs=[{"data": n} for n in range(1_000)])["ids"]
        answers = [
            answer for connection, sent in waiting for answer in connection.receive_all(sent)
        ]
        assert Counter(answer["job"]["id"] for answer in answers) == Counter(ids)
    finally:
        for each in connections:
            each.close()


@pytest.mark.parametrize("command", [{"cmd": "PULL"}, {"cmd": "PULLB", "count": 5}])
def test_a_pull_on_an_empty_queue_is_answered_when_its_time_is_over(
    wire: Wire, queue: str, command: dict[str, object]
) -> None:
    started = time.monotonic()
    answer = wire.receive(wire.send_all([{**command, "queue": queue, "timeout": 500}])[0])
    assert not answer.get("job")
    assert not answer.get("jobs")
    assert 0.45 <= time.monotonic() - started <= 3


@pytest.mark.parametrize("cause", ["push", "batch", "delay", "resume"])
def test_a_waiting_pull_is_woken_by_whatever_makes_a_job_ready(
    server: Server, wire: Wire, queue: str, cause: str
) -> None:
    with server.connect() as worker:
        if cause == "resume":
            wire.do("Pause", queue=queue)
        waiting = worker.send("PULL", queue=queue, owner="w", timeout=20_000)
        assert worker.ping()
        match cause:
            case "push":
                wire.push(queue, 1)
            case "batch":
                wire.do("PUSHB", queue=queue, jobs=[{"data": 1}])
            case "delay":
                wire.push(queue, 1, delay=100)
            case "resume":
                wire.push(queue, 1)
                assert not worker.answered(waiting)
                wire.do("Resume", queue=queue)
        assert worker.receive(waiting, timeout=5)["job"]["data"] == 1


@pytest.mark.parametrize("backoff", [0, 50])
def test_a_waiting_pull_is_woken_by_a_retry(
    server: Server, wire: Wire, queue: str, backoff: int
) -> None:
    job_id = wire.push(queue, 1, backoff=backoff)
    token = wire.pull(queue)["token"]
    with server.connect() as worker:
        waiting = worker.send("PULL", queue=queue, owner="w", timeout=20_000)
        assert worker.ping()
        wire.do("FAIL", id=job_id, token=token, error="again")
        answer = worker.receive(waiting, timeout=5)
    assert (answer["job"]["id"], answer["job"]["attempts"]) == (job_id, 1)


def test_a_waiting_pull_is_woken_by_the_job_of_a_worker_that_is_gone(
    server: Server, wire: Wire, queue: str
) -> None:
    lost = server.connect()
    job_id = wire.push(queue, 1)
    assert lost.pull(queue)["job"]["id"] == job_id
    # The reference looks again only when the wait is over.
    wait = 20_000 if is_own() else 1_000
    waiting = wire.send("PULL", queue=queue, owner="w", timeout=wait)
    lost.close()
    assert wire.receive(waiting, timeout=5)["job"]["id"] == job_id
