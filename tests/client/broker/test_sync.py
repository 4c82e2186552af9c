"""The client of the broker without asyncio, against a server process."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.support.patience import eventually
from tests.support.server import Server

from tandemq.broker import QueueOptions
from tandemq.client.broker import Message
from tandemq.client.broker.sync import SyncBroker
from tandemq.client.errors import Closed, Refused

BINARY = pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])


def client(server: Server, binary: bool = False) -> SyncBroker:
    return SyncBroker(f"tandemq://127.0.0.1:{server.port}", binary=binary)


@BINARY
def test_messages_are_published_and_subscribed_to(server: Server, queue: str, binary: bool) -> None:
    with client(server, binary) as broker:
        assert broker.is_connected
        for n in range(3):
            broker.publish(queue, n, priority="high")
        with broker.subscribe(queue, prefetch=2) as messages:
            for message in messages:
                with message:
                    assert (message.queue, message.headers) == (queue, {"priority": "high"})
                    if message.payload == 2:
                        break
            assert messages.get(timeout=0.01) is None
        broker.unsubscribe(queue)
        info = broker.queue_info(queue)
        assert info is not None
        assert info.message_count == 0
        assert queue in broker.list_queues()


@BINARY
def test_an_exception_gives_the_message_back(server: Server, queue: str, binary: bool) -> None:
    with client(server, binary) as broker, broker.subscribe(queue) as messages:
        broker.publish(queue, {"n": 1})
        with pytest.raises(ZeroDivisionError), next(messages) as message:
            raise ZeroDivisionError
        again = next(messages)
        assert (again.id, again.decode(dict[str, int])) == (message.id, {"n": 1})
        again.ack()


def test_threads_share_a_client_and_a_subscription(server: Server, queue: str) -> None:
    seen: list[Any] = []

    with client(server) as broker, broker.subscribe(queue) as messages:

        def work() -> None:
            for message in messages:
                with message:
                    seen.append(message.payload)

        workers = [threading.Thread(target=work) for _ in range(3)]
        senders = [threading.Thread(target=broker.publish, args=(queue, n)) for n in range(20)]
        for thread in workers + senders:
            thread.start()
        eventually(lambda: len(seen) == 20, "all messages")
        messages.close()
        for thread in workers + senders:
            thread.join(10)
    assert sorted(seen) == list(range(20))


def test_a_handler_works_beside_the_program(server: Server, queue: str) -> None:
    seen: list[Any] = []

    def take(message: Message) -> None:
        seen.append(message.payload)

    with client(server) as broker:
        broker.attach(take, queue)
        broker.publish(queue, 1)
        eventually(lambda: seen == [1], "the message")


def test_queues_and_refusals(server: Server, queue: str) -> None:
    with client(server) as broker:
        broker.declare(queue, QueueOptions(max_queue_size=3))
        broker.create_queue(queue)
        broker.delete_queue(queue)
        assert broker.queue_info(queue) is None
        with pytest.raises(Refused, match=r"AdminListUsers|Superuser"):
            broker.users.all()
    with pytest.raises(Closed):
        broker.publish(queue, 1)
