"""Mixed commands of all families for a long time: the server stays as small and as right as it was.

TANDEMQ_TEST_SECONDS says for how long; with TANDEMQ_SOAK=1 it is twenty minutes.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.soak.mixed import QUEUES, TOKEN, Book, admitted, fill, play
from tests.support.patience import eventually
from tests.support.server import Server, figure, is_own, room
from tests.support.wire import Wire

from tandemq.commands.all import COMMANDS

LONG = 600  # s; from here on the first fifth is long enough to have filled all caches
SECONDS = figure("TANDEMQ_TEST_SECONDS", short=60, long=1_200)
CLIENTS = 6
STATES = (
    "waiting", "prioritized", "delayed", "active", "completed", "failed", "waiting-children",
)  # fmt: skip
SMALL = {
    "TANDEMQ_TOKENS": TOKEN,
    "TANDEMQ_MAX_COMPLETED": "1000",
    "TANDEMQ_WEBHOOK_MAX_RETRIES": "1",
    "TANDEMQ_LOG_LEVEL": "error",
}
"""Caches that are full within the first fifth; ``fill`` fills those that have no setting."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(SECONDS + 240),
    pytest.mark.skipif(not is_own(), reason="uses our own commands"),
]


def listed(wire: Wire, queue: str) -> dict[str, int]:
    sizes = {state: len(wire.jobs(queue, state)) for state in STATES}
    return {state: size for state, size in sizes.items() if size}


def assert_counts_agree_with_lists(wire: Wire) -> None:
    """Time goes on while somebody counts, so a few looks may be needed."""
    for queue in QUEUES:

        def agree(queue: str = queue) -> bool:
            counted = wire.counts(queue)
            found = listed(wire, queue)
            every = len({job["id"] for job in wire.jobs(queue)})
            return counted == found == wire.counts(queue) and every == sum(found.values())

        eventually(agree, f"counts of {queue} agree with its lists", within=20)


def quieten(wire: Wire) -> None:
    """Nothing comes into being by itself any more."""
    for cron in wire.do("CronList")["crons"]:
        wire.do("CronDelete", name=cron["name"])
    for hook in wire.do("ListWebhooks")["data"]["webhooks"]:
        wire.do("RemoveWebhook", webhookId=hook["id"])
    for queue in QUEUES:
        wire.do("SetDlqConfig", queue=queue, config={"autoRetry": False})
        wire.do("Resume", queue=queue)


def empty(wire: Wire) -> None:
    """Take everything out of every queue, and the queues with it."""
    for queue in QUEUES:
        wire.do("Drain", queue=queue)
        wire.do("PurgeDlq", queue=queue)
        while wire.do("Clean", queue=queue, grace=0, state="completed", limit=1_000)["count"]:
            pass
        assert not set(wire.counts(queue)) & {"waiting", "prioritized", "delayed", "failed"}
        wire.do("Obliterate", queue=queue)
        assert wire.counts(queue) == {}
    assert wire.do("ListQueues")["queues"] == []
    wire.do("CompactMemory")


def play_and_empty(server: Server, seconds: float, seed: int, book: Book) -> int:
    """Return how much memory is left in use when all is over."""
    play(server, seconds, CLIENTS, seed, book)
    assert not book.broken, book.broken
    with admitted(server, timeout=60) as wire:
        quieten(wire)
        assert_counts_agree_with_lists(wire)
        empty(wire)
        figures = wire.do("Stats")["stats"]
        assert [figures[name] for name in ("waiting", "active", "delayed", "dlq")] == [0] * 4
        wire.do("CompactMemory")
    return server.memory()


def test_after_mixed_commands_for_a_long_time_the_server_is_as_it_was(
    new_server: Callable[..., Server], remark: Callable[[str], None]
) -> None:
    server = new_server(environment=SMALL).start()
    book = Book()
    with admitted(server) as wire:
        fill(wire)
    first = play_and_empty(server, SECONDS / 5, 1, book)
    files = server.open_files()
    last = play_and_empty(server, SECONDS * 4 / 5, 2, book)
    total = sum(book.asked.values())
    remark(
        f"soak: {total:,} commands, {first >> 20} MiB after a fifth, {last >> 20} MiB at the end"
    )
    # A short run has not filled every cache after its first fifth: what it shows is a leak per job.
    assert last < first * 1.1 + room(6 if SECONDS >= LONG else 40)
    eventually(lambda: server.open_files() <= files, "no descriptor is left open", within=10)
    assert set(COMMANDS) - set(book.asked) == {"Auth"}
    assert not [error for error in book.refused if "Internal" in error], book.refused
    assert server.stop() == 0
    log = server.log.read_text("utf-8")
    assert "Traceback" not in log
    assert "a bug in" not in log
