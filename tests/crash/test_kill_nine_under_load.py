"""The server is killed with SIGKILL while clients push and work, and started again on its file.

Set TANDEMQ_KILLS for another number of kills and TANDEMQ_TEST_SEED to repeat a run.
TANDEMQ_TEST_BUFFERED=1 is for a server that answers a plain push before it has written it:
then only what was pushed `durable` is held against it.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from tests.crash.load import FINAL_STATES, LIVE_STATES, Book, Party, Pusher, Worker
from tests.support.patience import eventually
from tests.support.server import Server, figure
from tests.support.wire import Wire

KILLS = figure("TANDEMQ_KILLS", short=5, long=20)
ONLY_DURABLE = os.environ.get("TANDEMQ_TEST_BUFFERED", "") not in ("", "0")
JOBS_OF_A_PUSHER = 700

pytestmark = pytest.mark.timeout(120 + 20 * KILLS)


@pytest.fixture
def seed() -> str:
    """Printed, so that a failure can be repeated."""
    chosen = os.environ.get("TANDEMQ_TEST_SEED") or str(random.SystemRandom().randrange(10**9))
    print(f"TANDEMQ_TEST_SEED={chosen}")
    return chosen


def owed(book: Book) -> list[str]:
    """The ids that must not be lost."""
    return [i for i, job in book.pushed.items() if job["durable"] or not ONLY_DURABLE]


def assert_every_confirmed_push_is_in_one_state(wire: Wire, queue: str, book: Book) -> None:
    ids = owed(book)
    states = dict(zip(ids, wire.states(ids), strict=True))
    lost = [i for i, state in states.items() if state not in LIVE_STATES | FINAL_STATES]
    assert not lost, f"{len(lost)} confirmed pushes are gone, such as {lost[:5]}"
    listed = Counter(
        job["id"] for state in sorted(LIVE_STATES | FINAL_STATES) for job in wire.jobs(queue, state)
    )
    assert {i: listed[i] for i in ids if listed[i] != 1} == {}, "not listed in exactly one state"


def assert_every_confirmed_end_still_holds(wire: Wire, book: Book) -> None:
    acked = list(book.completed)
    undone = [i for i, s in zip(acked, wire.states(acked), strict=True) if s != "completed"]
    assert not undone, f"{len(undone)} confirmed ACKs are undone, such as {undone[:5]}"
    results = wire.do_all({"cmd": "GetResult", "id": i} for i in acked)
    assert [answer.get("result") for answer in results] == list(book.completed.values())
    buried = list(book.buried)
    assert set(wire.states(buried)) <= {"failed"}, "a confirmed final FAIL is undone"
    failed = list(book.failures)
    jobs = wire.do_all({"cmd": "GetJob", "id": i} for i in failed)
    forgotten = [
        i
        for i, answer in zip(failed, jobs, strict=True)
        if answer["job"]["attempts"] < book.failures[i]
    ]
    assert not forgotten, f"confirmed FAILs are not counted, such as {forgotten[:5]}"


def assert_the_file_is_whole(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def start_all(parties: list[Party]) -> None:
    for party in parties:
        party.start()


def stop_all(parties: list[Party]) -> None:
    for party in parties:
        party.stopping.set()
    for party in parties:
        party.join(30)
        assert not party.is_alive(), f"{party.name} hangs"


def test_nothing_confirmed_is_lost_or_undone_however_often_the_server_is_killed(
    own_server: Server, queue: str, seed: str
) -> None:
    server, book = own_server, Book()
    moments = random.Random(seed)
    jobs_each = JOBS_OF_A_PUSHER * (KILLS + 1) // 3
    pushers: list[Party] = [
        Pusher(f"pusher{n}", server, book, queue, seed, limit=jobs_each) for n in range(3)
    ]
    workers: list[Party] = [Worker(f"worker{n}", server, book, queue, seed) for n in range(4)]
    start_all(pushers + workers)
    for _ in range(KILLS):
        time.sleep(moments.uniform(0.2, 1.0))
        server.kill()
        server.start()
        assert book.complaints == []
    time.sleep(moments.uniform(0.2, 0.6))
    stop_all(pushers + workers)
    assert book.complaints == []
    assert len(book.pushed) > 100 * KILLS
    assert len(book.completed) > 50 * KILLS
    with server.connect(timeout=30) as wire:
        assert_every_confirmed_push_is_in_one_state(wire, queue, book)
        assert_every_confirmed_end_still_holds(wire, book)

    # Once more from the file alone, then everything that is left is worked off.
    server.kill()
    server.start()
    with server.connect(timeout=30) as wire:
        assert_every_confirmed_push_is_in_one_state(wire, queue, book)
        assert_every_confirmed_end_still_holds(wire, book)
        late = [Worker(f"late{n}", server, book, queue, seed) for n in range(4)]
        start_all([*late])
        eventually(
            lambda: not set(wire.counts(queue)) & LIVE_STATES, "all jobs end", within=60, every=0.2
        )
        stop_all([*late])
        assert book.complaints == []
        assert set(wire.states(owed(book))) <= FINAL_STATES
        assert_every_confirmed_end_still_holds(wire, book)
    assert server.stop() == 0
    assert_the_file_is_whole(server.data)


def test_a_server_killed_while_it_recovers_recovers_at_the_next_start(
    own_server: Server, queue: str, seed: str
) -> None:
    server, moments = own_server, random.Random(seed)
    with server.connect() as wire:
        job = {"data": 1, "maxAttempts": 50, "backoff": 0, "durable": True}
        wire.do("PUSHB", queue=queue, jobs=[{"customId": f"j{n}", **job} for n in range(1000)])
        taken = wire.do("PULLB", queue=queue, owner="w", count=500)
        assert len(taken["jobs"]) == 500
        done, tokens = [j["id"] for j in taken["jobs"][:100]], taken["tokens"][:100]
        wire.do("ACKB", ids=done, tokens=tokens)
    server.kill()
    for _ in range(6):
        server.start(wait=False)
        time.sleep(moments.uniform(0.02, 0.5))
        server.kill()
    server.start()
    with server.connect() as wire:
        assert set(wire.states(done)) == {"completed"}
        found: Counter[str] = Counter()

        def pull() -> bool:
            jobs = wire.do("PULLB", queue=queue, owner="again", count=200)["jobs"]
            found.update(job["id"] for job in jobs)
            return found.total() >= 900

        eventually(pull, "every unfinished job is handed out again", within=15)
        assert found == Counter(f"j{n}" for n in range(1000) if f"j{n}" not in set(done))
    assert server.stop() == 0
    assert_the_file_is_whole(server.data)


def test_a_durable_push_is_there_however_soon_after_its_answer_the_server_is_killed(
    own_server: Server, queue: str
) -> None:
    confirmed = []
    for n in range(4):
        with own_server.connect() as wire:
            confirmed.append(wire.push(queue, {"n": n}, durable=True))
            own_server.kill()
        own_server.start()
    with own_server.connect() as wire:
        assert wire.states(confirmed) == ["waiting"] * 4
        assert sorted(job["data"]["n"] for job in wire.jobs(queue)) == [0, 1, 2, 3]
