"""The pytest plugin, in tests as its users write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tandemq import Queue, Retry
from tandemq.client.errors import Misused
from tandemq.testing import Stage

mail: Any = Queue("mail", "tandemq://127.0.0.1:1")  # nobody listens there
sent: list[str] = []


@mail.task(retry=Retry(2, delay="1m"))
def send(to: str) -> str:
    sent.append(to)
    if to == "nobody":
        raise ValueError("no such address")
    return f"sent to {to}"


@mail.every("1h", missed="once")
async def clean() -> None:
    sent.append("cleaned")


@pytest.fixture(autouse=True)
def served(tandemq_server: Stage) -> Any:
    sent.clear()
    with tandemq_server.serves(mail):
        yield


def test_what_was_enqueued_is_known(tandemq_jobs: Callable[..., Any]) -> None:
    send.enqueue_sync("ada")
    send.options(delay="1h").enqueue_sync("bob")
    assert [(job.name, job.data) for job in tandemq_jobs(mail)] == [
        ("send", {"to": "ada"}),
        ("send", {"to": "bob"}),
    ]


def test_a_worker_runs_until_nothing_waits(tandemq_worker: Callable[..., Any]) -> None:
    for to in ("ada", "bob"):
        send.enqueue_sync(to)
    job = send.options(delay="1h").enqueue_sync("eve")
    assert tandemq_worker(mail).figures.completed == 2
    assert sorted(sent) == ["ada", "bob"]
    assert job.state() == "delayed"


def test_time_goes_by_when_the_test_says_so(
    tandemq_clock: Stage, tandemq_worker: Callable[..., Any]
) -> None:
    job = send.options(delay="1h").enqueue_sync("eve")
    tandemq_clock.advance(minutes=59)
    tandemq_worker(mail)
    assert sent == []
    tandemq_clock.advance(timedelta(minutes=1))
    tandemq_worker(mail)
    assert job.result(timeout=5) == "sent to eve"


def test_a_failed_job_comes_back_after_its_back_off(
    tandemq_clock: Stage, tandemq_worker: Callable[..., Any]
) -> None:
    job = send.enqueue_sync("nobody")
    assert tandemq_worker(mail).figures.failed == 1
    assert job.state() == "delayed"
    tandemq_clock.advance(minutes=3)
    tandemq_worker(mail)
    assert (sent, job.state()) == (["nobody", "nobody"], "failed")


def test_a_schedule_runs_when_its_time_has_come(
    tandemq_clock: Stage, tandemq_worker: Callable[..., Any]
) -> None:
    tandemq_worker(mail)
    tandemq_clock.advance(hours=1)
    tandemq_worker(mail)
    assert sent == ["cleaned"]


async def test_a_test_with_a_loop_uses_it(tandemq_server: Stage) -> None:
    job = await send.enqueue("ada")
    with pytest.raises(Misused, match="await work_until_idle"):
        tandemq_server.run_until_idle(mail)
    await tandemq_server.work_until_idle(mail)
    assert await job.result(timeout=5) == "sent to ada"
    tandemq_server.advance(minutes=1)
    await mail.close()


def test_time_does_not_run_backwards(tandemq_clock: Stage) -> None:
    with pytest.raises(ValueError, match="backwards"):
        tandemq_clock.advance(minutes=-1)
