"""Handlers: functions and classes at work on messages, and what their failures do."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from typing import Any

import pytest
from tests.client.broker.places import BOTH, QUICK, Script, builder, client, place, until

from tandemq.broker import DeliveryMode, QueueOptions, ReconnectPolicy
from tandemq.client.broker import Broker, Message, handles
from tandemq.client.broker import handlers as module
from tandemq.client.broker.handlers import wants, work_of
from tandemq.client.errors import BadOption, ConnectionLost, Misused, Refused
from tandemq.wires.sniff import Wire


@BOTH
async def test_a_function_has_the_messages_of_its_queue(wire: Wire) -> None:
    seen: list[Any] = []

    @handles("orders", mode=DeliveryMode.PRIORITY_BASED)
    async def take(message: Message) -> None:
        seen.append(message.payload)

    async with place(wire, handlers=[take]) as (server, broker):
        await broker.publish("orders", 1)
        await until(lambda: seen == [1])
        await until(lambda: server.in_flight_messages == 0)
        info = server.get_queue_info("orders")
        assert info is not None
        assert info.delivery_mode is DeliveryMode.PRIORITY_BASED
    assert wants(take) is not None


@BOTH
async def test_a_class_is_made_once_for_all_messages(wire: Wire) -> None:
    made: list[Any] = []

    @handles("mails")
    class Mails:
        def __init__(self) -> None:
            made.append(self)
            self.seen: list[Any] = []

        async def handle(self, message: Message) -> None:
            self.seen.append(message.payload)

    async with place(wire) as (_, broker):
        listener = await broker.attach(Mails)
        for n in range(3):
            await broker.publish("mails", n)
        await until(lambda: made[0].seen == [0, 1, 2])
        assert len(made) == 1
        await listener.close()


async def test_a_function_without_a_loop_runs_in_a_thread() -> None:
    threads: list[threading.Thread] = []

    @handles("q")
    def take(message: Message) -> None:
        threads.append(threading.current_thread())

    async with place(handlers=[take]) as (_, broker):
        await broker.publish("q", 1)
        await until(lambda: threads)
        assert threads[0] is not threading.main_thread()


@BOTH
async def test_s_286_what_a_handler_raises_gives_its_message_back(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[str] = []

    async def take(message: Message) -> None:
        tries.append(message.id)
        if len(tries) < 3:
            raise ValueError("not yet")

    async with place(wire) as (server, broker):
        await broker.attach(take, "q")
        id = await broker.publish("q", 1)
        await until(lambda: tries == [id, id, id])
        await until(lambda: server.metrics.total_messages_acknowledged == 1)
    failures = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert [r.message for r in failures] == [f"the handler of q failed on message {id!r}"] * 2
    assert "not yet" in caplog.text


@BOTH
async def test_a_handler_that_raises_says_nothing_to_a_broker_that_takes_nothing_back(
    wire: Wire,
) -> None:
    async def take(message: Message) -> None:
        raise ValueError("no")

    async with Script(wire) as script, script.joined() as (broker, visitor):
        coming = asyncio.create_task(broker.attach(take, "q"))
        await visitor.answer("Subscribe")
        await coming
        visitor.send("Deliver", "m", queue="q", payload=1)
        visitor.send("Deliver", "empty", queue="q")
        assert (await visitor.expect("Ack"))["id"] == "empty"
        await broker.disconnect()
        await visitor.expect("Disconnect")  # which returns all that is held


@BOTH
async def test_a_message_without_a_payload_is_acknowledged_and_not_handled(wire: Wire) -> None:
    seen: list[Any] = []

    async def take(message: Message) -> None:
        seen.append(message.payload)

    async with place(wire) as (server, broker):
        await broker.attach(take, "q")
        await broker.publish("q", None)
        await broker.publish("q", 0)
        await until(lambda: seen == [0])
        await until(lambda: server.metrics.total_messages_acknowledged == 2)


@BOTH
async def test_s_288_a_slow_handler_stops_neither_signs_of_life_nor_answers(wire: Wire) -> None:
    going, release = asyncio.Event(), asyncio.Event()

    async with Script(wire) as script, script.joined(keep_alive_interval=0.02) as (broker, visitor):

        async def take(message: Message) -> None:
            going.set()
            await broker.publish("answers", "from inside")
            await release.wait()

        async def serve() -> None:
            while True:
                asked = await visitor.read()
                kinds = {"Ping": "Pong", "Publish": "PublishAck", "Subscribe": "SubscribeAck"}
                seen.append(asked["type"])
                visitor.send(kinds.get(asked["type"], "UnsubscribeAck"), asked["id"])

        seen: list[str] = []
        served = asyncio.create_task(serve())
        await broker.attach(take, "q")
        visitor.send("Deliver", "m", queue="q", payload=1)
        await going.wait()
        await until(lambda: "Publish" in seen)
        before = seen.count("Ping")
        await until(lambda: seen.count("Ping") >= before + 3)
        assert broker.is_connected
        assert "Ack" not in seen
        release.set()
        await until(lambda: "Ack" in seen)
        await broker.disconnect()
        served.cancel()


@BOTH
async def test_a_handler_may_ask_its_own_client(wire: Wire) -> None:
    async with place(wire) as (server, broker):

        async def take(message: Message) -> None:
            await broker.publish("results", message.payload + 1)
            assert await broker.queue_info("results") is not None

        await broker.attach(take, "q")
        await broker.publish("q", 1)
        await until(lambda: [m.payload for m in server.pending_messages("results")] == [2])


async def test_messages_are_handled_one_after_the_other_unless_told_otherwise() -> None:
    async with place() as (_, broker):
        now, most = [0], {"one": 0, "four": 0}

        async def take(message: Message) -> None:
            now[0] += 1
            most[message.queue] = max(most[message.queue], now[0])
            await asyncio.sleep(0.001)
            now[0] -= 1

        for queue, concurrency in (("one", None), ("four", 4)):
            for n in range(20):
                await broker.publish(queue, n)
            listener = await broker.attach(take, queue, concurrency=concurrency)
            await until(lambda queue=queue: broker_empty(broker, queue))  # type: ignore[misc]
            await listener.close()
        assert most == {"one": 1, "four": 4}


def broker_empty(broker: Broker, queue: str) -> bool:
    subscription = broker._subscriptions.by_queue[queue]
    link = broker._way.link
    return not subscription.waiting and link is not None and not link.held


async def test_s_290_a_subscriber_goes_on_when_the_task_that_made_it_is_cancelled() -> None:
    seen: list[Any] = []

    async def take(message: Message) -> None:
        seen.append(message.payload)

    async with place() as (_, broker):

        async def make() -> None:
            await broker.attach(take, "q")
            await asyncio.sleep(3600)

        task = asyncio.create_task(make())
        await until(lambda: broker._listeners)
        task.cancel()
        await broker.publish("q", 1)
        await until(lambda: seen == [1])


@BOTH
async def test_closing_lets_what_is_begun_end_and_returns_the_rest(wire: Wire) -> None:
    begun, release, done = asyncio.Event(), asyncio.Event(), []

    async def take(message: Message) -> None:
        begun.set()
        await release.wait()
        done.append(message.payload)

    async with place(wire) as (server, broker):
        for n in range(3):
            await broker.publish("q", n)
        listener = await broker.attach(take, "q")
        await begun.wait()
        closing = asyncio.create_task(listener.close())
        await asyncio.sleep(0)
        release.set()
        await closing
        assert done == [0]
        assert [m.payload for m in server.pending_messages("q")] == [1, 2]
        assert [m.delivery_attempts for m in server.pending_messages("q")] == [0, 0]


async def test_what_does_not_end_in_time_is_cancelled_uncharged() -> None:
    begun = asyncio.Event()

    async def take(message: Message) -> None:
        begun.set()
        await asyncio.sleep(3600)

    async with place() as (server, broker):
        await broker.publish("q", 1)
        listener = await broker.attach(take, "q")
        await begun.wait()
        await listener.close(grace=0.01)
        (pending,) = server.pending_messages("q")
        assert pending.delivery_attempts == 0


async def test_a_handler_that_never_ends_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "CLEAN_UP", 0.01)
    begun, release = asyncio.Event(), asyncio.Event()

    async def take(message: Message) -> None:
        begun.set()
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    async with place() as (_, broker):
        await broker.publish("q", 1)
        await broker.attach(take, "q")
        await begun.wait()
        async with asyncio.timeout(5):
            await broker.disconnect(grace=0.01)
        assert "goes on" in caplog.text
        release.set()


async def test_a_program_of_handlers_runs_until_it_is_cancelled() -> None:
    seen: list[Any] = []

    @handles("q")
    async def take(message: Message) -> None:
        seen.append(message.payload)

    async with Script() as script:
        port = script.port
    broker = client(port, handlers=[take], reconnect_policy=QUICK)
    running = asyncio.create_task(broker.run())
    await asyncio.sleep(0.03)  # its server comes later
    async with builder().use_port(port).build(), client(port) as other:
        await other.publish("q", 1)
        await until(lambda: seen == [1])
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not broker.is_connected


async def test_a_program_of_handlers_ends_with_the_connection_when_it_may_not_come_back() -> None:
    @handles("q")
    async def take(message: Message) -> None: ...

    async with builder().build() as server:
        broker = client(
            server.port, handlers=[take], reconnect_policy=ReconnectPolicy(max_attempts=0)
        )
        running = asyncio.create_task(broker.run())
        await until(lambda: broker.is_connected)
    with pytest.raises(ConnectionLost, match="lost for good"):
        await running


async def test_a_program_without_handlers_says_so() -> None:
    with pytest.raises(Misused, match="nothing to run"):
        await Broker().run()


async def test_a_handler_that_is_refused_leaves_no_connection_behind() -> None:
    @handles("no name")
    async def take(message: Message) -> None: ...

    async with builder().build() as server:
        broker = client(server.port, handlers=[take])
        with pytest.raises(Refused, match="Subscribe"):
            await broker.connect()
        await until(lambda: server.active_connections == 0)


async def test_handlers_that_are_closed_are_forgotten() -> None:
    async def take(message: Message) -> None: ...

    async with place() as (_, broker):
        for _ in range(3):
            listener = await broker.attach(take, "q")
            await listener.close()
            assert listener.closed
        await broker.attach(take, "q")
        assert len(broker._listeners) == 1


# -- what is no handler ----------------------------------------------------------------------------


class NeedsMore:
    """A class that cannot be made without arguments."""

    def __init__(self, more: int) -> None: ...


class HasNone:
    """A class that handles nothing."""


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (NeedsMore, "Failed to create instance of NeedsMore"),
        (HasNone, "give it a method handle"),
        (7, "is no handler"),
    ],
)
def test_what_is_no_handler_is_refused(handler: Any, text: str) -> None:
    with pytest.raises(BadOption, match=text):
        work_of(handler)


@pytest.mark.parametrize("queue", ["", "  "])
def test_a_handler_needs_a_queue(queue: str) -> None:
    with pytest.raises(BadOption, match="blank"):
        handles(queue)


def test_a_handler_works_on_one_message_at_least() -> None:
    with pytest.raises(BadOption, match="concurrency is 0"):
        handles("q", concurrency=0)


async def test_an_object_with_a_method_or_a_call_is_a_handler() -> None:
    seen: list[Any] = []

    class Called:
        async def __call__(self, message: Message) -> None:
            seen.append(message.payload)

    async with place() as (_, broker):
        await broker.create_queue("q", QueueOptions())
        await broker.attach(Called(), "q")
        await broker.publish("q", 1)
        await until(lambda: seen == [1])
