"""Reports of links that are dead on one side, and of peers that are slow or silent."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

import pytest
from tests.support.patience import eventually
from tests.support.proxy import Proxy
from tests.support.server import Server, half_frame_timeout, is_own, lease_grace, room
from tests.support.wire import Lost, NoAnswer, Refused, Wire, packed

MEGABYTE = 1 << 20
UNREAD = 64
"""Megabytes that a server may keep for a client that does not read."""


def test_a_dead_link_that_holds_leases_loses_them_when_they_end(
    server: Server, wire: Wire, queue: str
) -> None:
    job_id = wire.push(queue, {"n": 1})
    with Proxy(server.port) as proxy, Wire(proxy.port) as dead:
        old = dead.pull(queue, owner="dead", lockTtl=500)["token"]
        proxy.swallow()
        dead.send("JobHeartbeat", id=job_id, token=old)
        assert wire.pull(queue)["job"] is None, "the lease holds while it lasts"

        def pull() -> dict[str, object] | None:
            answer = wire.pull(queue, owner="alive")
            return answer if answer["job"] else None

        answer = eventually(pull, "the job is given on", within=2 + lease_grace())
        with pytest.raises(NoAnswer):
            dead.ask("Ping", patience=0.2)
        with pytest.raises(Refused, match="lock token"):
            wire.do("ACK", id=job_id, token=old)
        wire.do("ACK", id=job_id, token=answer["token"])
    assert wire.counts(queue) == {"completed": 1}


def test_a_job_is_not_lost_in_a_pull_whose_link_is_dead(
    server: Server, wire: Wire, queue: str
) -> None:
    with Proxy(server.port) as proxy, Wire(proxy.port) as dead:
        dead.send("PULL", queue=queue, owner="dead", timeout=20_000, lockTtl=400)
        assert dead.ping()
        proxy.swallow()
        job_id = wire.push(queue, {"n": 1})
        assert wire.state(job_id) == "active", "the server cannot know that nobody listens"
        job = eventually(
            lambda: wire.pull(queue, owner="alive")["job"],
            "the job is given on when the lease ends",
            within=2 + lease_grace(),
        )
        assert job["id"] == job_id


def test_a_long_poll_ends_on_time(wire: Wire, queue: str) -> None:
    started = time.monotonic()
    assert wire.pull(queue, timeout=1_000)["job"] is None
    assert 0.95 <= time.monotonic() - started <= 4


def test_a_silent_client_is_not_cut(server: Server, queue: str) -> None:
    with server.connect() as mute, server.connect() as quiet:
        assert quiet.ping()
        assert not mute.closed_within(1.5)
        assert quiet.ping()
        assert mute.ping()


@pytest.mark.slow
def test_answers_that_a_client_never_reads_do_not_fill_the_server(
    own_server: Server, queue: str
) -> None:
    with own_server.connect() as wire:
        job_id = wire.push(queue, "x" * MEGABYTE)
        wire.do("GetJob", id=job_id)
        own_server.forget_peak()
        base = own_server.memory()
        with own_server.connect(receive_buffer=4096) as deaf:
            with contextlib.suppress(Lost):
                deaf.send_all([{"cmd": "GetJob", "id": job_id}] * 400)
            for _ in range(20):
                started = time.monotonic()
                assert wire.ping()
                assert time.monotonic() - started < 2, "others are served meanwhile"
                time.sleep(0.02)
            assert own_server.peak_memory() < base + room(UNREAD + 48)
        eventually(lambda: own_server.memory() < base + room(64), "memory comes back", within=5)


@pytest.mark.slow
def test_twenty_megabytes_of_frames_from_a_client_that_reads_nothing_do_not_fill_the_server(
    own_server: Server, queue: str
) -> None:
    with own_server.connect() as wire:
        own_server.forget_peak()
        base = own_server.memory()
        push = packed({"cmd": "PUSH", "queue": queue, "data": "x" * 200, "reqId": "r"})
        count = packed({"cmd": "Ping", "reqId": "r"})
        with own_server.connect(receive_buffer=4096) as deaf:
            deaf.socket.settimeout(2)
            with contextlib.suppress(OSError, Lost):
                for _ in range(200):
                    deaf.send_raw(push * 100 + count * 3_500)
            assert wire.ping()
        assert own_server.peak_memory() < base + room(UNREAD + 64)
        assert wire.ping()


def test_a_slow_reader_gets_everything_in_the_end(server: Server, wire: Wire, queue: str) -> None:
    job_id = wire.push(queue, "x" * 100_000)
    with server.connect(receive_buffer=4096) as slow:
        sent = slow.send_all([{"cmd": "GetJob", "id": job_id}] * 100)
        time.sleep(0.5)
        assert wire.ping()
        assert all(len(slow.receive(each)["job"]["data"]) == 100_000 for each in sent)


def test_a_client_that_sends_one_byte_at_a_time_is_understood(
    server: Server, wire: Wire, queue: str
) -> None:
    with server.connect() as slow:
        for byte in packed({"cmd": "PUSH", "queue": queue, "data": {"n": 1}, "reqId": "slow"}):
            slow.send_raw(bytes([byte]))
            time.sleep(0.005)
        assert slow.receive("slow")["ok"] is True
    assert wire.counts(queue) == {"waiting": 1}


def test_half_a_frame_and_then_silence_is_cut(new_server: Callable[..., Server]) -> None:
    server = new_server(environment=half_frame_timeout(0.5)).start()
    with server.connect() as half, server.connect() as other:
        half.send_raw(packed({"cmd": "Ping"})[:7])
        assert half.closed_within(10)
        assert other.ping(), "only that connection"


@pytest.mark.slow
@pytest.mark.skipif(not is_own(), reason="the reference holds such a socket for ever")
def test_a_frame_that_comes_byte_by_byte_for_ever_is_cut(
    new_server: Callable[..., Server],
) -> None:
    server = new_server(environment=half_frame_timeout(0.5)).start()
    with server.connect() as dribbler, server.connect() as other:
        dribbler.send_raw(b"\x00\x00\x00\xc8")
        started = time.monotonic()
        with contextlib.suppress(Lost):
            while time.monotonic() - started < 20:
                dribbler.send_raw(b"\x80")
                if dribbler.closed_within(0.1):
                    break
        assert time.monotonic() - started < 10, "the half frame must be finished in bounded time"
        assert other.ping()


def test_a_client_that_only_closes_its_sending_side_leaves_nothing_behind(
    server: Server, wire: Wire, queue: str
) -> None:
    job_id = wire.push(queue, 1)
    files = server.open_files()
    with server.connect() as half:
        assert half.pull(queue)["job"]["id"] == job_id
        half.socket.shutdown(socket.SHUT_WR)
        eventually(lambda: wire.state(job_id) == "waiting", "its job is given back", within=5)
        assert half.closed_within(5)
    eventually(lambda: server.open_files() <= files, "its socket is closed", within=5)


def test_answers_in_flight_when_a_client_vanishes_harm_nobody(
    server: Server, wire: Wire, queue: str
) -> None:
    ids = [wire.push(queue, "x" * 50_000) for _ in range(20)]
    for _ in range(8):  # at ten interruptions a job would be given up
        gone = server.connect()
        gone.send_all([{"cmd": "GetJob", "id": each} for each in ids])
        gone.send_all([{"cmd": "PULL", "queue": queue, "owner": "gone"}] * 5)
        gone.reset()
    got = [wire.pull(queue, timeout=5_000)["job"] for _ in ids]
    assert {job["id"] for job in got} == set(ids)
    assert {job["attempts"] for job in got} == {0}


def test_many_half_frames_cost_no_more_than_what_was_sent(server: Server, wire: Wire) -> None:
    server.forget_peak()
    base = server.memory()
    connections = [server.connect() for _ in range(50)]
    try:
        for each in connections:
            each.send_raw((60 * MEGABYTE).to_bytes(4, "big") + b"\xdd" + bytes(1_000))
        for _ in range(10):
            assert wire.ping()
            time.sleep(0.05)
        assert server.peak_memory() < base + room(40)
    finally:
        for each in connections:
            each.close()
