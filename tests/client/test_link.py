"""One connection: its greeting, its signs of life, and what becomes of its calls when it ends."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from tests.support.peer import Fields, Peer, silent, until, welcome

from tandemq.client.errors import (
    ConnectFailed,
    ConnectionLost,
    NotAuthorized,
    NotSent,
    Timeout,
    WrongServer,
)
from tandemq.client.line import State
from tandemq.client.pool import Pool

QUICK = {"reconnect_delay": 0.01, "command_timeout": 5.0}


def quick(peer: Peer, **options: Any) -> Pool:
    return Pool(peer.url, **{"pool_size": 1, **QUICK, **options})


async def test_hello_and_auth_go_in_one_write(peer: Peer) -> None:
    pool = quick(peer, token="secret")
    await pool.call("Ping")
    hello, auth = peer.links[0].reads[0]
    assert (hello["cmd"], hello["protocolVersion"]) == ("Hello", 3)
    assert hello["capabilities"] == ["pipelining", "separate-job-name"]
    assert (auth["cmd"], auth["token"]) == ("Auth", "secret")
    assert peer.commands == ["Hello", "Auth", "Ping"]
    await pool.close()


async def test_a_server_that_wants_proof_first_is_greeted_again(peer: Peer) -> None:
    proved = False

    def strict(fields: Fields) -> Fields:
        nonlocal proved
        proved = proved or fields["cmd"] == "Auth"
        return {"ok": True} if proved else {"ok": False, "error": "Not authenticated"}

    peer.answer = strict
    pool = quick(peer, token="secret")
    await pool.call("Ping")
    assert peer.commands == ["Hello", "Auth", "Hello", "Ping"]
    await pool.close()


async def test_a_secret_behind_a_user_is_tried_as_token_and_as_password(peer: Peer) -> None:
    def passwords(fields: Fields) -> Fields:
        wrong = fields["cmd"] == "Auth" and "user" not in fields
        return {"ok": False, "error": "Invalid token"} if wrong else {"ok": True}

    peer.answer = passwords
    pool = quick(peer, user="anna", token="secret")
    await pool.call("Ping")
    peer.cut()
    await until(lambda: len(peer.links) == 2 and "Auth" in peer.links[1].commands, "it is back")
    assert peer.links[0].commands == ["Hello", "Auth", "Auth", "Ping"]
    assert peer.links[1].reads[0][1]["password"] == "secret", "what held comes first"
    await pool.close()


async def test_a_wrong_token_says_so_and_is_not_tried_again(peer: Peer) -> None:
    def refuse(fields: Fields) -> Fields:
        return {"ok": False, "error": "Invalid token"} if fields["cmd"] == "Auth" else {"ok": True}

    peer.answer = refuse
    pool = quick(peer, token="wrong", pool_size=2)
    with pytest.raises(NotAuthorized, match="check the token"):
        await pool.call("Ping")
    tried = len(peer.links)
    await asyncio.sleep(0.1)
    assert len(peer.links) == tried
    assert pool.state is State.DISCONNECTED
    await pool.close()


async def test_a_server_that_only_repeats_is_named() -> None:
    async with Peer(lambda fields: fields) as peer:
        pool = quick(peer)
        with pytest.raises(WrongServer, match="no answer"):
            await pool.call("Ping")
        await pool.close()


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "6789"),
        (b"SSH-2.0-OpenSSH\r\n", "SSH"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "tls=1"),
        (b"\0\0\0\1\xc1", "no MessagePack"),
    ],
)
async def test_a_server_of_another_kind_is_named(greeting: bytes, words: str) -> None:
    async with Peer(lambda _: None, greeting=greeting) as peer:
        pool = quick(peer)
        with pytest.raises(WrongServer, match=words):
            await pool.call("Ping")
        await pool.close()


async def test_a_silent_server_is_given_up_in_time() -> None:
    async with Peer(lambda _: None) as peer:
        pool = quick(peer, connect_timeout=0.1)
        with pytest.raises(ConnectFailed, match=r"did not answer within 0\.1 s"):
            await pool.connect()
        await pool.close()


async def test_what_a_full_server_says_is_told(peer: Peer) -> None:
    peer.answer = lambda _: None
    pool = quick(peer)
    waiting = asyncio.create_task(pool.connect())
    await until(lambda: peer.links and peer.links[0].reads, "it is greeted")
    peer.links[0].send({"ok": False, "error": "Too many connections (max 1); try again later"})
    peer.links[0].transport.close()
    with pytest.raises(ConnectFailed, match="Too many connections"):
        await waiting
    await pool.close()


async def test_all_calls_of_a_turn_leave_in_one_write(peer: Peer) -> None:
    pool = quick(peer)
    await pool.connect()
    await asyncio.gather(*(pool.call("Ping", n=n) for n in range(50)))
    assert len(peer.links[0].reads) == 2, "Hello, and the calls"
    await pool.close()


async def test_the_system_looks_for_a_dead_peer_too(peer: Peer) -> None:
    pool = quick(peer)
    await pool.connect()
    link = pool._lines[0].link
    assert link is not None
    assert link._transport is not None
    sock = link._transport.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    await pool.close()


async def test_a_link_is_pinged_while_it_stands(peer: Peer) -> None:
    pool = quick(peer, ping_interval=0.01)
    await pool.connect()
    await until(lambda: peer.commands.count("Ping") > 3, "it is pinged")
    await pool.close()
    assert len(peer.links) == 1


async def test_no_ping_with_an_interval_of_nothing(peer: Peer) -> None:
    pool = quick(peer, ping_interval=0)
    await pool.connect()
    await asyncio.sleep(0.1)
    assert peer.commands == ["Hello"]
    await pool.close()


async def test_three_pings_without_an_answer_end_a_link(peer: Peer) -> None:
    peer.answer = silent("Ping")
    pool = quick(peer, ping_interval=0.02)
    await pool.connect()
    await until(lambda: len(peer.links) > 1, "it connects anew")
    assert peer.links[0].commands.count("Ping") >= 3
    assert pool.stats()[0]["errors"] >= 3
    await pool.close()


async def test_two_pings_without_an_answer_end_nothing(peer: Peer) -> None:
    unanswered = 0

    def two_of_three(fields: Fields) -> Fields | None:
        nonlocal unanswered
        unanswered += fields["cmd"] == "Ping"
        return {"ok": True} if fields["cmd"] != "Ping" or unanswered % 3 == 0 else None

    peer.answer = two_of_three
    pool = quick(peer, ping_interval=0.02)
    await pool.connect()
    await until(lambda: peer.commands.count("Ping") > 9, "it is pinged")
    assert len(peer.links) == 1
    await pool.close()


async def test_three_calls_without_an_answer_end_a_link(peer: Peer) -> None:
    peer.answer = silent("Slow")
    pool = quick(peer, ping_interval=0)
    await pool.connect()
    for _ in range(3):
        with pytest.raises(Timeout, match=r"Slow: no answer from .* in 0\.02 s"):
            await pool.call("Slow", patience=0.02)
    await until(lambda: len(peer.links) == 2, "it connects anew, though nothing is pinged")
    await pool.close()


async def test_any_answer_begins_the_count_again(peer: Peer) -> None:
    peer.answer = silent("Slow")
    pool = quick(peer)
    await pool.connect()
    for turn in range(8):
        with pytest.raises(Timeout):
            await pool.call("Slow", patience=0.02)
        if turn % 2:
            await pool.call("Ping")
    assert len(peer.links) == 1
    await pool.close()


async def test_no_count_with_a_limit_of_nothing(peer: Peer) -> None:
    peer.answer = silent("Slow")
    pool = quick(peer, max_command_timeouts=0)
    await pool.connect()
    for _ in range(6):
        with pytest.raises(Timeout):
            await pool.call("Slow", patience=0.02)
    assert len(peer.links) == 1
    await pool.close()


async def test_an_answer_after_its_time_goes_to_nobody(peer: Peer) -> None:
    peer.answer = silent("Slow")
    pool = quick(peer)
    await pool.connect()
    with pytest.raises(Timeout):
        await pool.call("Slow", patience=0.02)
    late = peer.links[0].reads[-1][0]["reqId"]
    peer.links[0].send({"ok": True, "late": True, "reqId": late})
    assert await pool.call("Ping") == {"ok": True}
    await pool.close()


async def test_written_calls_fail_at_once_when_the_link_breaks(peer: Peer) -> None:
    peer.answer = silent("Slow")
    pool = quick(peer)
    calls = [asyncio.create_task(pool.call("Slow", n=n)) for n in range(20)]
    await until(lambda: peer.commands.count("Slow") == 20, "they are written")
    peer.cut()
    for call in calls:
        with pytest.raises(ConnectionLost):
            await asyncio.wait_for(call, 1.0)
    await pool.call("Ping")
    assert peer.commands.count("Slow") == 20, "none is sent again"
    await pool.close()


async def test_unwritten_calls_say_that_they_were_not_sent(peer: Peer) -> None:
    pool = quick(peer)
    await pool.connect()
    link = pool._lines[0].link
    assert link is not None
    answer = pool.send("Late", {})
    link.end(ConnectionLost("in the same turn"))
    with pytest.raises(NotSent):
        await answer
    assert "Late" not in peer.commands
    await pool.close()


async def test_an_answer_that_breaks_off_is_a_lost_connection(peer: Peer) -> None:
    def garbage(fields: Fields) -> Fields | None:
        if fields["cmd"] != "Odd":
            return welcome(fields)
        peer.links[-1].send_raw(b"\0\0\0\2\xc1\xc1")
        return None

    peer.answer = garbage
    pool = quick(peer)
    with pytest.raises(ConnectionLost, match="no MessagePack"):
        await pool.call("Odd")
    await pool.call("Ping")
    assert len(peer.links) == 2
    await pool.close()


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"eventType": "x", "queue": "q", "jobId": "j"},
        {"eventType": "x", "queue": "q", "jobId": "j", "timestamp": float("nan")},
        {"eventType": "x", "queue": "q", "jobId": 7, "timestamp": 1.0},
    ],
)
async def test_an_event_that_tells_of_nothing_ends_the_connection(
    peer: Peer, event: dict[str, Any]
) -> None:
    pool = quick(peer)
    await pool.connect()
    peer.links[0].send({"type": "event", "event": event})
    await until(lambda: peer.gone, "it is closed")
    await pool.close()


async def test_a_peer_that_does_not_read_holds_calls_back_in_their_order(peer: Peer) -> None:
    pool = quick(peer, max_in_flight=1000)
    await pool.connect()
    peer.links[0].transport.pause_reading()
    blob = b"x" * (1 << 20)
    calls = [asyncio.create_task(pool.call("Keep", n=n, data=blob)) for n in range(30)]
    link = pool._lines[0].link
    assert link is not None
    await until(lambda: not link.room, "the link is full")
    assert link.in_flight < 1000
    more = [asyncio.create_task(pool.call("Keep", n=n)) for n in range(30, 60)]
    await asyncio.sleep(0.02)
    peer.links[0].transport.resume_reading()
    await asyncio.gather(*calls, *more)
    seen = [f["n"] for read in peer.links[0].reads for f in read if f["cmd"] == "Keep"]
    assert seen == list(range(60))
    await pool.close()
