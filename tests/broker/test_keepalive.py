"""Section 14 of the scenarios: who is silent, and who does not read."""

from __future__ import annotations

import pytest
from tests.broker.room import room

from tandemq.wires.sniff import Wire

IDLE = {"idle_timeout": 90.0}


async def test_s_200_a_pong_echoes_the_id(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        a.send("Ping", "k1")
        await a.expect("Pong", "k1")


async def test_who_is_silent_for_too_long_is_told_and_closed_and_gives_back(wire: Wire) -> None:
    async with room(wire, **IDLE, ack_timeout=1000.0) as r:
        p, a, b = await r.many(3)
        await a.subscribe("q")
        await p.publish("q", "m")
        await b.subscribe("q")
        for _ in range(2):
            await r.pass_time(44)
            for guest in (p, b):
                guest.send("Ping", "k")
        assert a.alive
        await r.pass_time(3)
        await a.closed()
        assert a.read()[-1]["headers"] == {"reason": "keepalive_timeout"}
        assert (p.alive, b.alive) == (True, True)
        assert await b.delivered() == ["m"]


@pytest.mark.parametrize("kind", ["Ack", "Ping", "Publish", "Subscribe", "ListQueues"])
async def test_s_202_any_frame_is_a_sign_of_life(wire: Wire, kind: str) -> None:
    async with room(wire, **IDLE) as r:
        a = await r.guest()
        for _ in range(5):
            await r.pass_time(80)
            assert a.alive
            a.send(kind, "x", queue=None if kind in ("Ack", "Ping", "ListQueues") else "q")
        await r.pass_time(91)
        assert not a.alive


async def test_what_is_delivered_is_no_sign_of_life(wire: Wire) -> None:
    async with room(wire, **IDLE) as r:
        p, a = await r.many(2)
        await a.subscribe("q")
        for n in range(10):
            await p.publish("q", f"m{n}")
            await r.pass_time(10)
        assert not a.alive


async def test_the_limit_can_be_turned_off(wire: Wire) -> None:
    async with room(wire, idle_timeout=0) as r:
        a = await r.guest()
        await r.pass_time(3600)
        assert a.alive


async def test_a_worker_of_the_job_queue_may_be_silent_for_ever(wire: Wire) -> None:
    async with room(wire, **IDLE) as r:
        worker = r.worker()
        await worker.do("Ping")
        await r.pass_time(3600)
        assert not worker.transport.closing


async def test_who_does_not_read_is_passed_over_and_cut_in_the_end(wire: Wire) -> None:
    async with room(wire, slow_timeout=30.0, ack_timeout=1000.0) as r:
        p, a, b = await r.many(3)
        await a.subscribe("q")
        await b.subscribe("q")
        a.transport.peer_reads = False
        large = "x" * 800_000
        ids = [f"m{n}" for n in range(6)]
        await p.publish("q", *ids, payload=large)
        assert a.connection.stuck
        others = await b.delivered()
        await r.pass_time(29)
        assert a.alive
        assert r.counters.errors == 0
        await b.silence()
        await r.pass_time(2)
        assert a.transport.aborted
        assert r.counters.errors == 1
        assert sorted(others + await b.delivered()) == ids  # nothing that it held is lost


async def test_who_reads_again_in_time_stays(wire: Wire) -> None:
    async with room(wire, slow_timeout=30.0, ack_timeout=1000.0) as r:
        p, a = await r.many(2)
        await a.subscribe("q")
        a.transport.peer_reads = False
        ids = [f"m{n}" for n in range(6)]
        for id in ids:
            p.send("Publish", id, queue="q", payload="x" * 800_000)
            await r.settle()
        assert a.connection.stuck
        await r.pass_time(29)
        a.transport.read_all()
        await r.pass_time(60)
        assert a.alive
        assert await a.delivered() == ids
