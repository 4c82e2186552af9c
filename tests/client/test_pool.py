"""A pool: who gets the next call, what waits, and what becomes of it all at the end."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from tests.support.peer import Peer, silent, until

from tandemq import AsyncClient
from tandemq.client.errors import (
    BadOption,
    Closed,
    ConnectFailed,
    NotSent,
    Refused,
    Timeout,
    Unencodable,
    WrongLoop,
)
from tandemq.client.line import State
from tandemq.client.link import Link
from tandemq.client.pool import Pool

QUICK = {"reconnect_delay": 0.01, "command_timeout": 5.0}


def quick(peer: Peer, **options: Any) -> Pool:
    return Pool(peer.url, **{**QUICK, **options})


async def full(pool: Pool) -> None:
    """Let the pool open all of its links."""
    while len(pool._lines) < pool.target.options.pool_size:
        await asyncio.gather(*(pool.call("Ping") for _ in range(20)))
    await until(lambda: all(line.link for line in pool._lines), "all links stand")


async def test_nothing_is_opened_before_the_first_call(peer: Peer) -> None:
    pool = quick(peer)
    assert pool.state is State.DISCONNECTED
    await asyncio.sleep(0.02)
    assert not peer.links
    await pool.close()


async def test_a_pool_that_is_closed_while_it_connects_keeps_no_link(peer: Peer) -> None:
    pool = quick(peer)
    connecting = asyncio.create_task(pool.connect())
    await asyncio.sleep(0)  # it begins
    await pool.close()
    with pytest.raises(Closed):
        await connecting
    await until(lambda: peer.links and peer.gone == peer.links, "it has come and left")


async def test_no_patience_at_all_is_none(peer: Peer) -> None:
    peer.answer = silent()
    async with AsyncClient(peer.url) as client:
        await client.connect()
        async with asyncio.timeout(5):
            with pytest.raises(Timeout):
                await client.call("Ping", patience=0)


async def test_one_call_at_a_time_needs_one_link(peer: Peer) -> None:
    pool = quick(peer)
    for _ in range(20):
        await pool.call("Ping")
    assert len(peer.links) == 1
    assert pool.state is State.CONNECTED
    await pool.close()
    assert pool.state is State.DISCONNECTED


async def test_many_calls_open_all_links_and_go_round(peer: Peer) -> None:
    pool = quick(peer)
    await full(pool)
    before = [link.commands.count("Ping") for link in peer.links]
    await asyncio.gather(*(pool.call("Ping") for _ in range(40)))
    after = [link.commands.count("Ping") for link in peer.links]
    assert len(peer.links) == 4
    assert [b - a for a, b in zip(before, after, strict=True)] == [10, 10, 10, 10]
    await pool.close()


async def test_a_full_link_is_passed_over(peer: Peer) -> None:
    peer.answer = silent("Slow")
    pool = quick(peer, pool_size=2, max_in_flight=3)
    await full(pool)
    slow = [asyncio.create_task(pool.call("Slow")) for _ in range(5)]
    await until(lambda: peer.commands.count("Slow") == 5, "they are written")
    for _ in range(6):
        await pool.call("Ping")
    for task in slow:
        task.cancel()
    await pool.close()


async def test_no_more_than_the_window_is_in_flight(peer: Peer) -> None:
    peer.answer = silent("Slow")
    pool = quick(peer, pool_size=1, max_in_flight=7)
    slow = [asyncio.create_task(pool.call("Slow", n=n)) for n in range(20)]
    await until(lambda: peer.commands.count("Slow") == 7, "the window is full")
    await asyncio.sleep(0.02)
    seen = [f for read in peer.links[0].reads for f in read if f["cmd"] == "Slow"]
    assert [f["n"] for f in seen] == list(range(7))
    for number, fields in enumerate(seen, 1):
        peer.links[0].send({"ok": True, "reqId": fields["reqId"]})
        await until(lambda: peer.commands.count("Slow") == 7 + number, "the next is written")  # noqa: B023
    for task in slow:
        task.cancel()
    await pool.close()


async def test_without_pipelining_there_is_one_call_at_a_time(peer: Peer) -> None:
    pool = quick(peer, pool_size=1, pipelining=False)
    await pool.connect()
    await asyncio.gather(*(pool.call("Ping") for _ in range(20)))
    assert all(len(read) == 1 for read in peer.links[0].reads)
    await pool.close()


async def test_calls_wait_for_a_server_that_comes_later(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tandemq.client")
    await peer.stop()
    pool = quick(peer)
    waiting = asyncio.create_task(pool.call("Ping"))
    await asyncio.sleep(0.05)
    assert pool.state in (State.CONNECTING, State.RECONNECTING)
    await peer.listen()
    assert await waiting == {"ok": True}
    waits, again = [each.message for each in caplog.records if each.name == "tandemq.client"]
    assert waits.startswith("no connection, trying again: cannot connect to 127"), waits
    assert waits.endswith("Connection refused; is the server running?"), waits
    assert again == f"connected to {pool.target}"
    await pool.close()


async def test_a_call_that_found_no_link_in_time_was_not_sent(peer: Peer) -> None:
    await peer.stop()
    pool = quick(peer, command_timeout=0.1)
    with pytest.raises(NotSent, match=r"within 0\.1 s: cannot connect to 127"):
        await pool.call("Ping")
    await pool.close()


async def test_one_attempt_says_at_once_why_there_is_no_way(peer: Peer) -> None:
    await peer.stop()
    pool = quick(peer)
    with pytest.raises(ConnectFailed, match="cannot connect to 127"):
        await pool.connect()
    await pool.close()


@pytest.mark.parametrize("options", [{"reconnect": False}, {"max_reconnect_attempts": 2}])
async def test_without_further_attempts_calls_fail_at_once(
    peer: Peer, options: dict[str, Any]
) -> None:
    pool = quick(peer, **options)
    await pool.call("Ping")
    await peer.stop()
    await until(lambda: pool.state is not State.CONNECTED, "it is lost")
    with pytest.raises(NotSent):
        await pool.call("Ping")
    await peer.listen()
    assert await pool.call("Ping") == {"ok": True}, "a later call tries again"
    await pool.close()


async def test_the_wait_for_a_link_and_the_wait_for_the_answer_are_two(peer: Peer) -> None:
    peer.answer = silent("Slow")
    pool = quick(peer, pool_size=1, max_in_flight=1, max_command_timeouts=0)
    await pool.connect()
    first = asyncio.create_task(pool.call("Slow", patience=0.2))
    second = asyncio.create_task(pool.call("Slow", patience=0.25))
    with pytest.raises(Timeout):
        await first
    with pytest.raises(Timeout):
        await second
    assert peer.commands.count("Slow") == 2
    await pool.close()


@pytest.mark.parametrize("command", ["PULL", "PULLB", "WaitJob"])
async def test_what_waits_on_purpose_has_that_time_on_top(peer: Peer, command: str) -> None:
    """P68: a long poll that a dead server never answers ends, a little after its own time."""
    peer.answer = silent(command)
    pool = quick(peer, command_timeout=0.1)
    began = asyncio.get_running_loop().time()
    with pytest.raises(Timeout, match=command):
        await pool.call(command, timeout=200)
    assert 0.29 < asyncio.get_running_loop().time() - began < 3.0
    await pool.close()


async def test_a_call_that_nobody_awaits_any_more_is_not_written(peer: Peer) -> None:
    peer.answer = silent("Slow")
    pool = quick(peer, pool_size=1, max_in_flight=1)
    await pool.connect()
    first = asyncio.create_task(pool.call("Slow"))
    second = asyncio.create_task(pool.call("Never"))
    third = asyncio.create_task(pool.call("Ping"))
    await until(lambda: "Slow" in peer.commands, "the first is written")
    second.cancel()
    link = peer.links[0]
    link.send({"ok": True, "reqId": link.reads[-1][0]["reqId"]})
    assert await third == {"ok": True}
    assert await first == {"ok": True}
    assert "Never" not in peer.commands
    await pool.close()


async def test_what_belongs_to_a_connection_is_restored_before_it_takes_calls(peer: Peer) -> None:
    pool = quick(peer, pool_size=1)

    async def restore(link: Link) -> None:
        await link.ask("SubscribeEvents", queue="q")

    pool.restore.append(restore)
    for turn in range(5):
        await pool.call("Ping")
        assert len(peer.links) == turn + 1
        assert peer.links[-1].commands[:3] == ["Hello", "SubscribeEvents", "Ping"]
        peer.cut()
        await until(lambda: pool.state is not State.CONNECTED, "it is lost")
    await pool.close()


async def test_a_failed_restoration_is_a_failed_attempt(peer: Peer) -> None:
    pool = quick(peer, pool_size=1)
    tries = 0

    async def restore(link: Link) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Refused("SubscribeEvents", "not yet")

    pool.restore.append(restore)
    assert await pool.call("Ping") == {"ok": True}
    assert tries == 3
    await pool.close()


async def test_a_pool_shows_how_its_links_are(peer: Peer) -> None:
    pool = quick(peer, pool_size=2)
    await full(pool)
    shown = pool.stats()
    assert [each["state"] for each in shown] == ["connected", "connected"]
    assert all(each["latency_ms"] > 0 and each["answers"] > 0 for each in shown)
    assert [each["errors"] for each in shown] == [0, 0]
    peer.cut()
    await until(lambda: sum(each["connects"] for each in pool.stats()) == 4, "both are back")
    assert [each["errors"] for each in pool.stats()] == [1, 1]
    await pool.close()


async def test_a_closed_pool_says_so(peer: Peer) -> None:
    peer.answer = silent("Slow")
    pool = quick(peer, pool_size=1, max_in_flight=1)
    written = asyncio.create_task(pool.call("Slow"))
    waiting = asyncio.create_task(pool.call("Slow"))
    await until(lambda: "Slow" in peer.commands, "one is written")
    await pool.close()
    await pool.close()
    with pytest.raises(NotSent, match="closed"):
        await waiting
    with pytest.raises(ConnectionError, match="closed"):
        await written
    for use in (pool.call("Ping"), pool.connect()):
        with pytest.raises(Closed, match="make a new one"):
            await use
    await until(lambda: peer.gone, "the connection is closed")


async def test_closing_writes_what_was_asked_before(peer: Peer) -> None:
    pool = quick(peer, pool_size=1)
    await pool.connect()
    pool.send("Last", {}).cancel()
    await pool.close()
    await until(lambda: "Last" in peer.commands, "it was written")


async def test_closing_while_connecting_leaves_nothing_behind() -> None:
    async with Peer(lambda _: None) as peer:
        pool = quick(peer)
        waiting = asyncio.create_task(pool.call("Ping"))
        await until(lambda: peer.links, "it connects")
        await pool.close()
        with pytest.raises(NotSent):
            await waiting
        await until(lambda: len(peer.gone) == len(peer.links), "all are closed")


async def test_a_payload_that_cannot_be_written_takes_nothing_with_it(peer: Peer) -> None:
    pool = quick(peer)
    with pytest.raises(Unencodable, match=r"data\.a is of type object"):
        await pool.call("PUSH", queue="q", data={"a": object()})
    with pytest.raises(Unencodable, match="64 MiB"):
        await pool.call("PUSH", queue="q", data=b"x" * (65 << 20))
    with pytest.raises(BadOption, match="patience"):
        await pool.call("Ping", patience=-1)
    assert await pool.call("Ping") == {"ok": True}
    await pool.close()


async def test_pools_are_shared_by_those_who_want_the_same(peer: Peer) -> None:
    first, second = Pool.shared(peer.url), Pool.shared(peer.url)
    other = Pool.shared(peer.url, pool_size=2)
    assert first is second
    assert first is not other
    await first.release()
    assert await second.call("Ping") == {"ok": True}
    await second.release()
    with pytest.raises(Closed):
        await second.call("Ping")
    third = Pool.shared(peer.url)
    assert third is not first
    await asyncio.gather(third.release(), other.release())


async def test_a_pool_belongs_to_the_loop_that_used_it_first(peer: Peer) -> None:
    pool = quick(peer)
    await pool.call("Ping")

    def elsewhere() -> None:
        with pytest.raises(WrongLoop, match="another event loop"):
            asyncio.run(pool.call("Ping"))

    await asyncio.to_thread(elsewhere)
    await pool.close()


def test_a_pool_follows_to_the_next_loop_when_its_own_has_ended() -> None:
    async def use(pool: Pool | None) -> Pool:
        async with Peer() as peer:
            pool = pool or quick(peer, pool_size=1)
            pool.target = Pool(peer.url, **QUICK).target
            assert await pool.call("Ping") == {"ok": True}
            await pool._lines[0].stop()
            return pool

    pool = asyncio.run(use(None))
    asyncio.run(use(pool))


async def test_nothing_is_said_of_failures_that_nobody_awaits(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    """P39: a server that is away leaves no un-awaited failures behind, and no lines for each."""
    pool = quick(peer)
    await pool.call("Ping")
    await peer.stop()
    await asyncio.sleep(0.3)
    assert pool.stats()[0]["errors"] > 2
    await pool.close()
    del pool
    gc.collect()
    await asyncio.sleep(0)
    assert [record.message for record in caplog.records if "never" in record.message] == []
    assert len(caplog.records) <= 10


async def test_closing_does_not_wait_for_a_peer_that_does_not_read(peer: Peer) -> None:
    pool = quick(peer, pool_size=1)
    await pool.connect()
    peer.links[0].transport.pause_reading()
    call = asyncio.create_task(pool.call("PUSH", queue="q", data=b"x" * (32 << 20)))
    await asyncio.sleep(0.05)
    async with asyncio.timeout(5):
        await pool.close()
    with pytest.raises(ConnectionError):
        await call


@pytest.mark.parametrize("option", [{"ca": "/nowhere", "tls": True}, {"host": "x" * 70}])
async def test_what_can_never_work_fails_calls_at_once(option: dict[str, Any]) -> None:
    host = option.pop("host", "127.0.0.1")
    pool = Pool(f"tandemq://{host}:1", **option)
    async with asyncio.timeout(5):
        with pytest.raises(BadOption):
            await pool.call("Ping")
    await pool.close()
