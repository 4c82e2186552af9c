"""The server is killed while publishers and subscribers of both wires are at work.

Set TANDEMQ_KILLS for another number of kills and TANDEMQ_TEST_SEED to repeat a run.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.patience import eventually
from tests.support.server import Server, figure
from tests.support.vibe import BOTH, Vibe, encoded, joined
from tests.support.wire import Lost, NoAnswer

from tandemq.wires.sniff import Wire

KILLS = figure("TANDEMQ_KILLS", short=2, long=20)
SHARED = "shared"  # a queue with several subscribers, which answer or do not
ORDERED = "ordered"  # a queue with one publisher and one subscriber
FANNED = "fanned"  # a queue in which everybody gets everything

pytestmark = pytest.mark.timeout(120 + 20 * KILLS)


@dataclass
class Book:
    """What the server confirmed; entries are made after the answer has arrived."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    confirmed: dict[str, list[str]] = field(default_factory=dict)
    """Ids by queue, in the order of their PublishAcks."""
    delivered: dict[str, Counter[str]] = field(default_factory=dict)
    acked: set[str] = field(default_factory=set)
    """Ids whose acknowledgment was followed by an answer to something else."""
    complaints: list[str] = field(default_factory=list)


class Party(threading.Thread):
    """A client that connects again whenever the server has died, until it is told to stop."""

    def __init__(self, name: str, server: Server, book: Book, queue: str, wire: Wire) -> None:
        super().__init__(name=name, daemon=True)
        self.server, self.book, self.queue, self.wire = server, book, queue, wire
        self.random = random.Random(name)
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                with joined(self.server.port, self.wire) as client:
                    self.begin(client)
                    while not self.stopping.is_set():
                        self.turn(client)
            except Lost:
                time.sleep(0.02)
            except NoAnswer as silent:
                self.complain(f"no answer from a running server: {str(silent)[:200]}")
                return
            except Exception as failure:
                self.complain(repr(failure)[:300])
                raise

    def complain(self, text: str) -> None:
        with self.book.lock:
            self.book.complaints.append(f"{self.name}: {text}")

    def begin(self, client: Vibe) -> None:
        """Do what each connection begins with."""

    def turn(self, client: Vibe) -> None:
        raise NotImplementedError


class Publisher(Party):
    """Publishes a few messages in one write; every id is used once."""

    count = 0

    def turn(self, client: Vibe) -> None:
        ids = [f"{self.name}:{self.count + n}" for n in range(self.random.randrange(1, 20))]
        self.count += len(ids)
        client.send_raw(
            b"".join(encoded(self.wire, "Publish", id, queue=self.queue, payload=id) for id in ids)
        )
        for id in ids:
            said = client.answer(id)
            if said["type"] != "PublishAck":
                self.complain(f"a publish was answered {said}")
            with self.book.lock:
                self.book.confirmed.setdefault(self.queue, []).append(id)
        self.stopping.wait(0.01 * self.random.random())


class Subscriber(Party):
    """Acknowledges what it gets, and now and then takes its leave or breaks off instead."""

    faithful = False

    def begin(self, client: Vibe) -> None:
        client.subscribe(self.queue)

    def turn(self, client: Vibe) -> None:
        client.timeout = 0.2
        try:
            frame = client.receive()
        except NoAnswer:
            return
        finally:
            client.timeout = 20.0
        id = frame["id"]
        with self.book.lock:
            self.book.delivered.setdefault(self.queue, Counter())[id] += 1
            if id in self.book.acked and self.queue != FANNED:
                self.book.complaints.append(f"{id} came after its acknowledgment was kept")
        if frame["payload"] != id:
            self.complain(f"{id} came with {frame['payload']!r}")
        if not self.faithful and self.random.random() < 0.002:
            client.send("Disconnect") if self.random.random() < 0.5 else client.reset()
            raise Lost("on purpose")
        self.settle(client, id)

    def settle(self, client: Vibe, id: str) -> None:
        client.ack(id)
        if self.random.random() < 0.1:
            # What is asked about a queue is answered when all before it is kept.
            client.ask("QueueInfo", "kept?", queue=self.queue)
            with self.book.lock:
                self.book.acked.add(id)


class Faithful(Subscriber):
    """Answers everything at once, and notes the order of first deliveries."""

    faithful = True


def start_and_kill(server: Server, book: Book, parties: list[Any], moments: random.Random) -> None:
    for party in parties:
        party.start()
    for _ in range(KILLS):
        time.sleep(moments.uniform(0.4, 1.2))
        server.kill()
        server.start()
        assert book.complaints == []
    time.sleep(moments.uniform(0.2, 0.6))


def stop_all(parties: list[Any]) -> None:
    for party in parties:
        party.stopping.set()
    for party in parties:
        party.join(30)
        assert not party.is_alive(), f"{party.name} hangs"


def waiting(server: Server, queue: str) -> int:
    with joined(server.port, Wire.JSON) as client:
        return int(client.ask("QueueInfo", queue=queue)["payload"]["messageCount"])


def prepare(server: Server) -> None:
    with joined(server.port, Wire.JSON) as client:
        for queue, mode in ((SHARED, 0), (ORDERED, 0), (FANNED, 1)):
            options = {"mode": mode, "maxQueueSize": 10**6, "maxRetryAttempts": 1000}
            said = client.ask("CreateQueue", queue=queue, payload=options)
            assert said["type"] == "CreateQueue"


def test_nothing_confirmed_is_lost_however_often_the_server_is_killed(own_server: Server) -> None:
    seed = os.environ.get("TANDEMQ_TEST_SEED") or str(random.SystemRandom().randrange(10**9))
    print(f"TANDEMQ_TEST_SEED={seed}")
    server, book = own_server, Book()
    prepare(server)
    publishers = [
        Publisher(f"{seed}-{queue}-p{n}", server, book, queue, wire)
        for queue in (SHARED, FANNED)
        for n, wire in enumerate(BOTH)
    ]
    subscribers: list[Party] = [
        Subscriber(f"{seed}-{queue}-s{n}", server, book, queue, wire)
        for queue in (SHARED, FANNED)
        for n, wire in enumerate(BOTH)
    ]
    start_and_kill(server, book, publishers + subscribers, random.Random(seed))
    stop_all(publishers)
    for queue in (SHARED, FANNED):
        eventually(lambda q=queue: waiting(server, q) == 0, f"{queue} runs dry", within=60)  # type: ignore[misc]
    eventually(lambda: not missing(book), "everything confirmed is delivered", within=60)
    stop_all(subscribers)
    assert book.complaints == []
    assert all(len(ids) > 20 * KILLS for ids in book.confirmed.values())
    assert len(book.acked) > KILLS


def missing(book: Book) -> list[str]:
    """Ids that were confirmed and never delivered."""
    with book.lock:
        return [
            id
            for queue, ids in book.confirmed.items()
            for id in ids
            if not book.delivered.get(queue, Counter())[id]
        ]


@pytest.mark.parametrize("wire", BOTH, ids=lambda wire: wire.value)
def test_a_single_subscriber_without_failures_gets_everything_in_order(
    own_server: Server, wire: Wire
) -> None:
    seed = os.environ.get("TANDEMQ_TEST_SEED") or str(random.SystemRandom().randrange(10**9))
    print(f"TANDEMQ_TEST_SEED={seed}")
    server, book = own_server, Book()
    prepare(server)
    publisher = Publisher(f"{seed}-p", server, book, ORDERED, wire)
    subscriber = Faithful(f"{seed}-s", server, book, ORDERED, wire)
    start_and_kill(server, book, [publisher, subscriber], random.Random(seed))
    stop_all([publisher])
    eventually(lambda: not missing(book), "everything confirmed is delivered", within=60)
    stop_all([subscriber])
    assert book.complaints == []
    confirmed = set(book.confirmed[ORDERED])
    first = [id for id in book.delivered[ORDERED] if id in confirmed]  # by first delivery
    assert first == book.confirmed[ORDERED]
