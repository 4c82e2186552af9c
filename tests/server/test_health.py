"""Whether a server says that it is well, and its figures."""

from __future__ import annotations

import asyncio
import re

import pytest
from tests.server.letters import Correspondent
from tests.server.offline import GatedStore, Peer, serving, turns, until

from tandemq.engine.pressure import Level
from tandemq.model.health import Status
from tandemq.server.health import figures, health
from tandemq.server.meter import now_ms
from tandemq.server.runtime import Runtime

MANY = 1_000_000  # bytes of memory for messages: enough for nobody to be near it by chance


def state(runtime: Runtime) -> tuple[Status, bool]:
    seen = health(runtime, now_ms())
    return seen.status, seen.is_healthy


async def test_a_fresh_server_is_well_and_tells_no_reason() -> None:
    async with serving() as runtime:
        seen = health(runtime, 1_771_410_600_000)
    assert (seen.status, seen.is_healthy, seen.reasons) == (Status.HEALTHY, True, ())
    assert seen.timestamp == "2026-02-18T10:30:00Z"
    assert seen.memory_usage_mb > 0


@pytest.mark.parametrize(
    ("share", "level", "status"),
    [
        (0.5, Level.CALM, Status.HEALTHY),
        (0.81, Level.SLOW, Status.DEGRADED),
        (0.91, Level.HELD, Status.UNHEALTHY),
        (0.96, Level.FULL, Status.UNHEALTHY),
    ],
)
async def test_what_is_stored_decides(share: float, level: Level, status: Status) -> None:
    async with serving(max_memory=MANY) as runtime:
        engine = runtime.engine
        engine.pressure.grow(engine, int(MANY * share))
        assert engine.pressure.level is level
        assert state(runtime) == (status, status is not Status.UNHEALTHY)
        told = " ".join(health(runtime, now_ms()).reasons)
        assert (f"{share:.0%}" in told) == (status is not Status.HEALTHY)
        engine.pressure.grow(engine, -int(MANY * share))
        assert state(runtime) == (Status.HEALTHY, True)


async def test_a_store_that_cannot_be_written_is_unhealthy_until_it_can() -> None:
    store = GatedStore()
    async with serving(store) as runtime:
        peer = Peer(runtime)
        store.fail("no space left")
        assert not (await peer.ask("PUSH", queue="q", data=1))["ok"]
        assert state(runtime) == (Status.UNHEALTHY, False)
        assert "no space left" in health(runtime, now_ms()).reasons[0]
        store.recover()
        await peer.push()
        assert state(runtime) == (Status.HEALTHY, True)


async def test_a_server_that_stops_is_unhealthy() -> None:
    async with serving() as runtime:
        runtime.wind_down()
        assert state(runtime) == (Status.UNHEALTHY, False)


async def test_figures_follow_what_happens() -> None:
    async with serving() as runtime:
        publisher = await Correspondent(runtime).connect()
        reader = await Correspondent(runtime).connect()
        for n in range(3):
            await publisher.do("publish", id=f"m{n}", queue="q", payload=n)
        seen = figures(runtime, now_ms())
        assert (seen.total_messages_published, seen.total_messages_delivered) == (3, 0)
        assert (seen.in_flight_messages, seen.active_queues, seen.active_connections) == (0, 1, 2)
        await reader.do("subscribe", queue="q")
        reader.send("ack", id="m0")
        await turns()
        await publisher.do("subscribe")  # which names no queue
        seen = figures(runtime, now_ms())
        assert (seen.total_messages_delivered, seen.total_messages_acknowledged) == (3, 1)
        assert (seen.in_flight_messages, seen.total_errors) == (2, 1)
        assert seen.total_connections_accepted == 2
        assert seen.memory_usage_bytes > 2**20
        reader.transport.close()
        await until(lambda: len(runtime.connections) == 1, "one connection is left")
        assert figures(runtime, now_ms()).in_flight_messages == 0


async def test_copies_of_a_fan_out_are_in_flight_one_by_one() -> None:
    async with serving(default_mode="FanOutWithAck") as runtime:
        readers = [await Correspondent(runtime).connect() for _ in range(3)]
        for reader in readers:
            await reader.do("subscribe", queue="q")
        await readers[0].do("publish", id="m", queue="q", payload=1)
        assert health(runtime, now_ms()).in_flight_messages == 3
        readers[1].send("ack", id="m")
        await turns()
        seen = figures(runtime, now_ms())
        assert (seen.in_flight_messages, seen.total_messages_delivered) == (2, 3)


async def test_jobs_count_as_well() -> None:
    async with serving() as runtime:
        peer = Peer(runtime)
        await peer.push(maxAttempts=1)
        job = await peer.pull()
        assert health(runtime, now_ms()).in_flight_messages == 1
        await peer.do("FAIL", id=job["job"]["id"], token=job["token"], error="no")
        seen = figures(runtime, now_ms())
        assert (seen.in_flight_messages, seen.total_dead_lettered) == (0, 1)


async def test_connections_that_find_no_place_are_counted() -> None:
    async with serving(max_connections=1) as runtime:
        peer = Peer(runtime)
        await peer.do("Ping")  # whoever has said something is not sent away for another
        Peer(runtime)
        seen = figures(runtime, now_ms())
        assert (seen.total_connections_accepted, seen.total_connections_rejected) == (1, 1)


async def test_uptime_is_a_span_as_the_reference_writes_it() -> None:
    async with serving() as runtime:
        before = figures(runtime, now_ms()).uptime
        await asyncio.sleep(0)
        after = figures(runtime, now_ms()).uptime
    assert re.fullmatch(r"(\d+\.)?\d\d:\d\d:\d\d(\.\d{7})?", after)
    assert before < after
