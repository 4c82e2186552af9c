"""The official Python client (`bunqueue-client`) pushes jobs and works them off."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.interop.official import Failure, processor_of
from tests.support.patience import eventually
from tests.support.plan import OPTIONS, Load, kind
from tests.support.server import Server, token
from tests.support.wire import Wire

bunqueue = pytest.importorskip("bunqueue", reason="needs the package bunqueue-client")


@pytest.fixture
def queue_client(server: Server, queue: str) -> Iterator[Any]:
    with bunqueue.Queue(queue, host="127.0.0.1", port=server.port) as client:
        yield client


@pytest.fixture
def worker(server: Server, queue: str) -> Iterator[Callable[..., Any]]:
    """Starts workers on the queue of the test; they are closed at its end."""
    with ExitStack() as stack:

        def start(processor: Callable[[Any], Any], **options: Any) -> Any:
            options = {"poll_timeout_ms": 500, "port": server.port, **options}
            made = bunqueue.Worker(queue, processor, host="127.0.0.1", **options)
            stack.callback(made.close, 20)
            made.wait_until_ready()
            return made

        yield start


def add_all(client: Any, load: Load) -> dict[str, int]:
    """Add every job of the load, half of them one by one, half in bulk; ids -> numbers."""
    half = load.size // 2
    ids = {}
    for n in range(half):
        job = client.add("task", load.data(n), **OPTIONS[kind(n)])
        ids[job.id] = n
    for start in range(half, load.size, 100):
        numbers = range(start, min(start + 100, load.size))
        entries = [{"name": "task", "data": load.data(n), **OPTIONS[kind(n)]} for n in numbers]
        ids.update(zip(client.add_bulk(entries), numbers, strict=True))
    assert len(ids) == load.size, "two jobs were given the same id"
    return ids


def settle(client: Any, load: Load) -> None:
    """Wait until every job has ended."""
    expected = {"completed": 0, "failed": 0, **load.expected_counts()}
    eventually(
        lambda: (
            {name: n for name, n in client.get_job_counts().items() if n or name in expected}
            == expected
        ),
        f"all {load.size} jobs end",
        within=60 + load.size / 50,
        every=0.1,
    )


def numbers_in(wire: Wire, queue: str, state: str) -> list[int]:
    return [job["data"]["n"] for job in wire.jobs(queue, state)]


@pytest.mark.parametrize("ack_batch", [None, {"max_size": 50, "max_delay_ms": 5}])
def test_every_job_ends_where_it_should_and_runs_as_often_as_it_should(
    queue_client: Any,
    worker: Callable[..., Any],
    wire: Wire,
    queue: str,
    size: int,
    ack_batch: dict[str, int] | None,
) -> None:
    load = Load(size)
    process = processor_of(load, bunqueue.UnrecoverableError)
    workers = [worker(process, concurrency=8, batch_size=8, ack_batch=ack_batch) for _ in "ab"]
    ids = add_all(queue_client, load)
    settle(queue_client, load)

    assert load.wrong_starts() == {}
    for state in ("completed", "failed"):
        numbers = numbers_in(wire, queue, state)
        assert Counter(numbers) == Counter(load.in_state(state))
    for state in ("waiting", "delayed", "active", "prioritized"):
        assert wire.jobs(queue, state) == []
    results = wire.do_all({"cmd": "GetResult", "id": job_id} for job_id in ids)
    completed = load.in_state("completed")
    for n, answer in zip(ids.values(), results, strict=True):
        if n in completed:
            assert answer["result"] == {"n": n, "start": load.started[n]}
        else:
            assert "result" not in answer
    handled = sum(each._processed for each in workers)
    assert handled == load.expected_counts()["completed"]


def test_a_job_longer_than_its_lease_survives_on_heartbeats(
    queue_client: Any, worker: Callable[..., Any]
) -> None:
    started: Counter[int] = Counter()

    def process(job: Any) -> str:
        started[job.data["n"]] += 1
        time.sleep(3.5)
        return "done"

    ids = queue_client.add_bulk([{"name": "long", "data": {"n": n}} for n in range(4)])
    for _ in range(2):
        worker(process, concurrency=4, lock_ttl_ms=800, heartbeat_interval_s=0.2)
    eventually(
        lambda: [queue_client.get_state(each) for each in ids] == ["completed"] * 4,
        "the long jobs complete",
        within=15,
    )
    assert started == {0: 1, 1: 1, 2: 1, 3: 1}
    assert queue_client.get_job(ids[0]).attempts == 0


def test_a_job_without_heartbeats_is_given_to_somebody_else_when_its_lease_ends(
    queue_client: Any, worker: Callable[..., Any]
) -> None:
    release = threading.Event()
    seen: list[int] = []

    def hang(job: Any) -> None:
        seen.append(job.attempts)
        release.wait(30)

    def finish(job: Any) -> str:
        seen.append(job.attempts)
        return "rescued"

    job = queue_client.add("long", {"n": 1})
    worker(hang, concurrency=1, lock_ttl_ms=500, heartbeat_interval_s=0)
    eventually(lambda: seen, "the first worker starts the job")
    worker(finish, concurrency=1)
    try:
        eventually(lambda: queue_client.get_result(job.id) == "rescued", "rescue", within=20)
    finally:
        release.set()
    assert seen == [0, 1], "the lost lease counts as an attempt"


def test_a_worker_goes_on_after_the_server_was_killed_and_restarted(
    own_server: Server, queue: str
) -> None:
    done: Counter[int] = Counter()
    client = bunqueue.Queue(queue, host="127.0.0.1", port=own_server.port)
    worker = bunqueue.Worker(
        queue,
        lambda job: done.update([job.data["n"]]),
        host="127.0.0.1",
        port=own_server.port,
        poll_timeout_ms=500,
    )
    with client:
        try:
            for n in range(10):
                client.add("before", {"n": n}, durable=True)
            eventually(lambda: client.get_job_counts()["completed"] == 10, "ten jobs complete")
            own_server.kill()
            own_server.start()
            connected = eventually(lambda: connects(client), "the client connects again", within=10)
            assert connected
            for n in range(10, 20):
                client.add("after", {"n": n})
            eventually(lambda: len(done) == 20, "the worker goes on", within=15)
            eventually(lambda: client.get_job_counts()["completed"] == 20, "all complete")
        finally:
            assert worker.close(20)
    assert done == dict.fromkeys(range(20), 1)


def connects(client: Any) -> bool:
    return bool(client.ping())


def test_a_closing_worker_reports_the_results_of_its_running_jobs(
    queue_client: Any, worker: Callable[..., Any]
) -> None:
    running = threading.Semaphore(0)

    def process(job: Any) -> int:
        running.release()
        time.sleep(0.5)
        return int(job.data["n"])

    ids = queue_client.add_bulk([{"name": "t", "data": {"n": n}} for n in range(5)])
    closing = worker(process, concurrency=5)
    for _ in ids:
        assert running.acquire(timeout=10)
    assert closing.close(10)
    assert [queue_client.get_result(each) for each in ids] == list(range(5))


def test_an_idle_worker_in_a_long_poll_is_registered_and_gone_after_its_close(
    queue_client: Any, worker: Callable[..., Any]
) -> None:
    idle = worker(lambda job: None, poll_timeout_ms=1000, name="idler")

    def names() -> list[str]:
        return [each["name"] for each in queue_client.get_workers()]

    eventually(lambda: "idler" in names(), "the worker is listed")
    assert idle.close(10)
    eventually(lambda: "idler" not in names(), "the worker is no longer listed")


def test_progress_and_logs_of_a_running_job_can_be_read(
    queue_client: Any, worker: Callable[..., Any]
) -> None:
    look, go = threading.Event(), threading.Event()

    def process(job: Any) -> str:
        job.update_progress(40, "almost half")
        job.log("first line")
        job.log("second line", level="warn")
        job.heartbeat()
        job.extend_lock(5000)
        look.set()
        go.wait(10)
        return "ok"

    job = queue_client.add("talkative", {"n": 1}, priority=3, job_id="talkative:1")
    assert queue_client.get_state(job.id) == "prioritized"
    worker(process)
    assert look.wait(10)
    assert queue_client.get_progress(job.id) == {"progress": 40, "message": "almost half"}
    assert queue_client.get_state(job.id) == "active"
    assert queue_client.get_job_by_custom_id("talkative:1").id == job.id
    go.set()
    eventually(lambda: queue_client.get_state(job.id) == "completed", "it completes")
    logs = queue_client.get_job_logs(job.id)
    lines = logs["logs"] if isinstance(logs, dict) else logs
    assert [(line["level"], line["message"]) for line in lines] == [
        ("info", "first line"),
        ("warn", "second line"),
    ]


def test_a_paused_queue_gives_nothing_until_it_is_resumed(
    queue_client: Any, worker: Callable[..., Any]
) -> None:
    done: list[int] = []
    queue_client.pause()
    assert queue_client.is_paused()
    for n in range(3):
        queue_client.add("t", {"n": n})
    worker(lambda job: done.append(job.data["n"]), concurrency=1, poll_timeout_ms=5000)
    assert queue_client.count() == 3
    time.sleep(0.3)
    assert done == []
    queue_client.resume()
    eventually(lambda: sorted(done) == [0, 1, 2], "the jobs run after the resume", within=3)
    assert not queue_client.is_paused()


def test_failures_keep_their_message_and_stack(
    queue_client: Any, worker: Callable[..., Any]
) -> None:
    def process(job: Any) -> None:
        raise Failure("no such customer: Zoë ☃")

    job = queue_client.add("t", {"n": 1}, attempts=1)
    worker(process)
    eventually(lambda: queue_client.get_state(job.id) == "failed", "it fails")
    kept = queue_client.get_job(job.id)
    assert kept.raw["failedReason"] == "no such customer: Zoë ☃"
    assert kept.attempts == 1
    assert any("Failure" in line for line in kept.stacktrace)


def test_a_client_with_the_token_is_let_in_and_one_without_is_not(
    new_server: Callable[..., Server], queue: str
) -> None:
    guarded = new_server(environment=token("open-sesame")).start()
    address = {"host": "127.0.0.1", "port": guarded.port}
    with bunqueue.Queue(queue, token="open-sesame", **address) as client:
        assert client.add("t", {"n": 1}).id
    with (
        bunqueue.Queue(queue, token="open-barley", **address) as client,
        pytest.raises(bunqueue.AuthError),
    ):
        client.add("t", {"n": 2})
    with (
        bunqueue.Queue(queue, **address) as client,
        pytest.raises(bunqueue.CommandError, match="Not authenticated"),
    ):
        client.add("t", {"n": 3})
