"""``tandemq worker``: a program's queues, signals and exit codes, with a real server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import eventually
from tests.support.server import Server

from tandemq import Client

PROGRAM = """
import asyncio
from tandemq import Queue

queue = Queue("cli")

@queue.task
async def sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "VERSION"

@queue.task
async def deaf() -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

@queue.task(pool="process")
def apart() -> int:
    return 7

timed = Queue("timed")

@timed.every("1h")
def sweep() -> None: ...

late = Queue("late")

@late.lifespan
async def never():
    await asyncio.sleep(60)
    yield
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "workapp.py").write_text(PROGRAM)
    return tmp_path


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(f"tandemq://127.0.0.1:{server.port}") as client:
        client.queue("cli").obliterate()
        yield client


@pytest.fixture
def start(program: Path, server: Server) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = [*prefix, sys.executable, "-m", "tandemq", "worker", "workapp:queue", *words]
        where = {"TANDEMQ_URL": f"tandemq://127.0.0.1:{server.port}"}
        started.append(
            subprocess.Popen(
                command, cwd=program, env={**os.environ, **where}, stderr=subprocess.PIPE, text=True
            )
        )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def active(client: Client, count: int = 1) -> None:
    counts = client.queue("cli").counts
    eventually(lambda: counts()["active"] == count, f"{count} jobs run", within=20)


def test_it_runs_tasks_and_ends_well(start: Start, client: Client) -> None:
    worker = start()
    queue = client.queue("cli")
    assert queue.add("sleep", {"seconds": 0}).result(20) == "VERSION"
    assert queue.add("apart", {}).result(20) == 7
    job = queue.add("sleep", {"seconds": 0.3})
    active(client)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    assert job.state() == "completed"
    assert client.call("ListWorkers")["data"]["workers"] == []


@pytest.mark.parametrize("shell", [False, True])
def test_a_job_that_does_not_end_in_time_is_given_back_with_code_6(
    start: Start, client: Client, shell: bool
) -> None:
    prefix = ("sh", "-c", 'exec "$@"', "sh") if shell else ()
    worker = start("--drain-timeout", "200ms", prefix=prefix)
    job = client.queue("cli").add("sleep", {"seconds": 60})
    active(client)
    began = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 6
    assert time.monotonic() - began < 10
    assert (job.state(), job.refresh().attempts) == ("waiting", 0)


@pytest.mark.parametrize(
    ("signals", "code"),
    [((signal.SIGTERM, signal.SIGINT), 128 + signal.SIGINT), ((signal.SIGQUIT,), 6)],
)
def test_who_insists_gets_everything_back_at_once(
    start: Start, client: Client, signals: tuple[int, ...], code: int
) -> None:
    worker = start()
    job = client.queue("cli").add("sleep", {"seconds": 60})
    active(client)
    for number in signals:
        worker.send_signal(number)
        time.sleep(0.2)  # one after the other, not merged by the system
    assert worker.wait(20) == code
    assert (job.state(), job.refresh().attempts) == ("waiting", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signals", "code"),
    [([signal.SIGTERM], 6), ([signal.SIGTERM, signal.SIGINT], 128 + signal.SIGINT)],
)
def test_a_handler_that_never_ends_keeps_no_process(
    start: Start, client: Client, signals: list[signal.Signals], code: int
) -> None:
    worker = start("--drain-timeout", "100ms")
    client.queue("cli").add("deaf")
    active(client)
    for number in signals:
        worker.send_signal(number)
        time.sleep(0.05)
    _, said = worker.communicate(timeout=20)
    assert worker.returncode == code
    assert "has not ended" in said
    assert client.queue("cli").counts()["waiting"] == 1


def test_a_worker_whose_lifespan_does_not_begin_can_be_ended(program: Path) -> None:
    command = [sys.executable, "-m", "tandemq", "worker", "workapp:late"]
    worker = subprocess.Popen(command, cwd=program, stderr=subprocess.PIPE, text=True)
    assert worker.stderr is not None
    assert "working on late" in worker.stderr.readline()
    worker.terminate()
    worker.communicate(timeout=20)
    assert worker.returncode == 0


def test_another_server_gets_the_schedules_too(
    program: Path, server: Server, client: Client
) -> None:
    url = f"tandemq://127.0.0.1:{server.port}"
    command = [sys.executable, "-m", "tandemq", "worker", "workapp:timed", "--url", url]
    elsewhere = {**os.environ, "TANDEMQ_URL": "tandemq://127.0.0.1:1"}
    worker = subprocess.Popen(command, cwd=program, env=elsewhere, stderr=subprocess.DEVNULL)
    try:
        eventually(client.queue("timed").schedules.list, "the schedule is there")
    finally:
        worker.terminate()
        worker.communicate(timeout=20)
    assert worker.returncode == 0


def test_a_hang_up_starts_it_anew(start: Start, client: Client, program: Path) -> None:
    worker = start()
    queue = client.queue("cli")
    assert queue.add("sleep", {"seconds": 0}).result(20) == "VERSION"
    (program / "workapp.py").write_text(PROGRAM.replace("VERSION", "another"))
    worker.send_signal(signal.SIGHUP)
    eventually(
        lambda: queue.add("sleep", {"seconds": 0}).result(20) == "another",
        "the new code",
        within=20,
    )
    assert worker.poll() is None
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0


def test_a_change_of_the_code_starts_it_anew(start: Start, client: Client, program: Path) -> None:
    pytest.importorskip("watchfiles", reason="--reload needs an optional package")
    worker = start("--reload")
    queue = client.queue("cli")
    assert queue.add("sleep", {"seconds": 0}).result(30) == "VERSION"
    (program / "workapp.py").write_text(PROGRAM.replace("VERSION", "reloaded"))
    eventually(
        lambda: queue.add("sleep", {"seconds": 0}).result(30) == "reloaded", "new code", within=30
    )
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0


@pytest.mark.parametrize(
    ("app", "words"),
    [
        ("workapp", "write module:name"),
        ("workapp:missing", "has no missing"),
        ("nowhere:queue", "No module named 'nowhere'"),
        ("workapp:asyncio", "not a tandemq.Queue"),
    ],
)
def test_what_is_no_queue_says_so(program: Path, app: str, words: str) -> None:
    command = [sys.executable, "-m", "tandemq", "worker", app]
    done = subprocess.run(command, cwd=program, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_wrong_token_ends_it_with_code_4(new_server: Any, program: Path) -> None:
    closed = new_server(environment={"TANDEMQ_TOKENS": "right"}).start()
    url = f"tandemq://wrong@127.0.0.1:{closed.port}"
    command = [sys.executable, "-m", "tandemq", "worker", "workapp:queue", "--url", url]
    done = subprocess.run(command, cwd=program, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4, done.stderr
