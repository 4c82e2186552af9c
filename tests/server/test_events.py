"""Who is told of events, when, and what becomes of those who do not read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.offline import GatedStore, Peer, serving, turns, until

from tandemq.model.outcome import Event, Remark


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


REMARKS: list[tuple[str, dict[str, Any], list[tuple[str, dict[str, Any]]]]] = [
    ("Pause", {}, [("queue:paused", {})]),
    ("Resume", {}, [("queue:resumed", {})]),
    ("Drain", {}, [("queue:drained", {"count": 0})]),
    ("Clean", {"grace": 0}, [("queue:cleaned", {"state": "waiting", "count": 0})]),
    ("Obliterate", {}, [("queue:obliterated", {})]),
    ("RateLimit", {"limit": 5, "duration": 9}, [("ratelimit:set", {"max": 5, "duration": 9})]),
    ("RateLimitClear", {}, [("ratelimit:cleared", {})]),
    ("SetConcurrency", {"limit": 5}, [("concurrency:set", {"concurrency": 5})]),
    ("ClearConcurrency", {}, [("concurrency:cleared", {})]),
    (
        "SetStallConfig",
        {"config": {"maxStalls": 2, "odd": 1}},
        [("config:stall-changed", {"config": {"maxStalls": 2}})],
    ),
    (
        "SetDlqConfig",
        {"config": {"maxEntries": 2}},
        [("config:dlq-changed", {"config": {"maxEntries": 2}})],
    ),
    (
        "PUSHB",
        {"jobs": [{"data": 1}, {"data": 2}]},
        [("batch:pushed", {"total": 2, "inserted": 2, "duplicates": 0})],
    ),
    (
        "PUSHB",
        {"jobs": [{"data": 1, "uniqueKey": "k"}, {"data": 2, "uniqueKey": "k"}]},
        [("batch:pushed", {"total": 2, "inserted": 1, "duplicates": 1})],
    ),
    ("RetryDlq", {}, [("dlq:retry-all", {"count": 0})]),
    ("RetryDlq", {"dryRun": True}, []),
    ("PurgeDlq", {}, [("dlq:purged", {"count": 0})]),
    ("IsPaused", {}, []),
]


@pytest.mark.parametrize(("cmd", "fields", "told"), REMARKS)
async def test_who_looks_at_the_server_is_told_what_was_done_to_a_queue(
    cmd: str, fields: dict[str, Any], told: list[tuple[str, dict[str, Any]]]
) -> None:
    async with serving() as runtime:
        seen: list[Event | Remark] = []
        runtime.observers.survey(seen.append)
        await Peer(runtime).do(cmd, queue="q", **fields)
        await turns()
        remarks = [(r.name, r.queue, r.fields) for r in seen if isinstance(r, Remark)]
    assert remarks == [(name, "q", {"queue": "q", **more}) for name, more in told]


async def test_who_looks_at_the_server_is_told_what_becomes_of_a_job() -> None:
    async with serving() as runtime:
        seen: list[Event | Remark] = []
        runtime.observers.survey(seen.append)
        peer = Peer(runtime)
        id = await peer.push(delay=60_000)
        await peer.do("ChangePriority", id=id, priority=3)
        await peer.do("Update", id=id, data=2)
        await peer.do("Promote", id=id)
        await peer.do("PULLB", queue="q", count=5)
        await peer.do("FAIL", id=id, error="x", unrecoverable=True)
        await peer.do("RetryDlq", queue="q", jobId=id)
        await peer.do("Discard", id=id)
        await turns()
        job = {"queue": "q", "jobId": id}
        assert [(r.name, r.fields) for r in seen if isinstance(r, Remark)] == [
            ("job:priority-changed", {**job, "priority": 3}),
            ("job:data-updated", job),
            ("job:promoted", {"jobId": id}),
            ("batch:pulled", {"queue": "q", "count": 1}),
            ("dlq:added", {**job, "reason": "max_attempts_exceeded"}),
            ("dlq:retried", {**job, "count": 1}),
            ("dlq:added", {**job, "reason": "unknown"}),
            ("job:discarded", job),
        ]
        runtime.observers.end_survey(seen.append)
        assert (runtime.engine.remarking, runtime.engine.listening) == (False, False)


async def test_who_looks_at_the_server_is_told_of_schedules_workers_and_webhooks() -> None:
    async with serving() as runtime:
        seen: list[Event | Remark] = []
        look = seen.append
        runtime.observers.survey(look)
        peer = Peer(runtime)
        for _ in range(2):
            await peer.do("Cron", name="c", queue="q", repeatEvery=60_000)
        await peer.do("CronDelete", name="c")
        worker = (await peer.do("RegisterWorker", name="w", queues=["q"]))["data"]["workerId"]
        await peer.do("Heartbeat", id=worker)
        await peer.do("UnregisterWorker", workerId=worker)
        url, events = "http://h.example", ["job.failed"]
        hook = (await peer.do("AddWebhook", url=url, events=events))["data"]["webhookId"]
        await peer.do("SetWebhookEnabled", id=hook, enabled=False)
        await peer.do("RemoveWebhook", webhookId=hook)
        await turns()
    remarks = [r for r in seen if isinstance(r, Remark)]
    assert [r.name for r in remarks] == [
        "cron:created", "cron:updated", "cron:deleted", "worker:connected", "worker:heartbeat",
        "worker:disconnected", "webhook:added", "webhook:disabled", "webhook:removed",
    ]  # fmt: skip
    named = {"name": "w", "queues": ["q"], "hostname": "unknown", "pid": 0}
    assert remarks[0].fields.keys() == {"name", "queue", "every", "nextRun"}
    assert remarks[3].fields == {"workerId": worker, **named}
    assert remarks[6].fields == {"id": hook, "url": url, "events": ("job.failed",)}


async def test_nothing_is_remarked_while_nobody_looks_at_the_server() -> None:
    async with serving() as runtime:
        listener, peer = Peer(runtime), Peer(runtime)
        await listener.do("SubscribeEvents", queue="q")
        await peer.do("Pause", queue="q")
        await turns()
        assert len(events(listener)) == 1
