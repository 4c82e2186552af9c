"""One socket's limits: half frames, unread output, and who goes when there are too many."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from tests.server.offline import Peer, serving, turns, until
from tests.support.wire import packed

from tandemq.server import connections
from tandemq.server.connections import Connection

PING = packed({"cmd": "Ping", "reqId": "p"})


# -- half-open peers -----------------------------------------------------------------------------


async def test_the_kernel_looks_whether_a_silent_peer_is_still_there() -> None:
    async with serving() as server:
        connection = Connection(server, server.next_id())
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(lambda: connection, "127.0.0.1", 0)
        async with listener:
            _, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
            await until(lambda: server.connections, "the connection")
            taken = connection.transport.get_extra_info("socket")
            assert taken.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            writer.close()
            await until(lambda: not server.connections, "the end of the connection")


# -- half frames ---------------------------------------------------------------------------------


async def test_a_frame_that_is_never_finished_ends_the_connection() -> None:
    async with serving(half_frame_timeout=0.02) as server:
        peer = Peer(server)
        peer.send_raw(PING[:3])
        await peer.closed()
        assert peer.transport.aborted
        await until(lambda: not server.connections, "the server to forget it")


async def test_dribbling_does_not_prolong_the_time_of_a_frame() -> None:
    async with serving(half_frame_timeout=0.1) as server:
        peer = Peer(server)
        peer.send_raw((1_000_000).to_bytes(4, "big") + b"\x81")
        timer = peer.connection._half_frame
        assert timer is not None
        for _ in range(50):
            peer.send_raw(b"\0")
            assert peer.connection._half_frame is timer
        end = asyncio.get_running_loop().time() + 20
        while not peer.transport.closing:
            assert asyncio.get_running_loop().time() < end
            peer.send_raw(b"\0")
            await asyncio.sleep(0.001)
        assert peer.transport.aborted


async def test_every_frame_has_its_own_time() -> None:
    async with serving(half_frame_timeout=60) as server:
        peer = Peer(server)
        peer.send_raw(PING[:5])
        first = peer.connection._half_frame
        peer.send_raw(PING[5:] + PING[:2])
        second = peer.connection._half_frame
        assert first is not None
        assert first.cancelled()
        assert second is not None
        assert second is not first
        peer.send_raw(PING[2:])
        assert second.cancelled()
        assert peer.connection._half_frame is None


async def test_a_silent_connection_is_never_cut() -> None:
    async with serving(half_frame_timeout=0.01) as server:
        silent, other = Peer(server), Peer(server)
        silent.send_raw(PING)
        for _ in range(20):
            await other.do("Ping")
            await asyncio.sleep(0.002)
        assert not silent.transport.closing
        assert silent.connection._half_frame is None


async def test_a_lost_connection_leaves_no_timer() -> None:
    async with serving(half_frame_timeout=60) as server:
        peer = Peer(server)
        peer.send_raw(PING[:5])
        timer = peer.connection._half_frame
        peer.leave()
        await turns()
        assert timer is not None
        assert timer.cancelled()


# -- output that nobody reads --------------------------------------------------------------------


async def test_a_peer_that_does_not_read_is_read_no_further_until_it_does() -> None:
    async with serving(max_unread_bytes=1 << 30) as server:
        peer, other = Peer(server), Peer(server)
        await other.push(jobId="large", name="x" * 200, tags=["x" * 100_000])
        peer.transport.peer_reads = False
        for _ in range(connections.HIGH_WATER // 100_000 + 2):
            peer.send("GetJob", id="large")
            await turns(2)
        assert peer.connection.stuck
        assert not peer.transport.reading
        written = len(peer.transport.written)
        late = peer.send("Ping")
        await turns(10)
        assert not peer.has(late)
        assert len(peer.transport.written) == written
        peer.transport.read_all()
        assert (await peer.answer(late))["ok"]
        assert peer.transport.reading
        assert (await other.ask("Ping"))["ok"]


async def test_a_peer_that_leaves_too_much_unread_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(max_unread_bytes=200_000) as server:
        peer, other = Peer(server), Peer(server)
        await other.push(jobId="large", tags=["x" * 150_000])
        peer.transport.peer_reads = False
        for _ in range(2):
            peer.send("GetJob", id="large")
            await turns()
            assert not peer.transport.closing
        peer.send("GetJob", id="large")  # what was left unread by now is too much
        await turns()
        assert peer.transport.aborted
        assert "bytes unread" in caplog.text
        assert peer.connection.id not in server.connections
        assert (await other.ask("Ping"))["ok"]


async def test_the_answers_of_one_turn_are_one_write() -> None:
    async with serving() as server:
        peer = Peer(server)
        writes: list[int] = []
        write = peer.transport.write

        def counted(data: Any) -> None:
            writes.append(len(data))
            write(data)

        peer.transport.write = counted  # type: ignore[method-assign]
        reqs = peer.send_all([{"cmd": "Ping"}] * 100)
        await peer.answer(reqs[-1])
        assert len(writes) == 1


async def test_nothing_is_written_to_a_connection_that_is_closing() -> None:
    async with serving() as server:
        peer = Peer(server)
        peer.send("Ping")
        peer.transport.closing = True  # before the turn ends
        await turns()
        assert not peer.transport.written
        peer.connection.close()
        peer.transport.closing = False


# -- too many connections ------------------------------------------------------------------------


async def test_above_the_limit_a_connection_is_refused_in_words() -> None:
    async with serving(max_connections=3) as server:
        peers = [Peer(server) for _ in range(3)]
        for peer in peers:
            await peer.do("Ping")
        late = Peer(server)
        late.send("Ping")
        (answer,) = late.read_others()
        assert answer == {
            "ok": False,
            "error": "Too many connections (max 3); try again later",
        }
        assert late.transport.closing
        await turns()
        assert len(server.connections) == 3
        for peer in peers:
            await peer.do("Ping")
        peers[0].leave()
        await turns()
        await Peer(server).do("Ping")


async def test_silent_connections_are_the_first_to_go() -> None:
    async with serving(max_connections=3) as server:
        busy, oldest, younger = Peer(server), Peer(server), Peer(server)
        await busy.do("Ping")
        late = Peer(server)
        await turns()
        assert oldest.transport.aborted
        assert not younger.transport.closing
        await late.do("Ping")
        await busy.do("Ping")
        assert len(server.connections) == 3


async def test_half_a_frame_is_still_silence() -> None:
    async with serving(max_connections=1) as server:
        dribbling = Peer(server)
        dribbling.send_raw(PING[:7])
        await Peer(server).do("Ping")
        assert dribbling.transport.aborted


async def test_many_new_connections_in_one_turn_stay_within_the_limit() -> None:
    async with serving(max_connections=10) as server:
        peers = [Peer(server) for _ in range(200)]  # before any loss was told
        await turns()
        alive = [peer for peer in peers if not peer.transport.closing]
        assert len(alive) == len(server.connections) <= 10
        assert alive[-1] is peers[-1]
        await alive[-1].do("Ping")


async def test_each_connection_has_an_id_of_its_own() -> None:
    async with serving() as server:
        ids = {Peer(server).connection.id for _ in range(50)}
        assert len(ids) == 50


async def test_a_connection_that_is_held_starts_nothing_until_it_is_let_go() -> None:
    async with serving(in_flight=7) as server:
        peer = Peer(server)
        peer.connection.hold()
        sent = [peer.send("Ping"), peer.send("Ping")]
        await turns()
        assert not peer.has(sent[0])
        peer.connection.let_go()
        assert peer.connection.window == 7
        server.turns.resume(peer.connection)
        for req in sent:
            assert (await peer.answer(req))["ok"]


async def test_a_connection_that_is_held_does_not_pile_up_what_it_is_sent() -> None:
    async with serving() as server:
        peer = Peer(server)
        peer.connection.hold()
        for _ in range(2_000):
            if peer.transport.reading:
                peer.send("Ping")
        assert not peer.transport.reading
        assert len(peer.connection.backlog) < 1_100
        peer.connection.let_go()
        server.turns.resume(peer.connection)
        await turns()
        assert peer.transport.reading


async def test_the_origin_of_a_connection_is_its_address_without_the_port() -> None:
    async with serving() as server:
        peer = Peer(server)
        assert peer.connection.origin == ""
        peer.transport._extra["peername"] = ("10.1.2.3", 4711)
        assert peer.connection.origin == "10.1.2.3"


async def test_a_peer_that_sends_no_more_is_gone() -> None:
    async with serving() as server:
        peer = Peer(server)
        assert not peer.connection.eof_received()  # so the transport closes
        peer.leave()
        await until(lambda: not server.connections, "the end of the connection")
