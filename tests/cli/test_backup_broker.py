"""S-250 for a broker: queues, messages, dead letters and users are the same after a restore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.shell import Shell
from tests.support.server import Server

from tandemq.broker import DeliveryMode, QueueOptions
from tandemq.client.broker.sync import SyncBroker

LOGIN = "admin:admin-pass-1"
SETTINGS = {
    "TANDEMQ_SUPERUSER": "admin",
    "TANDEMQ_SUPERUSER_PASSWORD": "admin-pass-1",
    "TANDEMQ_PASSWORD_HASH_BYTES": "8192",
    "TANDEMQ_PASSWORD_HASH_ROUNDS": "1",
}


class Place:
    """A server with its superuser, seen through the shell and through a client."""

    def __init__(self, server: Server) -> None:
        self.url = f"tandemq://{LOGIN}@127.0.0.1:{server.port}"
        self.shell = Shell(server.port)
        self.shell._early = ["--url", self.url]

    def fill(self) -> None:
        """Messages that wait, dead letters, and a user who may read them."""
        urgent = QueueOptions(mode=DeliveryMode.PRIORITY_BASED, max_queue_size=99)
        fragile = QueueOptions(enable_dead_letter_queue=True, max_retry_attempts=1)
        with SyncBroker(self.url) as broker:
            broker.create_queue("urgent", urgent)
            broker.create_queue("fragile", fragile)
            for n in range(20):
                broker.publish("urgent", n, priority=("low", "high")[n % 2], headers={"n": str(n)})
            with broker.subscribe("fragile") as messages:
                for n in range(3):
                    broker.publish("fragile", n)
                    next(messages).give_back()
            broker.users.create("alice", "secret")
            broker.users.grant("alice", "urgent*", ["Subscribe", "ListQueues"])

    def statistics(self) -> dict[str, Any]:
        """Everything that is counted or listed."""
        with SyncBroker(self.url) as broker:
            grants = broker.users.permissions("alice")
        return {
            "queues": self.shell.json("broker", "queues"),
            "users": self.shell.json("user", "list"),
            "grants": [(each.pattern, each.operations) for each in grants],
            "dead": self.shell.json("dlq", "list", "fragile"),
        }

    def spoil(self) -> None:
        with SyncBroker(self.url) as broker:
            for queue in ("urgent", "fragile", "fragile.dlq"):
                broker.delete_queue(queue)
            broker.users.delete("alice")


def test_a_broker_is_the_same_after_a_restore_and_after_compaction(
    tmp_path: Path, new_server: Callable[..., Server]
) -> None:
    server, nobody = new_server(environment=SETTINGS).start(), Shell(1)
    place, copy = Place(server), str(tmp_path / "copy.db")
    place.fill()
    before = place.statistics()
    assert len(before["queues"]) == 3
    assert len(before["dead"]) == 3
    made = nobody.json("backup", "create", copy, "--data", str(server.data))
    assert made["messages"] == 23
    place.spoil()
    assert place.statistics() != before
    server.stop()
    nobody.text("backup", "restore", copy, "--data", str(server.data), "--yes")
    server.start()
    assert place.statistics() == before
    place.shell.text("compact")
    assert place.statistics() == before
    url = place.url.replace(LOGIN, "alice:secret")
    with SyncBroker(url) as alice, alice.subscribe("urgent") as messages:
        seen = []
        for _ in range(20):
            with next(messages) as message:
                seen.append(message.payload)
                assert message.headers["n"] == str(message.payload)
    assert seen == [*range(1, 20, 2), *range(0, 20, 2)]
