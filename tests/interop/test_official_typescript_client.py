"""The official TypeScript client (npm `bunqueue`, run by npm `bun`) pushes jobs and works them off.

TANDEMQ_INTEROP_NODE names a folder in which both are installed: `npm install bun bunqueue@2.9.5`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop.official import processor_of
from tests.support.patience import eventually
from tests.support.plan import OPTIONS, Load, kind
from tests.support.server import Server, clean_environment
from tests.support.wire import Wire

NODE = os.environ.get("TANDEMQ_INTEROP_NODE", "")
PROGRAMS = Path(__file__).parent / "typescript"

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not NODE, reason="TANDEMQ_INTEROP_NODE names no folder with bun, bunqueue"),
]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with our programs beside the packages that they import."""
    folder = tmp_path / "programs"
    shutil.copytree(PROGRAMS, folder)
    (folder / "node_modules").symlink_to(Path(NODE).resolve() / "node_modules")
    return folder


@pytest.fixture
def start(
    programs: Path, server: Server, queue: str
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program against the server; it is gone at the end of the test."""
    running: list[subprocess.Popen[str]] = []

    def start(program: str, **environment: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(programs / "node_modules" / ".bin" / "bun"), program],
            cwd=programs,
            env={
                **clean_environment(),
                "PORT": str(server.port),
                "QUEUE": queue,
                **{name: str(value) for name, value in environment.items()},
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def report_of(process: subprocess.Popen[str], *, within: float = 90.0) -> Any:
    """What the program found, once it has ended well."""
    output, errors = process.communicate(timeout=within)
    assert process.returncode == 0, f"{output}\n{errors}"
    assert errors == "", errors
    return json.loads(output.splitlines()[-1])


def started(report: Any) -> Counter[int]:
    return Counter({int(n): times for n, times in report["started"].items()})


@pytest.mark.parametrize("auto_batch", [False, True])
def test_every_job_ends_where_it_should_and_runs_as_often_as_it_should(
    start: Callable[..., subprocess.Popen[str]],
    wire: Wire,
    queue: str,
    size: int,
    auto_batch: bool,
) -> None:
    program = start("round_trip.ts", JOBS=size, AUTO_BATCH=int(auto_batch))
    report = report_of(program, within=90 + size / 25)
    load = Load(size, started(report))

    assert load.wrong_starts() == {}
    expected = load.expected_counts()
    assert wire.counts(queue) == expected
    assert {name: count for name, count in report["counts"].items() if count} == expected
    assert report["seen"]["completed"] == expected["completed"]
    for state in ("completed", "failed"):
        jobs = wire.jobs(queue, state)
        assert Counter(job["data"]["n"] for job in jobs) == Counter(load.in_state(state))
        assert all(report["ids"][job["id"]] == job["data"]["n"] for job in jobs)
    results = wire.do_all({"cmd": "GetResult", "id": job_id} for job_id in report["ids"])
    completed = load.in_state("completed")
    for n, answer in zip(report["ids"].values(), results, strict=True):
        if n in completed:
            assert answer["result"] == {"n": n, "start": load.started[n]}


def test_a_job_longer_than_its_lease_survives_on_heartbeats(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    report = report_of(start("leases.ts"))
    assert started(report) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert report["attemptsMade"] == 0


def test_the_everyday_calls_of_a_program_answer_as_it_expects(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    found = report_of(start("everyday.ts"))
    logs = found.pop("logs")
    assert len(logs) == 1
    assert "a line" in json.dumps(logs)
    assert found == {
        "paused": True,
        "sameId": True,
        "states": ["prioritized", "delayed"],
        "count": 2,
        "deliveredWhilePaused": 0,
        "running": "active",
        "returnvalue": {"sent": True},
        "delivered": [["mail", {"to": "zoë"}, 5]],
        "workers": True,
    }


def test_a_typescript_worker_works_off_what_a_python_program_pushed(
    start: Callable[..., subprocess.Popen[str]], server: Server, wire: Wire, queue: str
) -> None:
    bunqueue = pytest.importorskip("bunqueue", reason="needs the package bunqueue-client")
    load = Load(200)
    with bunqueue.Queue(queue, host="127.0.0.1", port=server.port) as client:
        client.add_bulk(
            [{"name": "task", "data": load.data(n), **OPTIONS[kind(n)]} for n in range(load.size)]
        )
    report = report_of(start("work.ts", JOBS=load.size))
    load.started = started(report)
    assert load.wrong_starts() == {}
    assert wire.counts(queue) == load.expected_counts()
    assert report["names"] == ["task"], "the name a Python client writes into the data arrives"


def test_a_python_worker_works_off_what_a_typescript_program_pushed(
    start: Callable[..., subprocess.Popen[str]], server: Server, wire: Wire, queue: str
) -> None:
    bunqueue = pytest.importorskip("bunqueue", reason="needs the package bunqueue-client")
    load = Load(200)

    ids = report_of(start("push.ts", JOBS=load.size))["ids"]
    assert len(set(ids)) == load.size
    process = processor_of(load, bunqueue.UnrecoverableError)
    worker = bunqueue.Worker(
        queue, process, host="127.0.0.1", port=server.port, concurrency=8, poll_timeout_ms=500
    )
    try:
        eventually(lambda: wire.counts(queue) == load.expected_counts(), "all end", within=30)
    finally:
        assert worker.close(20)
    assert load.wrong_starts() == {}
