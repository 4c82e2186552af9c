"""Publishing, subscribing, queues and users, against the real server on both wires."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.client.broker.places import BOTH, FAST, QUICK, Script, builder, client, place, until

from tandemq.broker import DeliveryMode, MessagePriority, OverflowStrategy, QueueOptions
from tandemq.client.broker import Broker, QueueConflict, User
from tandemq.client.errors import (
    BadOption,
    Closed,
    ConnectFailed,
    Misused,
    NotAuthorized,
    NotFound,
    PayloadTooLarge,
    QueueFull,
    Refused,
    Timeout,
    Unavailable,
    Unencodable,
    WrongServer,
)
from tandemq.wires.sniff import Wire

# -- publishing ------------------------------------------------------------------------------------


@BOTH
async def test_a_message_arrives_as_it_was_published(wire: Wire) -> None:
    async with place(wire) as (_, broker), broker.subscribe("orders") as messages:
        id = await broker.publish(
            "orders",
            {"n": 1, "text": "ü", "none": None},
            priority="high",
            correlation_id="c-1",
            headers={"tenant": "t"},
        )
        message = await anext(messages)
        async with message:
            assert (message.id, message.queue) == (id, "orders")
            assert message.payload == {"n": 1, "text": "ü", "none": None}
            assert message.headers == {"tenant": "t", "priority": "high", "correlationId": "c-1"}
            assert message.priority is MessagePriority.HIGH
            assert message.correlation_id == "c-1"


@dataclass
class Order:
    """Something that a program publishes."""

    number: int
    due: timedelta


@BOTH
async def test_a_payload_may_have_a_type_on_both_ends(wire: Wire) -> None:
    async with place(wire) as (_, broker), broker.subscribe("q") as messages:
        await broker.publish("q", Order(7, timedelta(hours=2)))
        async with await anext(messages) as message:
            assert message.decode(Order) == Order(7, timedelta(hours=2))
            with pytest.raises(Unencodable, match=r"message .* of q"):
                message.decode(list[int])


@BOTH
async def test_a_message_may_have_an_id_of_ones_own_and_no_payload(wire: Wire) -> None:
    async with place(wire) as (_, broker), broker.subscribe("q") as messages:
        assert await broker.publish("q", id="mine") == "mine"
        async with await anext(messages) as message:
            assert (message.id, message.payload) == ("mine", None)


@BOTH
async def test_a_publish_returns_when_the_broker_has_the_message(wire: Wire) -> None:
    async with place(wire) as (server, broker):
        await asyncio.gather(*(broker.publish("q", n) for n in range(500)))
        assert server.get_queue_info("q").message_count == 500  # type: ignore[union-attr]
        assert [m.payload for m in server.pending_messages("q", limit=500)] == list(range(500))


@BOTH
async def test_a_refusal_says_which_command_and_why(wire: Wire) -> None:
    async with place(wire) as (_, broker):
        with pytest.raises(Refused, match=r"Publish: Queue name contains invalid characters"):
            await broker.publish("has space", 1)
        await broker.create_queue(
            "small", QueueOptions(max_queue_size=1, overflow_strategy=OverflowStrategy.DROP_NEWEST)
        )
        await broker.publish("small", 1)
        with pytest.raises(QueueFull, match="Publish: Queue 'small' is full"):
            await broker.publish("small", 2)


async def test_what_cannot_be_published_is_refused_before_anything_is_sent() -> None:
    loop: list[Any] = []
    loop.append(loop)
    async with Script() as script, script.joined() as (broker, visitor):
        with pytest.raises(BadOption, match="name of the queue is blank"):
            await broker.publish("  ", 1)
        with pytest.raises(Unencodable, match="holds itself"):
            await broker.publish("q", loop)
        with pytest.raises(Unencodable, match="object is no type"):
            await broker.publish("q", object())
        with pytest.raises(Unencodable, match="surrogate"):
            await broker.publish("q", 1, headers={"half": "\ud800"})
        with pytest.raises(Unencodable, match="at is a moment without a zone"):
            await broker.publish("q", {"at": datetime(2026, 1, 1)})
        with pytest.raises(BadOption, match="give low, normal, high or critical"):
            await broker.publish("q", 1, priority="urgent")
        for odd in ({"headers": 5}, {"headers": {"a": 1}}, {"correlation_id": 5}):
            with pytest.raises(BadOption, match="give a text for each name"):
                await broker.publish("q", 1, **odd)  # type: ignore[arg-type]
        with pytest.raises(BadOption, match="queue is 5; give a text"):
            await broker.publish(5, 1)  # type: ignore[arg-type]
        for wrong in ({"prefetch": "x"}, {"mode": "x"}):
            with pytest.raises(BadOption, match="is 'x'; give"):
                broker.subscribe("q", **wrong)  # type: ignore[arg-type]
        with pytest.raises(PayloadTooLarge, match=r"the broker reads 1048576 \(max_message_size\)"):
            await broker.publish("q", "x" * 1_048_576)
        going = asyncio.create_task(broker.publish("q", "fits"))
        assert (await visitor.answer("Publish"))["payload"] == "fits"
        await going


async def test_two_publishes_of_one_id_do_not_wait_at_the_same_time() -> None:
    async with Script() as script, script.joined() as (broker, visitor):
        first = asyncio.create_task(broker.publish("q", 1, id="one"))
        await asyncio.sleep(0)
        with pytest.raises(Misused, match="id one"):
            await broker.publish("q", 2, id="one")
        await visitor.answer("Publish")
        assert await first == "one"


# -- subscribing -----------------------------------------------------------------------------------


@BOTH
async def test_leaving_the_block_acknowledges(wire: Wire) -> None:
    async with place(wire) as (server, broker), broker.subscribe("q") as messages:
        await broker.publish("q", 1)
        async with await anext(messages):
            assert server.in_flight_messages == 1
        await until(lambda: server.in_flight_messages == 0, "the acknowledgement")
        assert server.metrics.total_messages_acknowledged == 1


@BOTH
async def test_an_exception_gives_the_message_back_for_another_try(wire: Wire) -> None:
    async with place(wire) as (server, broker), broker.subscribe("q") as messages:
        await broker.publish("q", 1)
        with pytest.raises(ZeroDivisionError):
            async with await anext(messages):
                1 / 0  # noqa: B018
        async with await anext(messages) as again:
            assert again.payload == 1
        await until(lambda: server.metrics.total_messages_acknowledged == 1)
        assert server.metrics.total_retries == 1


@BOTH
async def test_a_message_can_be_given_back_for_later(wire: Wire) -> None:
    async with place(wire) as (_, broker), broker.subscribe("q") as messages:
        await broker.publish("q", 1)
        message = await anext(messages)
        begun = asyncio.get_running_loop().time()
        await message.give_back(delay=0.1)
        await message.give_back()  # it is settled: nothing more is said
        async with await anext(messages) as again:
            assert again.id == message.id
            assert asyncio.get_running_loop().time() - begun >= 0.09


@BOTH
async def test_without_the_extension_nothing_is_said_and_the_time_out_does_it(wire: Wire) -> None:
    options = QueueOptions(ack_timeout=0.05)
    async with place(wire, give_back=False) as (server, broker):
        await broker.create_queue("q", options)
        async with broker.subscribe("q") as messages:
            await broker.publish("q", 1)
            with pytest.raises(ValueError, match="no"):
                async with await anext(messages):
                    raise ValueError("no")
            async with await anext(messages) as again:
                assert again.payload == 1
            assert server.metrics.total_errors == 0


@BOTH
async def test_what_is_not_settled_when_the_subscription_ends_goes_back_uncharged(
    wire: Wire,
) -> None:
    async with place(wire) as (server, broker):
        for n in range(5):
            await broker.publish("q", n)
        async with broker.subscribe("q") as messages:
            first = await anext(messages)
            assert first.payload == 0
            await until(lambda: messages.waiting == 4)
        pending = server.pending_messages("q")
        assert [m.payload for m in pending] == [0, 1, 2, 3, 4]
        assert [m.delivery_attempts for m in pending] == [0] * 5
        assert [m async for m in messages] == []


@BOTH
async def test_a_cancelled_block_charges_nothing(wire: Wire) -> None:
    async with place(wire) as (server, broker):
        await broker.publish("q", 1)
        begun = asyncio.Event()

        async def work() -> None:
            async with broker.subscribe("q") as messages:
                async for message in messages:
                    async with message:
                        begun.set()
                        await asyncio.sleep(3600)

        task = asyncio.create_task(work())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (pending,) = server.pending_messages("q")
        assert pending.delivery_attempts == 0


@BOTH
async def test_a_prefetch_bounds_what_is_here_unanswered(wire: Wire) -> None:
    async with place(wire) as (server, broker):
        for n in range(10):
            await broker.publish("q", n)
        async with broker.subscribe("q", prefetch=3) as messages:
            await until(lambda: messages.waiting == 3)
            assert server.in_flight_messages == 3
            async with await anext(messages):
                assert messages.waiting == 2
            await until(lambda: messages.waiting == 3)


@BOTH
async def test_several_tasks_share_a_subscription(wire: Wire) -> None:
    async with place(wire) as (_, broker), broker.subscribe("q") as messages:
        seen: list[Any] = []

        async def work() -> None:
            async for message in messages:
                async with message:
                    seen.append(message.payload)
                    await asyncio.sleep(0)

        tasks = [asyncio.create_task(work()) for _ in range(4)]
        await asyncio.gather(*(broker.publish("q", n) for n in range(100)))
        await until(lambda: len(seen) == 100)
        assert sorted(seen) == list(range(100))
        await messages.close()
        await asyncio.gather(*tasks)


@BOTH
async def test_iterating_begins_a_subscription_without_a_block(wire: Wire) -> None:
    async with place(wire) as (server, broker):
        await broker.publish("q", 1)
        messages = broker.subscribe("q")
        async for message in messages:
            async with message:
                assert message.payload == 1
            break
        assert server.get_queue_info("q").subscriber_count == 1  # type: ignore[union-attr]
        await messages.close()
        assert server.get_queue_info("q").subscriber_count == 0  # type: ignore[union-attr]


async def test_whoever_iterates_is_told_that_a_subscription_was_refused() -> None:
    async with place() as (_, broker):
        messages = broker.subscribe("no name")
        tasks = [asyncio.create_task(anext(messages)) for _ in range(3)]
        for failed in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(failed, Refused)


@BOTH
async def test_a_mode_makes_the_queue_and_another_one_is_a_conflict(wire: Wire) -> None:
    async with place(wire) as (server, broker):
        async with broker.subscribe("fan", mode=DeliveryMode.FAN_OUT_WITH_ACK):
            info = await broker.queue_info("fan")
            assert info is not None
            assert info.delivery_mode is DeliveryMode.FAN_OUT_WITH_ACK
        async with broker.subscribe("fan", mode=DeliveryMode.FAN_OUT_WITH_ACK):
            pass
        with pytest.raises(QueueConflict, match="mode is FAN_OUT_WITH_ACK, declared is ROUND"):
            async with broker.subscribe("fan", mode=DeliveryMode.ROUND_ROBIN):
                pass
        assert server.get_queue_info("fan").subscriber_count == 0  # type: ignore[union-attr]


async def test_s_289_a_second_subscription_to_a_queue_is_refused_before_anything_is_sent() -> None:
    async with Script() as script, script.joined() as (broker, visitor):
        coming = asyncio.create_task(broker.subscribe("q").__aenter__())
        await visitor.answer("Subscribe")
        messages = await coming
        with pytest.raises(Misused, match="already subscribed to 'q'"):
            async with broker.subscribe("q"):
                pass
        leaving = asyncio.create_task(messages.close())
        await visitor.answer("Unsubscribe")  # and not a second Subscribe
        await leaving


@BOTH
async def test_a_subscription_that_was_replaced_is_left_alone(wire: Wire) -> None:
    async with place(wire) as (server, broker):
        old = await broker.subscribe("q").__aenter__()
        await broker.unsubscribe("q")
        await broker.unsubscribe("q")
        async with broker.subscribe("q") as new:
            await old.close()
            await broker.publish("q", 1)
            async with await anext(new) as message:
                assert message.payload == 1
        with pytest.raises(Misused, match="has ended"):
            async with old:
                pass
        assert server.get_queue_info("q").subscriber_count == 0  # type: ignore[union-attr]


@BOTH
async def test_get_waits_so_long_and_no_longer(wire: Wire) -> None:
    async with place(wire) as (_, broker), broker.subscribe("q") as messages:
        assert await messages.get(timeout=0.01) is None
        await broker.publish("q", 1)
        message = await messages.get()
        assert message is not None
        await message.ack()
        await messages.close()
        assert await messages.get() is None


def test_a_prefetch_of_nothing_is_refused() -> None:
    with pytest.raises(BadOption, match="prefetch is 0"):
        Broker().subscribe("q", prefetch=0)


@BOTH
async def test_a_refused_subscription_leaves_nothing_behind(wire: Wire) -> None:
    async with (
        builder().configure_queues(auto_create=False).build() as server,
        client(server.port, wire) as broker,
    ):
        with pytest.raises(NotFound):
            async with broker.subscribe("q"):
                pass
        await broker.create_queue("q")
        async with broker.subscribe("q"):
            pass


@BOTH
async def test_a_subscription_survives_the_deletion_of_its_queue(wire: Wire) -> None:
    async with place(wire) as (_, broker), broker.subscribe("q") as messages:
        await broker.delete_queue("q")
        await broker.create_queue("q")
        await broker.publish("q", "anew")
        async with await anext(messages) as message:
            assert message.payload == "anew"


async def test_a_subscription_that_is_given_up_halfway_is_taken_back() -> None:
    async with Script() as script, script.joined() as (broker, visitor):
        coming = asyncio.create_task(broker.subscribe("q").__aenter__())
        await visitor.expect("Subscribe")
        coming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await coming
        assert (await visitor.expect("Unsubscribe"))["queue"] == "q"


# -- queues ----------------------------------------------------------------------------------------


@BOTH
async def test_queues_are_made_told_of_listed_and_deleted(wire: Wire) -> None:
    options = QueueOptions(
        mode=DeliveryMode.PRIORITY_BASED,
        max_queue_size=7,
        message_ttl=timedelta(minutes=1),
        enable_dead_letter_queue=True,
        dead_letter_queue_name="dead",
        overflow_strategy=OverflowStrategy.REDIRECT_TO_DLQ,
        max_retry_attempts=9,
    )
    async with place(wire) as (server, broker):
        await broker.create_queue("full", options)
        await broker.create_queue("plain")
        info = await broker.queue_info("full")
        assert info == server.get_queue_info("full")
        assert info is not None
        assert (info.max_size, info.message_ttl) == (7, timedelta(minutes=1))
        assert info.dead_letter_queue_name == "dead"
        assert sorted(await broker.list_queues()) == ["full", "plain"]
        await broker.delete_queue("full")
        await broker.delete_queue("full")
        assert await broker.queue_info("full") is None


@BOTH
async def test_a_queue_has_the_waits_that_it_was_made_with(wire: Wire) -> None:
    options = QueueOptions(ack_timeout=0.05, retry_delay=0.01, full_ack_timeout=True)
    async with place(wire) as (_, broker):
        await broker.create_queue("quick", options)
        async with broker.subscribe("quick") as messages:
            await broker.publish("quick", 1)
            first = await anext(messages)
            async with await anext(messages) as again:
                assert again.id == first.id


# -- users -----------------------------------------------------------------------------------------


@BOTH
async def test_users_are_administered(wire: Wire) -> None:
    server = builder().use_authorization("admin", "admin-pass-1").configure_from(FAST).build()
    async with server:
        login = {"username": "admin", "password": "admin-pass-1"}
        async with client(server.port, wire, **login) as root:
            await root.users.create("alice", "secret")
            with pytest.raises(Refused, match="CreateUser: User 'alice' already exists"):
                await root.users.create("alice", "again")
            await root.users.grant("alice", "orders.*", ["Publish", "ListQueues"])
            (granted,) = await root.users.permissions("alice")
            assert (granted.pattern, granted.operations) == ("orders.*", ("Publish", "ListQueues"))
            names = await root.users.all()
            assert [(u.name, u.superuser) for u in names] == [("admin", True), ("alice", False)]
            assert isinstance(names[0], User)
            async with client(server.port, wire, username="alice", password="secret") as alice:
                await alice.publish("orders.new", 1)
                with pytest.raises(NotAuthorized, match="Subscribe: Access denied"):
                    async with alice.subscribe("orders.new"):
                        pass
                await alice.users.change_password("alice", "other")
                with pytest.raises(NotAuthorized, match="Superuser"):
                    await alice.users.all()
            await root.users.revoke("alice", "orders.*")
            assert await root.users.permissions("alice") == []
            await root.users.delete("alice")
            with pytest.raises(NotFound, match="User 'ghost' not found"):
                await root.users.delete("ghost")


@BOTH
@pytest.mark.parametrize(
    ("login", "text"),
    [({}, "token is required"), ({"auth_token": "wrong"}, "Invalid authentication token")],
)
async def test_a_wrong_token_is_told_at_once(wire: Wire, login: dict[str, str], text: str) -> None:
    async with builder().use_authentication("right").build() as server:
        with pytest.raises(NotAuthorized, match=text):
            await client(server.port, wire, **login).connect(patience=60)
        async with Broker(f"tandemq://right@127.0.0.1:{server.port}") as broker:
            await broker.publish("q", 1)


# -- coming and going ------------------------------------------------------------------------------


async def test_a_client_is_connected_from_its_welcome_to_its_end() -> None:
    async with builder().build() as server:
        broker = client(server.port)
        assert not broker.is_connected
        assert repr(broker) == f"<Broker 127.0.0.1:{server.port}, not connected>"
        async with broker:
            assert broker.is_connected
            assert await broker.connect() is broker
            assert server.active_connections == 1
        assert not broker.is_connected
        await broker.disconnect()
        with pytest.raises(Closed, match="make another one"):
            await broker.publish("q", 1)
        with pytest.raises(Closed, match="make another one"):
            await broker.connect()
        await until(lambda: server.active_connections == 0)
        assert server.metrics.total_errors == 0


async def test_a_client_that_never_connected_says_so() -> None:
    with pytest.raises(Misused, match="connect first"):
        await Broker().publish("q", 1)


async def test_leaving_ends_every_subscription() -> None:
    async with builder().build() as server:
        async with client(server.port) as broker:
            messages = await broker.subscribe("q").__aenter__()
            reader = asyncio.create_task(messages.get())
        assert await reader is None


@BOTH
async def test_a_server_that_says_nothing_is_given_up_in_time(wire: Wire) -> None:
    async with Script(wire) as script:
        with pytest.raises(ConnectFailed, match=r"did not answer within 0\.05 s"):
            await client(script.port, wire, command_timeout=0.05).connect()


@BOTH
async def test_nobody_there_is_told_at_once(wire: Wire) -> None:
    async with Script() as script:
        port = script.port
    with pytest.raises(ConnectFailed, match="is the server running"):
        await client(port, wire).connect()


async def test_a_client_with_patience_waits_for_its_server() -> None:
    async with Script() as script:
        port = script.port
    broker = client(port, reconnect_policy=QUICK)
    coming = asyncio.create_task(broker.connect(patience=60))
    await asyncio.sleep(0.05)
    async with builder().use_port(port).build():
        await coming
        await broker.publish("q", 1)
        await broker.disconnect()


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 No\r\n\r\n", b"\0\0\0\3abc", b"SSH-2.0-x\r\n"])
async def test_a_server_of_another_kind_is_told_from_a_broker(said: bytes) -> None:
    async with Script() as script:
        broker = client(script.port)
        coming = asyncio.create_task(broker.connect())
        visitor = await script.next()
        visitor.writer.write(said)
        with pytest.raises(WrongServer):
            await coming


async def test_a_first_frame_that_is_no_welcome_is_none() -> None:
    async with Script() as script:
        coming = asyncio.create_task(client(script.port).connect())
        visitor = await script.next()
        visitor.send("Pong", "x")
        with pytest.raises(WrongServer, match="is no VibeMQ broker"):
            await coming


async def test_too_many_connections_are_told_of() -> None:
    async with (
        builder().use_max_connections(1).build() as server,
        client(server.port),
    ):
        with pytest.raises(Unavailable, match="Maximum connections"):
            await client(server.port).connect()


async def test_s_284_no_answer_in_time_is_told_with_command_and_seconds() -> None:
    async with Script() as script, script.joined(command_timeout=0.05) as (broker, visitor):
        with pytest.raises(Timeout, match=r"Publish: no answer from 127.* within 0\.05 s"):
            await broker.publish("q", 1, id="late")
        asked = await visitor.expect("Publish")
        visitor.send("PublishAck", asked["id"], queue="q")  # too late: nobody is told
        going = asyncio.create_task(broker.publish("q", 2))
        await visitor.answer("Publish")
        await going


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"username": "u"}, "Both username and password must be set together"),
        ({"keep_alive_interval": 0}, "keep_alive_interval"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(BadOption, match=text):
        Broker(**options)
