"""What is told from time to time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.server.offline import GatedStore, Peer, serving, until

from tandemq.server import pulse
from tandemq.server.census import taken
from tandemq.server.feed import SSE, Wants
from tandemq.server.pulse import counts_of, snapshot
from tandemq.server.telling import as_sse


class Reader:
    """Keeps what it is told, by name."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, data: bytes) -> None:
        self.text += data.decode()

    def told(self, name: str) -> list[dict[str, Any]]:
        parts = (part.split("\n") for part in self.text.split("\n\n"))
        lines = [part for part in parts if f"event: {name}" in part]
        return [json.loads(part[-1].removeprefix("data: ")) for part in lines]


async def test_a_snapshot_has_all_sums_and_those_of_some_queues() -> None:
    async with serving(metrics_max_queues=1) as runtime:
        peer = Peer(runtime)
        await peer.push("a", priority=2)
        await peer.push("b", delay=60_000)
        await peer.do("Pause", queue="a")
        await peer.do("RegisterWorker", name="w", queues=["a"])
        await peer.do("Cron", name="c", queue="a", repeatEvery=60_000)
        told = snapshot(runtime, taken(runtime.engine, 1))
    assert (told["waiting"], told["delayed"], told["totalPushed"]) == (1, 1, 2)
    assert told["queues"] == {
        "a": {"waiting": 1, "active": 0, "delayed": 0, "dlq": 0, "paused": True}
    }
    assert (told["workers"], told["cronJobs"]) == ({"total": 1, "active": 1}, 1)
    assert told.keys() == {
        "waiting", "active", "delayed", "completed", "dlq", "totalPushed", "totalCompleted",
        "totalFailed", "pushPerSec", "pullPerSec", "uptime", "queues", "workers", "cronJobs",
    }  # fmt: skip


async def test_who_looks_on_hears_that_the_server_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "BEAT", 0.01)
    async with serving(GatedStore()) as runtime:
        reader, wants = Reader(), Wants(as_sse)
        runtime.feed.join(reader, wants)
        with runtime.feed.place(SSE):
            await until(lambda: ":heartbeat\n\n" in reader.text, "a sign of life")
            assert len(reader.told("stats:snapshot")) >= 6
            health = reader.told("health:status")[0]
            assert (health["ok"], health["connections"]) == (True, {"sse": 1})
            assert health["memory"].keys() == {"rss", "heapUsed"}
            (storage,) = reader.told("storage:status")
            assert (storage["diskFull"], storage["collections"]["jobIndex"]) == (False, 0)
        runtime.feed.leave(reader, wants)
        before = reader.text
        await until(lambda: runtime.feed._pulse._task is None, "the end of the beat")
        assert reader.text == before


async def test_counts_of_a_queue_that_is_gone_are_noughts() -> None:
    async with serving() as runtime:
        await Peer(runtime).push("q", priority=1)
        assert counts_of("q", runtime.engine.queues["q"])["prioritized"] == 1
    assert set(counts_of("x", None).values()) == {"x", 0}
