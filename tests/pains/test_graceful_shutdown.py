"""Reports of jobs that a deploy cost an attempt, a result or their worker."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pains.workers import Crew
from tests.support.patience import eventually
from tests.support.server import Server, is_own
from tests.support.wire import Wire

pytestmark = pytest.mark.skipif(not is_own(), reason="the worker is ours")


def given(wire: Wire, queue: str, name: str, seconds: float, count: int = 1) -> list[str]:
    """Push tasks, wait until all of them run, and return their ids."""
    data = {"seconds": seconds}
    options = {"attempts": 3, "backoff": 60_000}
    ids = [
        wire.do("PUSH", queue=queue, name=name, data=data, **options)["id"] for _ in range(count)
    ]
    eventually(lambda: states(wire, ids) == {"active"}, "the start of the jobs")
    return ids


def states(wire: Wire, ids: list[str]) -> set[str]:
    return {wire.do("GetState", id=id)["state"] for id in ids}


def test_a_job_that_outlasts_the_grace_is_given_back_uncharged(
    server: Server, wire: Wire, queue: str, tmp_path: Path
) -> None:
    with Crew(tmp_path, server, queue, "--drain-timeout", "300ms") as crew:
        (id,) = given(wire, queue, "nap", 60)
        crew.stop()
        assert crew.process.wait(20) == 6
    job = wire.do("GetJob", id=id)["job"]
    assert (job["state"], job["attempts"], job["stallCount"]) == ("waiting", 0, 0)


def test_a_stopping_server_gives_jobs_back_uncharged(
    new_server: Callable[..., Server],
) -> None:
    server = new_server(environment={"TANDEMQ_SHUTDOWN_TIMEOUT": "0.2"}).start()
    with server.connect() as wire:
        id = wire.push("q", 1)
        assert wire.pull("q")["job"]["id"] == id
        assert server.stop() == 0
    server.start()
    with server.connect() as wire:
        job = wire.do("GetJob", id=id)["job"]
        assert (job["state"], job["attempts"], job["stallCount"]) == ("waiting", 0, 0)


def test_a_connection_that_is_lost_is_counted_as_an_interruption_and_as_no_attempt(
    server: Server, wire: Wire, queue: str
) -> None:
    before = interrupted(wire)
    id = wire.push(queue, 1)
    with server.connect() as worker:
        assert worker.pull(queue)["job"]["id"] == id
    eventually(lambda: states(wire, [id]) == {"waiting"}, "the job's return")
    assert wire.do("GetJob", id=id)["job"]["attempts"] == 0
    assert interrupted(wire) == before + 1


def interrupted(wire: Wire) -> int:
    return int(wire.do("Stats", details=True)["stats"]["interrupted"])


def test_a_job_that_fails_while_its_worker_closes_is_recorded_first(
    server: Server, wire: Wire, queue: str, tmp_path: Path
) -> None:
    with Crew(tmp_path, server, queue) as crew:
        (id,) = given(wire, queue, "stumble", 1)
        crew.stop()
        assert crew.process.wait(20) == 0
    job = wire.do("GetJob", id=id)["job"]
    assert (job["state"], job["attempts"]) == ("delayed", 1)
    assert "stumbled" in job["failedReason"]


def test_closing_waits_for_the_results_of_five_jobs(
    server: Server, wire: Wire, queue: str, tmp_path: Path
) -> None:
    with Crew(tmp_path, server, queue) as crew:
        ids = given(wire, queue, "nap", 1, 5)
        crew.stop()
        assert crew.process.wait(20) == 0
    assert {wire.do("GetResult", id=id)["result"] for id in ids} == {"rested"}


def test_insisting_gives_five_jobs_back_at_once(
    server: Server, wire: Wire, queue: str, tmp_path: Path
) -> None:
    with Crew(tmp_path, server, queue) as crew:
        ids = given(wire, queue, "nap", 60, 5)
        crew.stop()
        crew.says("draining")
        began = time.monotonic()
        crew.stop()
        assert crew.process.wait(20) == 128 + signal.SIGTERM
        assert time.monotonic() - began < 5  # of the 25 that it would wait
    assert states(wire, ids) == {"waiting"}
    assert {wire.do("GetJob", id=id)["job"]["attempts"] for id in ids} == {0}


def test_an_idle_worker_closes_in_the_middle_of_its_long_poll(
    server: Server, wire: Wire, queue: str, tmp_path: Path
) -> None:
    with Crew(tmp_path, server, queue) as crew:
        eventually(lambda: wire.do("ListWorkers")["data"]["workers"], "the worker")
        began = time.monotonic()
        crew.stop()
        assert crew.process.wait(20) == 0
        assert time.monotonic() - began < 5  # of the 20 that a poll may take
