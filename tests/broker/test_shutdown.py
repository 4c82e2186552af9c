"""Section 16 of the scenarios: how the server goes, and how a client does."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from tests.broker.room import room
from tests.support.patience import eventually
from tests.support.server import Server
from tests.support.vibe import Vibe, joined
from tests.support.wire import Lost

from tandemq.wires.sniff import Wire

REFUSED = ("SERVER_SHUTTING_DOWN", "Server is shutting down: try again later.")
GOODBYE = {"reason": "server_shutdown"}
NewServer = Callable[..., Server]


# -- the server ------------------------------------------------------------------------------------


async def test_s_220_every_client_is_told(wire: Wire) -> None:
    async with room(wire) as r:
        guests = await r.many(3)
        worker = r.worker()
        await worker.do("Ping")
        r.server.wind_down()
        for guest in guests:
            await guest.expect("Disconnect", headers=GOODBYE)
            assert guest.alive
        assert worker.read_others() == []


async def test_while_the_server_stops_nothing_new_is_taken_and_the_rest_goes_on(wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await a.subscribe("q")
        await p.publish("q", "m1", "m2")
        await p.publish("other", "waits")
        assert await a.delivered() == ["m1", "m2"]
        r.server.wind_down()
        for guest in (p, a):
            await guest.expect("Disconnect", headers=GOODBYE)
        assert await p.refused("Publish", "m3", queue="q", payload=1) == REFUSED
        assert await p.refused("Publish", "m4", queue="new", payload=1) == REFUSED
        assert "new" not in r.engine.queues
        await p.subscribe("other")
        a.ack("m1")
        assert (await a.ask("Ping", "k"))["type"] == "Pong"
        assert await a.waiting("other") == 1
        await p.silence()
        assert r.in_flight == 1


async def test_a_publish_that_waits_for_room_is_let_in_while_the_server_stops(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await p.create("q", maxQueueSize=1, overflowStrategy=2)
        await p.publish("q", "m1")
        p.send("Publish", "m2", queue="q", payload=1)
        await r.settle()
        r.server.wind_down()
        await p.expect("Disconnect", headers=GOODBYE)
        await r.pass_time(8)
        await p.expect("Error", "m2", errorCode="QUEUE_FULL", errorMessage="*")
        assert await a.waiting("q") == 1


@pytest.fixture
def holding(new_server: NewServer, wire: Wire) -> Callable[[float], tuple[Server, Vibe]]:
    """Makes a server that waits so long (s) when it stops, and a client that holds m1 of q."""

    def make(wait: float) -> tuple[Server, Vibe]:
        server = new_server(environment={"TANDEMQ_SHUTDOWN_TIMEOUT": f"{wait:g}"}).start()
        client = joined(server.port, wire)
        client.subscribe("q")
        client.publish("q", "m1")
        assert client.delivered(1) == ["m1"]
        return server, client

    return make


def left(server: Server, wire: Wire, queue: str = "q") -> list[str]:
    """The ids of what waits in a queue after the next start."""
    server.start()
    with joined(server.port, wire) as client:
        count = (client.ask("QueueInfo", queue=queue).get("payload") or {"messageCount": 0})[
            "messageCount"
        ]
        client.subscribe(queue)
        found = client.delivered(count)
        client.quiet()
        return found


def refused(server: Server, wire: Wire) -> bool:
    try:
        with Vibe(server.port, wire, timeout=1):
            return False
    except Lost:
        return True


def test_s_221_and_223_acknowledgments_are_read_while_the_server_waits(
    holding: Callable[[float], tuple[Server, Vibe]], wire: Wire
) -> None:
    server, client = holding(600)
    with client:
        server.process.send_signal(signal.SIGTERM)
        client.expect("Disconnect", headers=GOODBYE)
        eventually(lambda: refused(server, wire), "new connections are refused")
        said = client.ask("Publish", "m2", queue="q", payload=1)
        assert (said["errorCode"], said["errorMessage"]) == REFUSED
        assert server.running()
        client.ack("m1")
        assert server.process.wait(20) == 0
    assert left(server, wire) == []


def test_s_222_the_wait_has_an_end(
    holding: Callable[[float], tuple[Server, Vibe]], wire: Wire
) -> None:
    server, client = holding(0.2)
    with client:
        assert server.stop() == 0
        client.ended()
    assert left(server, wire) == ["m1"]


def test_a_second_signal_ends_the_wait(
    holding: Callable[[float], tuple[Server, Vibe]], wire: Wire
) -> None:
    server, client = holding(600)
    with client:
        server.process.send_signal(signal.SIGTERM)
        client.expect("Disconnect", headers=GOODBYE)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
    assert left(server, wire) == ["m1"]


# -- the client ------------------------------------------------------------------------------------


async def test_s_225_a_client_that_says_goodbye_gives_back_and_is_not_answered(wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await a.subscribe("q")
        await p.publish("q", "m1", "m2")
        assert await a.delivered() == ["m1", "m2"]
        a.send("Disconnect", "d1")
        await a.closed()
        assert a.unread == []
        await r.settle()
        assert await p.waiting("q") == 2
        b = await r.guest()
        await b.subscribe("q")
        assert await b.delivered() == ["m1", "m2"]
        assert r.counters.interrupted == 0


async def test_a_connection_that_breaks_charges_only_the_oldest_message(wire: Wire) -> None:
    async with room(wire) as r:
        p, a = await r.many(2)
        await a.subscribe("q", "other")
        await p.publish("q", "m1", "m2")
        await p.publish("other", "m3")
        await a.break_off()
        assert r.counters.interrupted == 2  # one of each subscription
        assert (await p.waiting("q"), await p.waiting("other")) == (2, 1)
