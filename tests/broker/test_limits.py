"""Section 15 of the scenarios: how many frames, and how many connections."""

from __future__ import annotations

from tests.broker.room import room
from tests.server.offline import Peer
from tests.support.vibe import encoded

from tandemq.wires.sniff import Wire

LIMITED = ("RATE_LIMITED", "Message rate limit exceeded.")


async def test_s_210_frames_above_the_rate_are_refused_and_the_connection_stays(wire) -> None:
    async with room(wire, messages_per_second=5) as r:
        a = await r.guest()  # its Connect is one of them
        for n in range(4):
            await a.publish("q", f"m{n}")
        assert await a.refused("Publish", "m4", queue="q", payload=1) == LIMITED
        await r.pass_time(1)
        await a.publish("q", "m5")
        assert await a.waiting("q") == 5


async def test_s_211_acknowledgments_and_pings_are_exempt(wire: Wire) -> None:
    async with room(wire, messages_per_second=5) as r:
        a = await r.guest()
        await a.subscribe("q")
        worker = r.worker()
        await worker.do("PUSHB", queue="q", jobs=[{"data": n} for n in range(100)])
        ids = await a.delivered()
        assert len(ids) == 100
        a.ack(*ids)
        for n in range(100):
            assert (await a.ask("Ping", f"k{n}"))["type"] == "Pong"
        assert (r.in_flight, r.counters.acknowledged) == (0, 100)


async def test_s_212_an_address_that_connects_too_often_is_closed_without_a_frame(wire) -> None:
    async with room(wire, connections_per_minute=3) as r:
        for _ in range(3):
            await (await r.guest()).break_off()  # a place is not given back
        fourth = r.stranger()
        await fourth.closed()
        assert not fourth.transport.written
        assert r.server.crowd.rejected == 1
        other = r.stranger(address="10.0.0.2")
        assert (await other.connect())["type"] == "ConnectAck"
        await r.pass_time(59)
        await r.stranger().closed()
        await r.pass_time(2)
        await r.guest()
        assert r.server.crowd.rejected == 2
        assert r.server.crowd.accepted == 5


async def test_s_212_clients_of_the_job_queue_are_counted_too() -> None:
    async with room(Wire.JSON, connections_per_minute=2) as r:
        for _ in range(2):
            await Peer(r.server).do("Ping")
        late = Peer(r.server)
        await late.closed()
        assert not late.transport.written


async def test_s_213_above_the_limit_a_connection_is_told_and_closed(wire: Wire) -> None:
    async with room(wire, max_connections=2) as r:
        a, _ = await r.many(2)
        c = r.stranger()
        c.send("Connect", "c")
        await c.closed()
        (told,) = c.unread
        assert (told["type"], told["errorCode"], told["errorMessage"]) == (
            "Error",
            "CONNECTION_LIMIT",
            "Maximum connections reached.",
        )
        assert r.server.crowd.rejected == 1
        await a.break_off()
        await r.guest()


async def test_s_213_one_that_says_nothing_is_closed_soon(wire: Wire) -> None:
    async with room(wire, max_connections=1) as r:
        await r.guest()
        silent = r.worker()
        await r.pass_time(0.9)
        assert not silent.transport.closing
        await r.pass_time(0.2)
        assert silent.transport.closing


async def test_s_214_without_a_limit_ten_thousand_frames_in_a_second_pass(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        a.send_raw(b"".join(encoded(wire, "Ping", f"k{n}") for n in range(10_000)))
        while len(a.read()) < 10_000:
            await r.settle()
        assert [frame["id"] for frame in a.unread] == [f"k{n}" for n in range(10_000)]
        assert {frame["type"] for frame in a.unread} == {"Pong"}


async def test_without_a_limit_an_address_may_connect_as_often_as_it_likes(wire: Wire) -> None:
    async with room(wire) as r:
        for _ in range(200):
            await (await r.guest()).break_off()
        assert r.server.crowd.rejected == 0
