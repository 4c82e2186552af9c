"""Events of a queue: told in order, told of a gap, and of an end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.peer import Fields, Link, Peer, until

from tandemq.client import events
from tandemq.client.errors import Closed, ConnectFailed, NotAuthorized
from tandemq.client.events import GAP, Events
from tandemq.client.url import target


def happened(n: int, **extra: Any) -> Fields:
    event = {"eventType": "pushed", "queue": "q", "jobId": f"j{n}", "timestamp": 1.0e12, **extra}
    return {"type": "event", "event": event}


def tell(link: Link, *numbers: int) -> None:
    for n in numbers:
        link.send(happened(n))


def listening(peer: Peer) -> Events:
    return Events(target(peer.url, reconnect_delay=0.01), "q")


async def test_events_come_in_order_with_what_they_say() -> None:
    async with Peer() as peer, listening(peer) as happening:
        assert peer.links[0].commands == ["Hello", "SubscribeEvents"]
        peer.links[0].send(happened(1, data={"v": 1}))
        tell(peer.links[0], 2, 3)
        first = await anext(happening)
        assert (first.type, first.queue, first.job_id) == ("pushed", "q", "j1")
        assert first.fields == {"data": {"v": 1}}
        assert [(await anext(happening)).job_id for _ in range(2)] == ["j2", "j3"]


async def test_a_lost_connection_comes_back_and_tells_of_the_gap() -> None:
    async with Peer() as peer, listening(peer) as happening:
        tell(peer.links[0], 1)
        assert (await anext(happening)).job_id == "j1"
        peer.cut()
        gap = await anext(happening)
        assert (gap.type, gap.job_id) == (GAP, None)
        assert peer.links[1].commands == ["Hello", "SubscribeEvents"]
        tell(peer.links[1], 2)
        assert (await anext(happening)).job_id == "j2"


async def test_a_connection_that_cannot_come_back_is_an_error() -> None:
    async with Peer() as peer, listening(peer) as happening:
        peer.answer = lambda fields: {"ok": False, "error": "Not authenticated"}
        waiting = asyncio.create_task(anext(happening))
        peer.cut()
        with pytest.raises(NotAuthorized):
            await waiting


async def test_no_way_to_the_server_is_told_at_once() -> None:
    async with Peer() as peer:
        pass
    with pytest.raises(ConnectFailed):
        async for _ in listening(peer):
            pass


async def test_closing_ends_the_loop() -> None:
    async with Peer() as peer:
        happening = listening(peer)
        seen: list[events.Event] = []
        waiting = asyncio.create_task(_collect(happening, seen))
        await until(lambda: peer.links and len(peer.links[0].commands) == 2, "it listens")
        tell(peer.links[0], 1)
        await until(lambda: seen, "it was told")
        await happening.close()
        await waiting
        assert [event.job_id for event in seen] == ["j1"]
        with pytest.raises(Closed):
            await happening.__aenter__()


async def _collect(happening: Events, seen: list[events.Event]) -> None:
    async for event in happening:
        seen.append(event)


async def test_a_reader_that_is_slow_is_not_read_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST", 10)
    async with Peer() as peer, listening(peer) as happening:
        big = "x" * 200_000
        for n in range(200):
            peer.links[0].send(happened(n, data=big))
        await asyncio.sleep(0.1)
        assert len(happening._waiting) < 100, "the rest is not read"
        assert [(await anext(happening)).job_id for _ in range(200)] == [
            f"j{n}" for n in range(200)
        ]
