"""Who is told of events, when, and what becomes of those who do not read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.offline import GatedStore, Peer, serving, turns, until

from tandemq.model.outcome import Event


def events(peer: Peer) -> list[tuple[str, str]]:
    """Type and job of the events that a connection was told of."""
    return [
        (told["event"]["eventType"], told["event"]["jobId"])
        for told in peer.read_others()
        if told.get("type") == "event"
    ]


async def test_a_subscriber_is_told_of_its_queue_in_order() -> None:
    async with serving() as runtime:
        listener, worker = Peer(runtime), Peer(runtime)
        await listener.do("SubscribeEvents", queue="q")
        await worker.push("other")
        id = await worker.push()
        token = (await worker.pull())["token"]
        await worker.do("ACK", id=id, token=token)
        await turns()
        assert events(listener) == [("pushed", id), ("pulled", id), ("completed", id)]


async def test_events_are_built_only_while_somebody_listens() -> None:
    async with serving() as runtime:
        listener, other = Peer(runtime), Peer(runtime)
        assert not runtime.engine.listening
        await listener.do("SubscribeEvents", queue="q")
        await other.do("SubscribeEvents", queue="q")
        await other.do("UnsubscribeEvents")
        assert runtime.engine.listening
        listener.leave()
        await turns()
        assert not runtime.engine.listening
        assert len(runtime.observers) == 0


async def test_what_happened_before_a_subscription_is_not_told() -> None:
    async with serving() as runtime:
        first, second = Peer(runtime), Peer(runtime)
        await first.do("SubscribeEvents", queue="q")
        reqs = second.send_all(
            [
                {"cmd": "PUSH", "queue": "q", "data": 1},
                {"cmd": "SubscribeEvents", "queue": "q"},
                {"cmd": "PUSH", "queue": "q", "data": 2},
                {"cmd": "UnsubscribeEvents"},
                {"cmd": "PUSH", "queue": "q", "data": 3},
            ]
        )
        answers = [await second.answer(req) for req in reqs]
        await turns()
        ids = [answers[n]["id"] for n in (0, 2, 4)]
        assert events(first) == [("pushed", id) for id in ids]
        assert events(second) == [("pushed", ids[1])]


async def test_an_event_is_told_when_what_it_tells_of_is_kept() -> None:
    store = GatedStore()
    async with serving(store) as runtime:
        listener, worker = Peer(runtime), Peer(runtime)
        await listener.do("SubscribeEvents", queue="q")
        store.close_gate()
        req = worker.send("PUSH", queue="q", data=1)
        await until(lambda: store.begun, "a batch")
        await turns()
        assert events(listener) == []
        assert not worker.has(req)
        store.open_gate()
        id = (await worker.answer(req))["id"]
        await until(lambda: events(listener) == [("pushed", id)], "the event")


async def test_what_could_not_be_kept_is_not_told() -> None:
    store = GatedStore()
    async with serving(store) as runtime:
        listener, worker = Peer(runtime), Peer(runtime)
        await listener.do("SubscribeEvents", queue="q")
        store.fail()
        assert (await worker.ask("PUSH", queue="q", data=1))["ok"] is False
        await turns()
        assert events(listener) == []
        store.recover()
        id = await worker.push()
        await until(lambda: events(listener) == [("pushed", id)], "the event")


async def test_a_listener_that_does_not_read_is_cut_and_the_others_are_served() -> None:
    async with serving(max_unread_bytes=4_096) as runtime:
        slow, quick, worker = Peer(runtime), Peer(runtime), Peer(runtime)
        for listener in (slow, quick):
            await listener.do("SubscribeEvents", queue="q")
        slow.transport.peer_reads = False
        for _ in range(60):
            await worker.push()
        await slow.closed()
        assert slow.transport.aborted
        await turns()
        assert len(events(quick)) == 60
        assert len(runtime.observers) == 1


async def test_others_may_look_on_too() -> None:
    async with serving() as runtime:
        worker = Peer(runtime)
        seen: list[Event] = []
        of_one: list[Event] = []
        look, look_at_one = seen.append, of_one.append
        runtime.observers.look_on(look)
        runtime.observers.look_on(look_at_one, "q")
        await worker.push("r")
        await worker.push("q")
        runtime.observers.look_away(look)
        runtime.observers.look_away(look_at_one)
        await worker.push("q")
        assert [event.queue for event in seen] == ["r", "q"]
        assert [event.queue for event in of_one] == ["q"]
        assert not runtime.engine.listening


async def test_data_are_told_as_they_were_sent() -> None:
    data: Any = {"deep": [1, None, {"x": "y"}]}
    async with serving() as runtime:
        listener, worker = Peer(runtime), Peer(runtime)
        await listener.do("SubscribeEvents", queue="q")
        id = (await worker.do("PUSH", queue="q", data=data, maxAttempts=1))["id"]
        token = (await worker.pull())["token"]
        await worker.do("FAIL", id=id, token=token, error="no")
        await turns()
        told = listener.read_others()[-1]["event"]
        assert (told["data"], told["error"], told["terminal"]) == (data, "no", True)


@pytest.mark.parametrize("way", ["leaves", "is cut", "listens no more"])
async def test_a_subscriber_that_goes_takes_nobody_elses_answer_with_it(way: str) -> None:
    """The event for it is in the same batch, before the answers of others."""
    store = GatedStore()
    async with serving(store) as server:
        gone, writer = Peer(server), Peer(server)
        await gone.do("SubscribeEvents", queue="q")
        store.close_gate()
        first = writer.send("PUSH", queue="q", data=1)
        await until(lambda: store.begun, "the batch")
        second = writer.send("PUSH", queue="q", data=2)
        await turns()
        if way == "listens no more":
            gone.send("UnsubscribeEvents")
        elif way == "leaves":
            gone.leave()
        else:
            gone.transport.abort()
        await turns()
        store.open_gate()
        for req in (first, second):
            assert (await writer.answer(req))["ok"]
        assert await writer.push()


async def test_a_look_that_fails_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: Event) -> None:
        raise ValueError("a bug")

    seen: list[Event] = []
    async with serving(GatedStore()) as server:
        server.observers.look_on(fail)
        server.observers.look_on(seen.append)
        peer = Peer(server)
        await peer.push()
        await peer.push()
    assert [event.type for event in seen if event.type == "pushed"] == ["pushed"] * 2
    assert caplog.messages == ["a bug in what looks at events"] * len(seen)
