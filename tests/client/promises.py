"""What the client promises about every command that both servers have; one function a topic."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tandemq import AsyncClient
from tandemq.client.errors import BadOption, NotFound, Refused, TandemqError
from tandemq.client.flow import Step
from tandemq.client.job import Job

Promise = Callable[[AsyncClient, str], Awaitable[None]]


async def pull(client: AsyncClient, queue: str) -> tuple[Job, str]:
    """Take the next job under a lease."""
    answer = await client.call("PULL", queue=queue, owner="promises", lockTtl=30_000)
    assert answer["job"] is not None
    return client.queue(queue).job(answer["job"]["id"]), answer["token"]


async def jobs_are_added_one_by_one_and_many_at_once(client: AsyncClient, name: str) -> None:
    queue = client.queue(name)
    first = await queue.add("a", {"n": 0}, priority=5, tags=["x"], attempts=7)
    others = await asyncio.gather(*(queue.add("b", {"n": n}) for n in range(1, 20)))
    ids = await queue.add_many([("c", {"n": 20}), ("d", {"n": 21}, {"delay": timedelta(hours=1)})])
    found = {job.id: job for job in await queue.jobs(limit=100)}
    assert found.keys() == {first.id, *(job.id for job in others), *ids}
    assert [found[job.id].data["n"] for job in (first, *others)] == list(range(20))
    assert (found[first.id].name, found[first.id].priority) == ("a", 5)
    assert (found[first.id].max_attempts, found[first.id].tags) == (7, ("x",))
    assert await queue.count() == 22
    counts = await queue.counts()
    assert (counts["waiting"], counts["prioritized"], counts["delayed"]) == (20, 1, 1)
    assert (await queue.counts_per_priority())[5] == 1
    assert name in await client.queues()


async def a_flow_is_made_of_steps(client: AsyncClient, name: str) -> None:
    odd: Any = {"name": "a"}
    for flow in ([odd], [Step(name, "a").after(odd)]):
        with pytest.raises(BadOption, match="give a Step"):
            await client.flows.add_many(flow)


async def options_mean_what_they_say(client: AsyncClient, name: str) -> None:
    queue = client.queue(name)
    moment = datetime.now(UTC) + timedelta(minutes=10)
    late = await (await queue.add("later", run_at=moment)).refresh()
    assert late.run_at is not None
    assert abs(late.run_at - moment) < timedelta(seconds=5)
    assert await late.state() == "delayed"
    own = await queue.add("own", {"v": 1}, id=f"{name}-own")
    again = await queue.add("own", {"v": 2}, id=f"{name}-own")
    assert own.id == again.id
    found = await queue.get_by_custom_id(f"{name}-own")
    assert found is not None
    assert found.data == {"v": 1}
    pair = await asyncio.gather(*(queue.add("own", id=f"{name}-pair") for _ in range(2)))
    assert len({job.id for job in pair}) == 1, "in one batch, too"
    key = await queue.add("u", unique_key="k", unique_for=timedelta(minutes=1))
    assert (await queue.add("u", unique_key="k")).id == key.id
    assert await queue.holder_of("k") == key.id
    assert await queue.free_key("k")
    assert await queue.holder_of("k") is None


async def a_job_is_looked_at_and_changed(client: AsyncClient, name: str) -> None:
    queue = client.queue(name)
    job = await queue.add("a", {"v": 1}, delay=3600)
    await job.update({"v": 2})
    await job.change_priority(9)
    await job.change_delay(timedelta(hours=2))
    await job.refresh()
    assert (job.data, job.priority) == ({"v": 2}, 9)
    await job.promote()
    assert await job.state() in ("waiting", "prioritized")
    await job.log("one")
    await job.log("two", "error")
    assert [line["message"] for line in await job.logs()] == ["one", "two"]
    await job.clear_logs()
    assert await job.logs() == []
    await job.cancel()
    assert await queue.get(job.id) is None
    assert await job.state() == "unknown"
    with pytest.raises(NotFound):
        await job.refresh()


async def a_job_is_worked_on_by_hand(client: AsyncClient, name: str) -> None:
    queue = client.queue(name)
    added = await queue.add("a", {"v": 1})
    waiting = asyncio.create_task(added.result(timeout=20))
    job, token = await pull(client, name)
    assert job == added
    await job.update_progress(40, "nearly half")
    await job.heartbeat(token)
    await job.extend_lock(timedelta(seconds=40), token)
    assert (await job.refresh()).progress == 40
    await job.complete({"sum": 3}, token)
    assert await waiting == {"sum": 3}
    assert await job.state() == "completed"
    assert await job.result(timeout=5) == {"sum": 3}, "it is known afterwards, too"
    assert await queue.retry_completed() == 1
    assert await job.state() in ("waiting", "prioritized")


async def a_dead_letter_is_kept_and_retried(client: AsyncClient, name: str) -> None:
    queue = client.queue(name)
    await queue.add("a", attempts=1)
    job, token = await pull(client, name)
    await job.fail("it broke", token, final=True, stack="line 1\nline 2")
    assert await job.state() == "failed"
    assert [dead.id for dead in await queue.dead_letters.jobs()] == [job.id]
    assert (await queue.dead_letters.stats())["total"] == 1
    assert await queue.dead_letters.retry() == 1
    again, token = await pull(client, name)
    await again.fail("it broke again", token, final=True)
    await queue.dead_letters.configure(maxEntries=500)
    assert (await queue.dead_letters.config())["maxEntries"] == 500
    assert await queue.dead_letters.purge() == 1


async def a_queue_is_controlled(client: AsyncClient, name: str) -> None:
    queue = client.queue(name)
    await queue.add_many([("a", n) for n in range(5)])
    await queue.pause()
    assert await queue.is_paused()
    assert (await client.call("PULL", queue=name))["job"] is None
    await queue.resume()
    assert not await queue.is_paused()
    await queue.add("late", delay=3600)
    assert await queue.promote() == 1
    assert await queue.drain() == 6
    await queue.add("a")
    await queue.obliterate()
    assert await queue.count() == 0


async def limits_are_set_and_taken_away(client: AsyncClient, name: str) -> None:
    limits = client.queue(name).limits
    await limits.set_rate(10, timedelta(seconds=60))
    await limits.set_concurrency(3)
    found = await limits.get()
    assert (found["rateLimit"]["max"], found["concurrencyLimit"]) == (10, 3)
    await limits.clear_rate()
    await limits.clear_concurrency()
    found = await limits.get()
    assert (found["rateLimit"], found["concurrencyLimit"]) == (None, None)
    await limits.set_stall(interval=60, max_stalls=4)
    stall = await limits.stall()
    assert (stall["stallInterval"], stall["maxStalls"]) == (60_000, 4)


async def groups_have_limits_of_their_own(client: AsyncClient, name: str) -> None:
    queue, group = client.queue(name), client.queue(name).group("g")
    await asyncio.gather(*(queue.add("a", n, group="g") for n in range(3)))
    assert (await group.count(), await queue.grouped_count()) == (3, 3)
    assert await group.active_count() == 0
    assert await group.pause()
    assert await group.is_paused()
    assert await group.resume()
    await group.set_rate(4, 60)
    assert await group.rate() == {"max": 4, "duration": 60_000}
    assert await group.clear_rate()
    await group.set_concurrency(2)
    assert await group.concurrency() == 2
    assert await group.clear_concurrency()
    assert await group.shut_ms() is None
    await group.shut_for(60)
    assert 0 < (await group.shut_ms() or 0) <= 60_000


async def schedules_come_and_go(client: AsyncClient, name: str) -> None:
    schedules = client.queue(name).schedules
    nightly = await schedules.cron(f"{name}-night", "0 3 * * *", {"v": 1}, tz="Europe/Rome")
    assert (nightly["schedule"], nightly["timezone"]) == ("0 3 * * *", "Europe/Rome")
    await schedules.every(f"{name}-often", timedelta(minutes=5), limit=3, job={"attempts": 2})
    assert {each["name"] for each in await schedules.list()} == {f"{name}-night", f"{name}-often"}
    found = await schedules.get(f"{name}-often")
    assert found is not None
    assert (found["repeatEvery"], found["maxLimit"]) == (300_000, 3)
    odd: Any
    for odd, words in (
        ({"priorty": 1}, "did you mean priority"),
        ({"missed": "never"}, "skip, once, all"),
        ({"job": {"tags": ["x"]}}, "take no tags"),
    ):
        with pytest.raises(BadOption, match=words):
            await schedules.cron(f"{name}-odd", "0 3 * * *", **odd)
    assert await schedules.remove(f"{name}-night")
    assert not await schedules.remove(f"{name}-night")
    assert await schedules.get(f"{name}-night") is None
    assert await schedules.remove(f"{name}-often")


async def flows_are_trees_chains_and_fans(client: AsyncClient, name: str) -> None:
    tree = await client.flows.add(
        Step(name, "top", {"v": 0}, [Step(name, "left", {"v": 1}), Step(name, "right", {"v": 2})])
    )
    assert sorted(child.name for child in tree.children) == ["left", "right"]
    assert await tree.state() == "waiting-children"
    read = await client.flows.get(tree.id)
    assert read is not None
    assert sorted(child.data["v"] for child in read.children) == [1, 2]
    for _ in range(2):
        job, token = await pull(client, name)
        await job.complete({"from": job.id}, token)
    assert len(await tree.children_values()) == 2
    job, token = await pull(client, name)
    assert job.id == tree.id
    await job.complete(None, token)
    last = await client.flows.chain(Step(name, "one"), Step(name, "two"), Step(name, "three"))
    assert (last.name, last.children[0].name, last.children[0].children[0].name) == (
        "three",
        "two",
        "one",
    )
    fan = await client.flows.fan_in([Step(name, "a"), Step(name, "b")], Step(name, "then"))
    assert [child.name for child in fan.children] == ["a", "b"]


async def events_come_as_they_happen(client: AsyncClient, name: str) -> None:
    queue = client.queue(name)
    async with queue.events() as events:
        added = await queue.add("a", {"v": 1})
        job, token = await pull(client, name)
        await job.complete({"done": True}, token)
        seen: list[Any] = []
        async for event in events:
            seen.append(event)
            if event.type == "completed":
                break
    assert [event.type for event in seen] == ["pushed", "pulled", "completed"]
    assert {event.job_id for event in seen} == {added.id}
    assert seen[-1].fields["data"] == {"done": True}
    assert seen[-1].at is not None


async def payloads_come_back_as_they_went(client: AsyncClient, name: str) -> None:
    queue = client.queue(name)
    values: list[Any] = [
        None, True, 0, -1, 2**31 - 1, 2.5, "", "ünïcode 😀", [], {}, [1, [2]], {"name": "kept"},
    ]  # fmt: skip
    jobs = [await queue.add("p", {"value": value}) for value in values]
    assert [(await job.refresh()).data for job in jobs] == [{"value": value} for value in values]
    wide = await (await queue.add("p", {"n": 2**40})).refresh()
    assert wide.data == {"n": 2**40}


async def the_server_tells_of_itself(client: AsyncClient, name: str) -> None:
    assert (await client.connect())["server"] == "bunqueue"
    assert await client.ping() > 1.7e12
    assert "totalPushed" in await client.metrics()
    assert "uptime" in await client.stats()
    assert isinstance(await client.workers(), list)
    await client.queue(name).add("a")
    assert (await client.queue(name).metrics("completed"))["count"] >= 0
    with pytest.raises(Refused, match="Unknown command"):
        await client.call("Nonsense")


async def one_bad_job_of_a_batch_fails_alone(client: AsyncClient, name: str) -> None:
    queue = client.queue(name)
    came = await asyncio.gather(
        *(queue.add("a", n, priority=0 if n % 5 else 10_000_000) for n in range(1, 21)),
        return_exceptions=True,
    )
    refused = [n for n, each in enumerate(came, 1) if isinstance(each, BaseException)]
    assert refused == [5, 10, 15, 20]
    assert all(isinstance(each, (Job, TandemqError)) for each in came)
    assert await queue.count() == 16


async def webhooks_are_added_and_removed(client: AsyncClient, name: str) -> None:
    id = await client.webhooks.add("https://example.org/h", ["job.completed"], queue=name)
    assert id in {each["id"] for each in await client.webhooks.list()}
    await client.webhooks.enable(id, False)
    await client.webhooks.remove(id)
    assert id not in {each["id"] for each in await client.webhooks.list()}


PROMISES: list[Promise] = [
    jobs_are_added_one_by_one_and_many_at_once,
    options_mean_what_they_say,
    a_flow_is_made_of_steps,
    a_job_is_looked_at_and_changed,
    a_job_is_worked_on_by_hand,
    a_dead_letter_is_kept_and_retried,
    a_queue_is_controlled,
    limits_are_set_and_taken_away,
    groups_have_limits_of_their_own,
    schedules_come_and_go,
    flows_are_trees_chains_and_fans,
    events_come_as_they_happen,
    payloads_come_back_as_they_went,
    the_server_tells_of_itself,
    one_bad_job_of_a_batch_fails_alone,
    webhooks_are_added_and_removed,
]
