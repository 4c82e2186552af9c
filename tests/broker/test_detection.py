"""Section 21 of the scenarios: one port for every wire, told by its first bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.room import room
from tests.server.test_app import Secured
from tests.support.server import Server, free_ports
from tests.support.vibe import BOTH, Message, Reader, encoded, joined
from tests.support.wire import Wire as JobClient
from tests.support.wire import packed
from tests.wires.vibemq.corpus import each, lines, needed

from tandemq.server.doorway import SNIFF
from tandemq.wires.bunqueue.session import Session as JobSession
from tandemq.wires.sniff import Wire


@needed
@pytest.mark.parametrize("cut", [False, True], ids=["at once", "byte by byte"])
@each(lines("vectors/detect_vectors.jsonl"))
async def test_s_300_each_golden_beginning_opens_the_session_of_its_wire(vector, cut) -> None:
    async with room(Wire.JSON) as r:
        peer = r.worker()
        first = bytes.fromhex(vector["hex"])
        for piece in [first[n : n + 1] for n in range(len(first))] if cut else [first]:
            if not peer.transport.closing:
                peer.connection.data_received(piece)
        connection = peer.connection
        match vector["expect"]:
            case "http":
                assert peer.transport.written.startswith(b"HTTP/1.1 ")
                assert peer.transport.closing
            case "need-more":
                assert connection.door is not None
            case "vibemq-json" | "vibemq-binary-1.1":
                assert connection.is_broker
            case "bunqueue":
                assert isinstance(connection.session, JobSession)
                assert not connection.is_broker


async def test_s_301_three_wires_on_one_port_at_once() -> None:
    async with room(Wire.JSON) as r:
        worker, guests = r.worker(), [await r.guest(each_wire) for each_wire in BOTH]
        for n, guest in enumerate(guests):
            await guest.subscribe(f"to{n}")
        await worker.push("to0")
        await worker.push("to1")
        for guest in guests:
            assert len(await guest.delivered()) == 1
            await guest.publish("jobs", "m")
        assert [(await worker.pull("jobs"))["job"] is not None for _ in range(3)] == [1, 1, 0]


async def test_s_302_a_silent_peer_of_the_shared_port_is_left_alone() -> None:
    async with room(Wire.JSON) as r:
        silent = r.stranger()
        await r.pass_time(3600)
        assert silent.alive
        assert (await silent.connect())["type"] == "ConnectAck"


async def test_s_302_on_the_shared_port_the_time_runs_from_the_first_byte(wire: Wire) -> None:
    async with room(wire) as r:
        slow = r.stranger()
        await r.pass_time(60)
        slow.send_raw(encoded(wire, "Connect", "c")[:3])
        await r.pass_time(SNIFF - 1)
        assert slow.alive
        await r.pass_time(2)
        assert not slow.alive


@pytest.mark.parametrize(
    "verb", [b"GET", b"PUT", b"POST", b"HEAD", b"PATCH", b"DELETE", b"OPTIONS"]
)
async def test_s_303_an_http_request_is_answered_in_http_however_it_is_cut(verb: bytes) -> None:
    request = verb + b" / HTTP/1.1\r\nHost: x\r\n\r\n"
    for cut in range(1, 8):
        async with room(Wire.JSON) as r:
            peer = r.worker()
            for piece in (request[:cut], request[cut:]):
                if not peer.transport.closing:
                    peer.connection.data_received(piece)
            assert peer.transport.written.startswith(b"HTTP/1.1 ")
            assert peer.transport.closing


async def test_a_client_hello_is_closed_without_a_frame_however_it_is_cut() -> None:
    hello = bytes.fromhex("160301020001000001fc0303")
    for cut in range(1, 8):
        async with room(Wire.JSON) as r:
            peer = r.worker()
            for piece in (hello[:cut], hello[cut:]):
                if not peer.transport.closing:
                    peer.connection.data_received(piece)
            assert peer.transport.closing
            assert not peer.transport.written


@pytest.mark.parametrize("first", ["connect", "Connect", "CONNECT"])
async def test_types_are_answered_in_the_casing_of_the_first_frame(first: str) -> None:
    async with room(Wire.JSON) as r:
        peer = r.stranger()
        body = b'{"id":"c","type":"%s"}' % first.encode()
        peer.send_raw(len(body).to_bytes(4, "big") + body)
        await r.settle()
        answer = b'"connectAck"' if first == "connect" else b'"ConnectAck"'
        assert answer in bytes(peer.transport.written)


async def test_no_wire_is_taken_for_another_later(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        a.send_raw(packed({"cmd": "Ping", "reqId": "1"}))
        await r.settle()
        assert all(frame["type"] == "Error" for frame in a.read())
        assert (await b.ask("Ping", "k"))["type"] == "Pong"


@needed
def test_the_golden_beginnings_name_wires_that_the_tests_know() -> None:
    known = {vector["expect"] for vector in lines("vectors/detect_vectors.jsonl")}
    assert known == {"need-more", "http", "vibemq-json", "vibemq-binary-1.1", "bunqueue"}


# -- over sockets ----------------------------------------------------------------------------------


def test_s_304_inside_tls_the_wire_is_told_again(
    wire: Wire, new_server: Callable[..., Server], tmp_path: Path
) -> None:
    secured, reader = Secured(new_server, tmp_path).start(), Reader(wire)
    found: list[Message] = []
    with secured.connect() as a:
        a.sendall(encoded(wire, "Connect", "c") + encoded(wire, "Ping", "k"))
        while len(found) < 2:
            data = a.recv(1 << 16)
            assert data, "the server closed the connection"
            found += reader.feed(data)
    assert [frame["type"] for frame in found] == ["ConnectAck", "Pong"]


def test_another_port_serves_every_wire_too(new_server: Callable[..., Server]) -> None:
    (port,) = free_ports(1)
    server = new_server(environment={"TANDEMQ_BROKER_PORT": str(port)}).start()
    clients = [joined(each_port, each) for each_port in (port, server.port) for each in BOTH]
    for n, client in enumerate(clients):
        client.subscribe(f"q{n}")
        clients[n - 1].publish(f"q{n}", "m", n)
        client.expect("Deliver", "m", queue=f"q{n}", payload=n)
    with JobClient(port) as worker:
        assert worker.ping()
    for client in clients:
        client.close()
