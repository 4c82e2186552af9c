"""Jobs that are added in one turn travel together, and fail each for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.support.peer import Fields, Peer, silent, until, welcome

from tandemq import AsyncClient
from tandemq.client import adding
from tandemq.client.errors import (
    BadOption,
    ConnectionLost,
    QueueFull,
    Refused,
    Timeout,
    Unencodable,
    WrongServer,
)
from tandemq.client.job import Job


@pytest.fixture
async def client(peer: Peer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(peer.url, pool_size=1, command_timeout=5.0) as running:
        await running.connect()
        yield running


async def add(client: AsyncClient, *values: Any, **options: Any) -> list[Any]:
    queue = client.queue("q")
    adds = (queue.add("a", value, **options) for value in values)
    return await asyncio.gather(*adds, return_exceptions=True)


def pushes(peer: Peer) -> list[Fields]:
    seen = [fields for link in peer.links for read in link.reads for fields in read]
    return [fields for fields in seen if fields["cmd"].startswith("PUSH")]


async def test_one_job_is_a_push_and_several_are_a_batch(peer: Peer, client: AsyncClient) -> None:
    [one] = await add(client, 1)
    several = await add(client, 2, 3, 4)
    assert [one.id, *(job.id for job in several)] == ["id-1", "id-2", "id-3", "id-4"]
    first, second = pushes(peer)
    assert (first["cmd"], first["queue"], first["name"], first["data"]) == ("PUSH", "q", "a", 1)
    assert (second["cmd"], [job["data"] for job in second["jobs"]]) == ("PUSHB", [2, 3, 4])


async def test_each_queue_has_its_batch(peer: Peer, client: AsyncClient) -> None:
    await asyncio.gather(*(client.queue(f"q{n % 2}").add("a", n) for n in range(6)))
    assert {fields["queue"]: len(fields["jobs"]) for fields in pushes(peer)} == {"q0": 3, "q1": 3}


async def test_a_batch_has_bounds(
    peer: Peer, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "MOST_JOBS", 4)
    jobs = await add(client, *range(10))
    assert [job.id for job in jobs] == [f"id-{n}" for n in range(10)]
    assert [len(fields["jobs"]) for fields in pushes(peer)] == [4, 4, 2]
    monkeypatch.setattr(adding, "MOST_BYTES", 50)
    await add(client, *("x" * 30 for _ in range(3)))
    assert [fields["cmd"] for fields in pushes(peer)[3:]] == ["PUSH"] * 3


async def test_an_option_for_many_fields_is_written_whole(peer: Peer, client: AsyncClient) -> None:
    options: dict[str, Any] = {
        "priority": 1, "delay": 1, "attempts": 2, "ttl": 3, "timeout": 4, "lifo": True,
        "tags": ["t"], "durable": True, "remove_on_complete": True, "remove_on_fail": True,
        "keep_logs": 5, "stack_trace_limit": 6, "size_limit": 7, "id": "own", "unique_key": "k",
    }  # fmt: skip
    await add(client, 1, **options)
    [fields] = pushes(peer)
    assert (fields["delay"], fields["jobId"], fields["uniqueKey"]) == (1000, "own", "k")
    assert len(fields) == 3 + 2 + 16


def refusing(words: str) -> Any:
    """A server that refuses odd data, with what it says of a batch."""

    def answer(fields: Fields) -> Fields | None:
        jobs = fields.get("jobs") or [fields]
        odd = [
            n for n, job in enumerate(jobs) if fields["cmd"].startswith("PUSH") and job["data"] % 2
        ]
        if not odd:
            return welcome(fields)
        where = words.format(odd[0]) if fields["cmd"] == "PUSHB" else ""
        return {"ok": False, "error": f"{where}Job data must be even"}

    return answer


@pytest.mark.parametrize("words", ["jobs[{}]: ", "somewhere: ", "jobs[99]: "])
async def test_a_refused_job_does_not_take_others_with_it(
    peer: Peer, client: AsyncClient, words: str
) -> None:
    peer.answer = refusing(words)
    came = await add(client, *range(8))
    for number, each in enumerate(came):
        if number % 2:
            assert isinstance(each, Refused)
            assert str(each) == "PUSH: Job data must be even"
        else:
            assert isinstance(each, Job)
            assert each.id == f"id-{number}"


async def test_what_concerns_all_is_told_to_all(peer: Peer, client: AsyncClient) -> None:
    def full(fields: Fields) -> Fields | None:
        if fields["cmd"].startswith("PUSH"):
            return {"ok": False, "error": "Queue q is full"}
        return welcome(fields)

    peer.answer = full
    came = await add(client, 1, 2, 3)
    assert [type(each) for each in came] == [QueueFull] * 3
    assert len({id(each) for each in came}) == 3, "nobody gets another's traceback"
    assert len(pushes(peer)) == 1


async def test_a_lost_batch_is_lost_for_each_and_sent_once(peer: Peer, client: AsyncClient) -> None:
    peer.answer = silent("PUSHB")
    adding_them = asyncio.create_task(add(client, 1, 2))
    await until(lambda: pushes(peer), "it is written")
    peer.cut()
    assert [type(each) for each in await adding_them] == [ConnectionLost] * 2
    await client.call("Ping")
    assert len(pushes(peer)) == 1


async def test_a_batch_without_an_answer_ends_in_time(peer: Peer) -> None:
    peer.answer = silent("PUSHB")
    async with AsyncClient(peer.url, command_timeout=0.1) as client:
        assert [type(each) for each in await add(client, 1, 2)] == [Timeout] * 2


@pytest.mark.parametrize("said", [{}, {"id": 5, "ids": ["a"]}, {"ids": ["a", None]}])
async def test_an_answer_without_ids_is_no_answer(
    peer: Peer, client: AsyncClient, said: Fields
) -> None:
    peer.answer = lambda fields: {"ok": True, **said}
    async with asyncio.timeout(5):
        for values in ((1,), (1, 2)):
            assert {type(each) for each in await add(client, *values)} == {WrongServer}


async def test_a_job_that_cannot_be_written_fails_alone(peer: Peer, client: AsyncClient) -> None:
    one, other, third = await add(client, 1, {"x": [object()]}, 3)
    assert (one.id, third.id) == ("id-1", "id-3")
    assert isinstance(other, Unencodable)
    assert str(other).startswith("data.x[0] is of type object")


async def test_who_left_is_not_added(peer: Peer, client: AsyncClient) -> None:
    tasks = [asyncio.create_task(client.queue("q").add("a", n)) for n in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    added = [job["data"] for fields in pushes(peer) for job in fields.get("jobs", [fields])]
    assert added == [0, 2]


async def test_a_job_that_may_find_its_group_full_goes_alone(
    peer: Peer, client: AsyncClient
) -> None:
    await add(client, 1, 2, group="g", group_max_size=1)
    assert [fields["cmd"] for fields in pushes(peer)] == ["PUSH", "PUSH"]


async def test_many_jobs_go_in_parts_and_not_all_at_once(peer: Peer, client: AsyncClient) -> None:
    taken = 0

    def jobs() -> Iterator[tuple[str, int]]:
        nonlocal taken
        for taken in range(1, 101):
            yield ("a", taken)

    peer.answer = silent("PUSHB")
    adding_them = asyncio.create_task(client.queue("q").add_many(jobs(), part=4))
    await until(lambda: len(pushes(peer)) == 16, "some are written")
    await asyncio.sleep(0.02)
    assert taken <= 4 * 17
    peer.answer = welcome
    for fields in pushes(peer):
        peer.links[0].send({**(welcome(fields) or {}), "reqId": fields["reqId"]})
    assert await adding_them == [f"id-{n}" for n in range(1, 101)]


async def test_a_bad_job_among_many_is_named_and_ends_it(
    peer: Peer, client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [("a", 1), ("a", 2), ("a", {"x": object()})]
    with pytest.raises(Unencodable, match=r"jobs\[0\]\.data\.x is of type object"):
        await client.queue("q").add_many(jobs, part=2)
    with pytest.raises(BadOption, match="a tuple of name, data"):
        await client.queue("q").add_many(["a"])  # type: ignore[list-item]
    assert caplog.records == []
