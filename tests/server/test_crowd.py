"""What all connections together may make the server keep, and who goes when it is too much."""

from __future__ import annotations

import asyncio

import pytest
from tests.server.offline import FakeTransport, Peer, serving, turns
from tests.support.wire import packed

from tandemq.server import connections
from tandemq.server.guests import Guest
from tandemq.server.http.events import send_on
from tandemq.server.runtime import Runtime

LIMIT = 1_000_000
PIECE = 50_000


def kept(server: Runtime) -> int:
    return sum(connection.kept_bytes for connection in server.connections.values())


def silent(server: Runtime, count: int) -> list[Peer]:
    """Peers that do not read what they get."""
    peers = [Peer(server) for _ in range(count)]
    for peer in peers:
        peer.transport.peer_reads = False
    return peers


def gone(peers: list[Peer]) -> int:
    return sum(peer.transport.aborted for peer in peers)


async def fail_a_job(worker: Peer) -> None:
    """A job ends badly, and whoever listens is told of it with its data."""
    id = (await worker.do("PUSH", queue="q", data="x" * PIECE, maxAttempts=1))["id"]
    await worker.do("FAIL", id=id, token=(await worker.pull())["token"], error="no")


# -- output that nobody reads ----------------------------------------------------------------------


async def test_silent_subscribers_have_a_bound_together() -> None:
    async with serving(max_buffered_bytes=LIMIT) as server:
        peers, reader, worker = silent(server, 10), Peer(server), Peer(server)
        for peer in (*peers, reader):
            await peer.do("SubscribeEvents", queue="q")
        for _ in range(20):
            await fail_a_job(worker)
            await turns(2)
            assert kept(server) <= LIMIT + 10 * PIECE  # those of one turn come on top
        assert 0 < gone(peers) < 10
        assert not gone([reader, worker])
        told = [event["event"]["eventType"] for event in reader.read_others()]
        assert told.count("failed") == 20
        assert len(server.observers) == 11 - gone(peers)


async def test_those_for_whom_most_is_kept_go_first(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as server:
        peers, other = silent(server, 8), Peer(server)
        await other.push(jobId="large", tags=["x" * PIECE])
        for count, peer in enumerate(peers, 1):
            for _ in range(count):
                await peer.do("GetJob", id="large")
        assert kept(server) > 36 * PIECE
        server.crowd.most_bytes = LIMIT
        await peers[0].do("GetJob", id="large")
        await turns(2)
        assert [peer.transport.aborted for peer in peers] == [False] * 5 + [True] * 3
        assert kept(server) <= LIMIT
        assert caplog.text.count("makes us keep") == 3


async def test_those_who_read_may_get_any_number_of_bytes() -> None:
    async with serving(max_buffered_bytes=LIMIT) as server:
        peers = [Peer(server) for _ in range(5)]
        await peers[0].push(jobId="large", tags=["x" * PIECE])
        for _ in range(20):
            for peer in peers:
                await peer.do("GetJob", id="large")
        assert not gone(peers)


async def test_a_single_answer_may_be_larger_than_what_may_be_left_unread() -> None:
    async with serving(max_unread_bytes=PIECE) as server:
        peer = Peer(server)
        await peer.push(jobId="large", tags=["x" * PIECE * 4])
        peer.transport.peer_reads = False
        await peer.do("GetJob", id="large")
        peer.transport.read_all()
        await peer.do("GetJob", id="large")
        assert not gone([peer])


# -- input that is not done with -------------------------------------------------------------------


FRAME = (60 << 20).to_bytes(4, "big") + b"\x8f"  # a long one begins, with a map


async def test_unfinished_frames_have_a_bound_together() -> None:
    async with serving(max_buffered_bytes=LIMIT) as server:
        peers, other = [Peer(server) for _ in range(40)], Peer(server)
        for _ in range(4):
            for peer in peers:
                begin = b"" if peer.connection.kept_bytes else FRAME
                peer.send_raw(begin + bytes(PIECE))
            await turns(2)
            assert kept(server) <= LIMIT
        assert gone(peers) >= 35
        cut = [peer.connection for peer in peers if peer.transport.aborted]
        assert not any(connection.session.mid_frame for connection in cut)
        assert not all(peer.transport.aborted for peer in peers)
        assert (await other.ask("Ping"))["ok"]


async def test_a_frame_that_is_finished_is_kept_no_longer() -> None:
    ping = packed({"cmd": "Ping", "reqId": "p", "surplus": "x" * PIECE})
    async with serving(max_buffered_bytes=LIMIT) as server:
        peer = Peer(server)
        stream = ping * 100
        for start in range(0, len(stream), 7_777):
            peer.send_raw(stream[start : start + 7_777])
            assert peer.connection.kept_bytes <= len(ping) + 7_777 + 100_000
        await turns()
        assert peer.connection.kept_bytes == 0
        assert not gone([peer])


async def full(server: Runtime) -> Peer:
    """A connection whose window is full."""
    peer = Peer(server)
    peer.send("PULL", queue="empty", timeout=60_000)
    return peer


async def test_large_requests_that_wait_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HIGH_WATER", 10 * PIECE)
    async with serving(in_flight=1) as server:
        peer = await full(server)
        sent = 0
        while peer.transport.reading:
            last = peer.send("PUSH", queue="q", data="x" * PIECE)
            sent += 1
            assert sent < 15
        assert sent > 5
        await Peer(server).push("empty")
        await peer.answer(last)
        assert peer.transport.reading
        assert peer.connection.kept_bytes == 0


async def test_requests_that_wait_count_for_the_bound_of_all() -> None:
    async with serving(in_flight=1, max_buffered_bytes=LIMIT) as server:
        peers = [await full(server) for _ in range(40)]
        for peer in peers:
            peer.send("PUSH", queue="q", data="x" * PIECE)
        await turns(2)
        assert kept(server) <= LIMIT
        assert 20 <= gone(peers) < 30


async def test_a_backlog_that_never_ends_stays_small_in_bytes() -> None:
    async with serving(in_flight=2) as server:
        peer, other = Peer(server), Peer(server)
        for _ in range(10):
            peer.send("PULL", queue="q", timeout=60_000)
        for _ in range(500):
            peer.send("PULL", queue="q", timeout=60_000, owner="x" * 2_000)
            await other.push()
            await turns(3)
        assert peer.connection.backlog
        assert peer.connection.kept_bytes < 50_000
        assert peer.transport.reading


async def test_who_may_not_go_on_sending_is_not_cut_for_it() -> None:
    async with serving(in_flight=1, half_frame_timeout=0.3) as server:
        peer = await full(server)
        reqs = peer.send_all([{"cmd": "Ping"}] * 1_100)
        assert not peer.transport.reading
        peer.send_raw(packed({"cmd": "Ping"})[:5])  # was on its way already
        await turns(3)
        first = peer.connection._half_frame
        while peer.connection._half_frame is first:  # its time is over
            await turns(1)
        assert not gone([peer])
        await Peer(server).push("empty")
        await peer.answer(reqs[-1])
        await peer.closed()  # now it may, and does not
        assert gone([peer])


class Looker(asyncio.Protocol):
    """Somebody who looks on over HTTP and reads nothing."""

    def __init__(self, server: Runtime) -> None:
        self.transport = FakeTransport(self)
        self.transport.peer_reads = False
        self._guest = Guest(server, "a socket", transport=self.transport, lasting=True)
        self._guest.enter()

    def connection_lost(self, _: Exception | None) -> None:
        self._guest.gone()


async def test_what_those_who_look_on_do_not_read_counts_too() -> None:
    async with serving(max_buffered_bytes=LIMIT) as server:
        transports = [Looker(server).transport for _ in range(10)]
        for _ in range(10):
            for transport in transports:
                send_on(server, transport, b"x" * PIECE)
                await turns(2)
                assert kept(server) <= LIMIT + PIECE
        assert 0 < sum(transport.aborted for transport in transports) < 10
