"""A program as users write it, for type checkers: each line that is marked must be refused."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_type

from tandemq import AsyncClient, Client
from tandemq.client import job, sync
from tandemq.client.events import Event
from tandemq.client.flow import Step


async def asynchronous(tq: AsyncClient) -> None:
    q = tq.queue("mail")
    added = await q.add("send", {"to": 1}, delay=timedelta(seconds=1), priority=3)
    assert_type(added, job.Job)
    assert_type(await q.get("id"), job.Job | None)
    assert_type(await q.jobs("waiting", limit=3), list[job.Job])
    assert_type(await q.counts(), dict[str, int])
    assert_type(await added.state(), str)
    assert_type(await tq.flows.add(Step("q", "a")), job.Job)
    async for event in q.events():
        assert_type(event, Event)
    await q.add("send", prioritty=3)  # type: ignore[call-arg]
    await q.add("send", priority="high")  # type: ignore[arg-type]
    await q.jobs("wating")  # type: ignore[arg-type]


def blocking(tq: Client) -> None:
    q = tq.queue("mail")
    added = q.add("send", {"to": 1}, delay=timedelta(seconds=1), priority=3)
    assert_type(added, sync.Job)
    assert_type(q.get("id"), sync.Job | None)
    assert_type(q.jobs("waiting", limit=3), list[sync.Job])
    assert_type(q.counts(), dict[str, int])
    assert_type(added.state(), str)
    assert_type(tq.flows.add(Step("q", "a")), sync.Job)
    assert_type(q.limits.set_rate(3, timedelta(seconds=1)), None)
    for event in q.events():
        assert_type(event, Event)
    q.add("send", prioritty=3)  # type: ignore[call-arg]
    q.add("send", priority="high")  # type: ignore[arg-type]
    q.jobs("wating")  # type: ignore[arg-type]
