"""What a worker says of a handler that raised: it can always travel, and always ends the job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.peer import Fields, Peer

import tandemq
from tandemq import Context, Fail, Retry, Worker
from tandemq.client.errors import JobFailed, WrongServer
from tandemq.client.failures import LINE_LENGTH, TEXT_LENGTH, failure_of
from tandemq.wires.bunqueue.caller import MAX_FRAME, encode


class Mute(Exception):
    def __str__(self) -> str:
        raise LookupError


@pytest.mark.parametrize("kind", [ValueError, Fail, Retry])
@pytest.mark.parametrize("text", ["half of a pair: \ud800", "x" * 1_000_000, ""])
def test_whatever_an_error_says_can_travel(kind: type[Exception], text: str) -> None:
    error = Retry(reason=text) if kind is Retry else kind(text)
    said = failure_of(error)
    assert said is not None
    assert len(encode(said)) < TEXT_LENGTH + LINE_LENGTH
    assert "\ud800" not in said["error"]


def test_an_error_that_cannot_even_be_shown_has_its_name() -> None:
    assert (failure_of(Mute()) or {})["error"] == "Mute: (its text raised LookupError)"


def stops() -> Any:
    raise GeneratorExit


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (lambda: "x" * (MAX_FRAME + 1), "its result was refused: .* 64 MiB"),
        (stops, "GeneratorExit"),
    ],
)
@pytest.mark.parametrize("others", [0, 3])
async def test_what_cannot_be_said_ends_its_job_and_no_other(
    ending: Any, words: str, others: int
) -> None:
    async def handle(job: Context) -> Any:
        await asyncio.sleep(0)  # they end together
        return ending() if job.name == "odd" else job.name

    async with tandemq.open("memory://") as client:
        queue = client.queue("q")
        odd = await queue.add("odd", attempts=1)
        good = [await queue.add("good") for _ in range(others)]
        async with Worker("q", handle, url=client.pool.target):
            with pytest.raises(JobFailed, match=words):
                await odd.result(10)
            assert [await job.result(10) for job in good] == ["good"] * others


@pytest.mark.parametrize("said", [{"jobs": [{"id": 5}]}, {"jobs": [{}, {}], "tokens": ["a"]}])
async def test_what_is_no_job_ends_the_worker_and_says_so(said: Fields) -> None:
    async def handle(job: Context) -> None:
        pass

    async with Peer(lambda fields: {"ok": True, **said}) as peer, asyncio.timeout(5):
        with pytest.raises(WrongServer, match="what is no job"):
            await Worker("q", handle, url=peer.url).run()
