"""The whole server in a program's own event loop."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.server.offline import GatedStore, until
from tests.support.wire import frame

from tandemq.broker import (
    BrokerBuilder,
    BrokerMetrics,
    BrokerOptions,
    BrokerServer,
    DeliveryMode,
    MessagePriority,
    MessageStore,
    OverflowStrategy,
    QueueManager,
    QueueOptions,
)
from tandemq.config import BadSetting
from tandemq.model.errors import BadRequest, QueueFull, StorageFailed, TandemqError, TooLarge
from tandemq.stores.base import StoreFailed
from tandemq.stores.memory import MemoryStore


def small() -> BrokerBuilder:
    return BrokerBuilder.create().use_port(0).use_memory()


class Client:
    """A VibeMQ client of the JSON wire."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, type: str, **fields: Any) -> None:
        self.writer.write(frame(msgspec.json.encode({"id": type, "type": type, **fields})))
        await self.writer.drain()

    async def next(self) -> dict[str, Any]:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        said: dict[str, Any] = msgspec.json.decode(await self.reader.readexactly(size))
        return said

    async def do(self, type: str, **fields: Any) -> dict[str, Any]:
        await self.send(type, **fields)
        return await self.next()


@asynccontextmanager
async def client(server: BrokerServer, **login: str) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        found = Client(reader, writer)
        await found.send("connect", headers=login)
        yield found
    finally:
        writer.close()


# -- life ----------------------------------------------------------------------------------------


async def test_clients_of_both_kinds_are_served_while_it_runs() -> None:
    async with small().build() as server, client(server) as one:
        assert server.is_running
        assert (await one.next())["type"] == "connectAck"
        assert (await one.do("publish", queue="q", payload=1))["type"] == "publishAck"
        assert server.metrics.total_messages_published == 1
        assert server.active_connections == 1
    assert not server.is_running


async def test_it_can_be_started_again_and_has_what_it_kept(tmp_path: Path) -> None:
    server = BrokerBuilder.create().use_port(0).use_sqlite(str(tmp_path / "x.db")).build()
    async with server:
        id = await server.publish("q", {"n": 1})
    async with server:
        (found,) = server.pending_messages("q")
    assert (found.id, found.payload) == (id, {"n": 1})


async def test_run_goes_on_until_stop_is_called() -> None:
    server = small().build()
    running = asyncio.ensure_future(server.run())
    await until(lambda: server.is_running, "the server runs")
    await server.stop()
    await running
    assert not server.is_running


async def test_run_ends_in_good_order_when_it_is_cancelled() -> None:
    store = GatedStore()
    server = small().use_storage(store).build()
    running = asyncio.ensure_future(server.run())
    await until(lambda: server.is_running, "the server runs")
    await server.publish("q", 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not server.is_running
    assert len(store.rows) == 1


async def test_a_stop_tells_clients_waits_for_acks_and_a_second_one_does_not_wait() -> None:
    server = small().configure_from({"shutdown_timeout": 3_600}).build()
    await server.start()
    async with client(server) as reader:
        await reader.next()
        await reader.do("subscribe", queue="q")
        for n in range(2):
            await server.publish("q", n, id=f"m{n}")
            await reader.next()
        stopping = asyncio.ensure_future(server.stop())
        said = await reader.next()
        assert (said["type"], said["headers"]["reason"]) == ("disconnect", "server_shutdown")
        assert server.health.status == "unhealthy"
        await reader.send("ack", id="m0")
        await until(lambda: server.in_flight_messages == 1, "the ack is read")
        assert not stopping.done()
        await server.stop()
        assert stopping.done()


async def test_stop_where_nothing_runs_does_nothing() -> None:
    server = small().build()
    await server.stop()
    async with server:
        pass
    await server.stop()


async def test_a_running_server_is_not_started_twice() -> None:
    async with small().build() as server:
        with pytest.raises(RuntimeError, match="runs already"):
            await server.start()
        assert server.list_queues() == []


async def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "x.db")
    async with small().build() as other:
        taken = BrokerBuilder.create().use_port(other.port).use_sqlite(path).build()
        with pytest.raises(OSError, match="in use"):
            await taken.start()
        assert not taken.is_running
    async with BrokerBuilder.create().use_port(0).use_sqlite(path).build():
        pass  # the file is not held


ASKED: dict[str, Callable[[BrokerServer], object]] = {
    "metrics": lambda server: server.metrics,
    "health": lambda server: server.health,
    "port": lambda server: server.port,
    "active_connections": lambda server: server.active_connections,
    "in_flight_messages": lambda server: server.in_flight_messages,
    "queue_count": lambda server: server.queue_count,
    "list_queues": lambda server: server.list_queues(),
    "get_queue_info": lambda server: server.get_queue_info("q"),
    "pending_messages": lambda server: server.pending_messages("q"),
}


@pytest.mark.parametrize("name", ASKED)
def test_nothing_is_told_by_a_server_that_does_not_run(name: str) -> None:
    with pytest.raises(RuntimeError, match="not running"):
        ASKED[name](small().build())


async def test_the_process_around_it_is_left_alone() -> None:
    def process() -> list[object]:
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        frozen = gc.get_freeze_count()
        found = [signal.getsignal(number) for number in numbers]
        return [*found, gc.get_threshold(), gc.isenabled(), frozen, sys.getswitchinterval()]

    before = process()
    async with small().build():
        assert process() == before
    assert process() == before


async def test_a_store_that_is_lost_for_good_ends_the_run() -> None:
    store = GatedStore()
    server = small().use_storage(store).build()
    running = asyncio.ensure_future(server.run())
    await until(lambda: server.is_running, "the server runs")
    store.unreadable = True
    store.fail("gone")
    asked = asyncio.ensure_future(server.publish("q", 1))
    with pytest.raises(StoreFailed, match="cannot be read"):
        await running
    with pytest.raises(ConnectionError, match="has stopped"):
        await asked


# -- queues --------------------------------------------------------------------------------------


async def test_queues_are_made_listed_shown_and_removed() -> None:
    options = QueueOptions(
        mode=DeliveryMode.FAN_OUT_WITH_ACK,
        max_queue_size=7,
        message_ttl=timedelta(minutes=1),
        enable_dead_letter_queue=True,
        dead_letter_queue_name="graves",
        overflow_strategy=OverflowStrategy.REDIRECT_TO_DLQ,
        max_retry_attempts=5,
    )
    async with small().build() as server:
        await server.create_queue("b", options)
        await server.create_queue("a")
        await server.create_queue("b")  # which changes nothing
        assert (server.list_queues(), server.queue_count) == (["a", "b"], 2)
        info = server.get_queue_info("b")
        assert info is not None
        assert (info.delivery_mode, info.max_size) == (DeliveryMode.FAN_OUT_WITH_ACK, 7)
        assert info.message_ttl == timedelta(minutes=1)
        assert (info.enable_dead_letter_queue, info.dead_letter_queue_name) == (True, "graves")
        assert info.overflow_strategy is OverflowStrategy.REDIRECT_TO_DLQ
        assert info.max_retry_attempts == 5
        await server.delete_queue("b")
        await server.delete_queue("b")
        assert server.get_queue_info("b") is None
        assert server.list_queues() == ["a"]


async def test_a_name_that_no_client_could_use_is_refused() -> None:
    async with small().build() as server:
        for name in ("", "a b", "x" * 257):
            with pytest.raises(BadRequest):
                await server.create_queue(name)


async def test_pending_messages_stand_in_the_order_of_their_delivery() -> None:
    builder = small().configure_queues(mode=DeliveryMode.PRIORITY_BASED)
    async with builder.build() as server:
        await server.publish("q", "b", id="b", headers={"x": "y"})
        await server.publish("q", "c", id="c", priority=MessagePriority.LOW)
        await server.publish("q", None, id="a", priority=MessagePriority.CRITICAL)
        found = server.pending_messages("q")
        assert [m.id for m in found] == ["a", "b", "c"]
        assert [m.payload for m in found] == [None, "b", "c"]
        levels = [MessagePriority.CRITICAL, MessagePriority.NORMAL, MessagePriority.LOW]
        assert [m.priority for m in found] == levels
        assert found[1].headers == {"x": "y"}
        assert [m.id for m in server.pending_messages("q", limit=1, offset=1)] == ["b"]
        assert server.pending_messages("nothing") == []


async def test_waiting_messages_are_removed_one_by_one_or_all_but_not_what_is_held() -> None:
    async with small().build() as server, client(server) as reader:
        await reader.next()
        await reader.do("subscribe", queue="held")
        await server.publish("held", 1, id="m")
        assert (await reader.next())["id"] == "m"
        assert not await server.remove_message("held", "m")
        assert await server.purge_queue("held") == 0
        for n in range(5):
            await server.publish("q", n, id=f"m{n}")
        assert await server.remove_message("q", "m2")
        assert not await server.remove_message("q", "m2")
        assert await server.purge_queue("q") == 4
        assert server.pending_messages("q") == []
        assert server.in_flight_messages == 1


async def test_more_messages_than_a_slice_are_purged_as_well() -> None:
    async with small().configure_queues(max_size=10_000).build() as server:
        await asyncio.gather(*(server.publish("q", n) for n in range(5_000)))
        assert await server.purge_queue("q") == 5_000


async def test_what_the_program_publishes_meets_the_same_walls() -> None:
    async with small().use_max_message_size(2_000).build() as server:
        full = QueueOptions(max_queue_size=1, overflow_strategy=OverflowStrategy.DROP_NEWEST)
        await server.create_queue("q", full)
        await server.publish("q", 1)
        errors = server.metrics.total_errors
        with pytest.raises(QueueFull):
            await server.publish("q", 2)
        assert server.metrics.total_errors == errors + 1
        with pytest.raises(TooLarge):
            await server.publish("other", "x" * 3_000)
        with pytest.raises(TandemqError):
            await server.publish("other", 1, headers={"": "no name"})


async def test_a_publish_waits_for_room_as_long_as_others_do() -> None:
    blocked = QueueOptions(max_queue_size=1, overflow_strategy=OverflowStrategy.BLOCK_PUBLISHER)
    async with small().configure_from({"publish_wait": 3_600}).build() as server:
        await server.create_queue("q", blocked)
        await server.publish("q", 1)
        waiting = asyncio.ensure_future(server.publish("q", 2, id="second"))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        assert await server.purge_queue("q") == 1
        assert await waiting == "second"


async def test_what_changes_something_returns_when_that_is_kept() -> None:
    store = GatedStore()
    async with small().use_storage(store).build() as server:
        changes: list[Callable[[], Awaitable[object]]] = [
            lambda: server.create_queue("q"),
            lambda: server.publish("q", 1, id="a"),
            lambda: server.publish("q", 2, id="b"),
            lambda: server.remove_message("q", "a"),
            lambda: server.purge_queue("q"),
            lambda: server.delete_queue("q"),
        ]
        for change in changes:
            store.close_gate()
            begun = store.begun
            changing = asyncio.ensure_future(change())
            await until(lambda n=begun: store.begun > n, "a batch is on its way")
            assert not changing.done()
            store.open_gate()
            await changing
        assert server.active_connections == 0


async def test_what_cannot_be_kept_is_told() -> None:
    store = GatedStore()
    async with small().use_storage(store).build() as server:
        store.fail("disk full")
        with pytest.raises(StorageFailed, match="disk full"):
            await server.publish("q", 1)
        assert server.pending_messages("q") == []
        store.recover()
        await server.publish("q", 2)
        assert [m.payload for m in server.pending_messages("q")] == [2]


# -- the builder ---------------------------------------------------------------------------------


def test_every_step_sets_what_it_says() -> None:
    server = (
        BrokerBuilder.create()
        .configure_from(BrokerOptions(login_limit=3))
        .use_host("127.0.0.2")
        .use_port(8080)
        .use_tls("cert.pem", "key.pem")
        .use_authentication("one", "two")
        .use_authorization("admin", "secret")
        .use_max_connections(11)
        .use_max_message_size(2_048)
        .configure_queues(mode=DeliveryMode.FAN_OUT_WITH_ACK, max_size=5, auto_create=False)
        .configure_health_checks(port=2_926)
        .configure_rate_limiting(
            connections_per_minute=1, messages_per_second=2, requests_per_minute=3
        )
        .use_sqlite("there.db")
        .build()
    )
    wanted = BrokerOptions(
        login_limit=3,
        host="127.0.0.2",
        port=8080,
        tls_cert="cert.pem",
        tls_key="key.pem",
        tokens=("one", "two"),
        superuser="admin",
        superuser_password="secret",
        max_connections=11,
        max_message_size=2_048,
        default_mode="FanOutWithAck",
        default_queue_size=5,
        auto_create=False,
        health_port=2_926,
        connections_per_minute=1,
        messages_per_second=2,
        requests_per_minute=3,
        data="there.db",
    )
    assert server.options == wanted


@pytest.mark.parametrize("mode", list(DeliveryMode))
async def test_each_mode_can_be_the_one_of_queues_that_clients_make(mode: DeliveryMode) -> None:
    async with small().configure_queues(mode=mode).build() as server:
        await server.publish("q", 1)
        info = server.get_queue_info("q")
        assert info is not None
        assert info.delivery_mode is mode


def test_the_last_word_on_the_store_counts() -> None:
    store = MemoryStore()
    assert small().use_storage(store).use_memory().build()._store is None
    assert small().use_sqlite("a.db").build().options.durability == "commit"
    given = small().configure_from(BrokerOptions(data="memory")).use_sqlite("a.db")
    assert given.build().options.durability == "commit"


def test_health_checks_can_be_switched_off() -> None:
    assert small().configure_health_checks(enabled=False).build().options.health_port == 0


@pytest.mark.parametrize(
    "step",
    [
        lambda b: b.use_port(70_000),
        lambda b: b.use_max_connections(0),
        lambda b: b.use_authentication(""),
        lambda b: b.use_host("0.0.0.0"),
        lambda b: b.configure_queues(max_size=0),
    ],
)
def test_what_cannot_be_used_is_refused_when_it_is_built(
    step: Callable[[BrokerBuilder], BrokerBuilder],
) -> None:
    with pytest.raises(BadSetting):
        step(small()).build()


async def test_a_token_is_wanted_where_one_is_set() -> None:
    async with small().use_authentication("secret").build() as server:
        async with client(server, authToken="wrong") as one:
            assert (await one.next())["type"] == "error"
        async with client(server, authToken="secret") as one:
            assert (await one.next())["type"] == "connectAck"
        await server.publish("q", 1)  # the program itself needs none


# -- interfaces ----------------------------------------------------------------------------------


def of(value: object, protocol: type) -> None:
    """Every member of a protocol is there."""
    names = [name for name in vars(protocol) if not name.startswith("_")]
    assert names
    assert [name for name in names if not hasattr(value, name)] == []


async def test_the_server_keeps_to_the_interfaces_of_the_founding_document() -> None:
    async with small().build() as server:
        manager: QueueManager = server
        metrics: BrokerMetrics = server.metrics
        store: MessageStore = MemoryStore()
        of(manager, QueueManager)
        of(metrics, BrokerMetrics)
        of(store, MessageStore)


def test_to_import_it_opens_and_starts_nothing() -> None:
    code = "import threading, tandemq.embedded; print(threading.active_count())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
