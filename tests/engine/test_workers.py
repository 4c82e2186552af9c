"""The registry of those who say that they are working."""

from __future__ import annotations

from typing import Any

import pytest

from tandemq.engine.workers import ACTIVE, BARE, STALE, Worker, Workers, weight
from tandemq.model.errors import BadRequest


def worker(id: str = "w", conn: int | None = 1, seen: int = 0, **figures) -> Worker:
    fields = {"queues": ["q"], "concurrency": 1, "hostname": "h", "pid": 7} | figures
    return Worker(id, "name", conn=conn, registered=seen, seen=seen, **fields)


def test_a_worker_is_found_by_its_id() -> None:
    workers = Workers()
    w = workers.register(worker())
    assert workers.get("w") is w
    assert len(workers) == 1
    assert workers.get("x") is None
    assert workers.get(None) is None
    assert workers.get(["w"]) is None


def test_a_worker_that_registers_again_keeps_its_name_and_its_figures() -> None:
    workers = Workers()
    first = workers.register(worker())
    first.processed = 5
    again = worker(conn=2, seen=90, queues=["r"], concurrency=4, hostname="i", pid=8)
    again.name = "another"
    assert workers.register(again) is first
    assert (first.name, first.processed, first.registered) == ("name", 5, 0)
    assert (first.queues, first.concurrency, first.hostname, first.pid) == (["r"], 4, "i", 8)
    assert (first.conn, first.seen) == (2, 90)
    assert len(workers) == 1


def test_a_worker_is_removed_once() -> None:
    workers = Workers()
    workers.register(worker())
    assert workers.unregister("w")
    assert not workers.unregister("w")
    assert not workers.unregister(None)
    assert len(workers) == 0


def test_workers_go_with_the_connection_that_registered_them() -> None:
    workers = Workers()
    for id, conn in (("a", 1), ("b", 2), ("c", 1), ("d", None)):
        workers.register(worker(id, conn))
    workers.disconnected(1)
    assert [w.id for w in workers.listed(0)] == ["b", "d"]


def test_workers_of_a_guest_outlive_its_connection() -> None:
    workers = Workers()
    for id, conn in (("a", 1), ("b", 2)):
        workers.register(worker(id, conn))
    workers.keep(1)
    workers.disconnected(1)
    workers.disconnected(2)
    assert [w.id for w in workers.listed(0)] == ["a"]
    assert workers.unregister("a")
    assert len(workers) == 0


@pytest.mark.parametrize(
    ("silent", "status"), [(0, ACTIVE), (30_000, ACTIVE), (30_001, STALE), (90_000, STALE)]
)
def test_a_silent_worker_is_stale(silent: int, status: str) -> None:
    workers = Workers()
    w = workers.register(worker())
    assert workers.status(w, silent) == status
    assert workers.listed(silent) == [w]


def test_a_worker_that_is_silent_for_three_times_as_long_is_forgotten() -> None:
    workers = Workers(timeout=100)
    workers.register(worker("a"))
    workers.register(worker("b", seen=1))
    assert [w.id for w in workers.listed(301)] == ["b"]
    assert len(workers) == 1


def test_the_workers_of_a_queue_are_those_that_were_heard_of_lately() -> None:
    workers = Workers()
    for id, queues, seen in (("a", ["q"], 0), ("b", ("p", "q"), 9), ("c", "q", 9), ("d", None, 9)):
        workers.register(Worker(id, "w", queues, 1, "h", 1, 1, registered=seen, seen=seen))
    assert [w.id for w in workers.on("q", 9)] == ["a", "b"]
    assert [w.id for w in workers.on("q", 30_001)] == ["b"]
    assert workers.on("r", 9) == []


def test_the_workers_of_a_connection_are_those_it_registered() -> None:
    workers = Workers()
    for id, conn in (("a", 1), ("b", 2), ("c", None)):
        workers.register(Worker(id, "w", ["q"], 1, "h", 1, conn, registered=0, seen=0))
    assert [w.id for w in workers.of(1)] == ["a"]
    assert workers.of(None) == []


@pytest.mark.parametrize(
    ("value", "least"),
    [
        (None, 0),
        ("x" * 1_000, 1_000),
        (b"x" * 1_000, 1_000),
        ([[]] * 100, 5_600),  # of an empty list
        ({str(n): (1, 2) for n in range(100)}, 5_600),
        ([{"a": ["x" * 500]}, ["y" * 500]], 1_000),
    ],
)
def test_values_weigh_at_least_what_they_take(value: Any, least: int) -> None:
    assert least <= weight(value) < 10 * least + 100


def test_the_deepest_value_is_weighed() -> None:
    value: Any = None
    for _ in range(100_000):
        value = [value]
    assert weight(value) > 100_000


def test_there_is_room_for_so_many_bytes_of_workers() -> None:
    workers = Workers(timeout=100, room=4 * BARE)
    workers.register(worker("a", queues=["x" * 500]))
    workers.register(worker("b"))
    taken = workers.size_bytes
    assert 2 * BARE + 500 < taken < 4 * BARE
    for refused in (worker("c"), worker("b", queues=["x" * 1_500])):
        with pytest.raises(BadRequest, match="no room for more than 2 such workers"):
            workers.register(refused)
    assert workers.size_bytes == taken
    workers.register(worker("b", queues=["x" * 700], seen=1))
    assert taken + 600 < workers.size_bytes < 4 * BARE


def test_workers_that_are_silent_for_too_long_make_room() -> None:
    workers = Workers(timeout=100, room=3 * BARE)
    workers.register(worker("a"))
    workers.register(worker("b", seen=1))
    with pytest.raises(BadRequest):
        workers.register(worker("c", seen=300))
    workers.register(worker("c", seen=301))
    assert [w.id for w in workers.listed(301)] == ["b", "c"]


def test_the_room_of_workers_that_are_gone_is_free() -> None:
    workers = Workers()
    for n in range(6):
        workers.register(worker(str(n), conn=n % 3, seen=n // 5 * 1_000_000))
        workers.register(worker(str(n), conn=(n + 1) % 3, seen=n // 5 * 1_000_000))
    workers.disconnected(1)
    assert workers.unregister("1")
    assert [w.id for w in workers.listed(1_000_000)] == ["5"]
    assert workers.of(0)[0].id == "5"
    workers.disconnected(0)
    assert (len(workers), workers.size_bytes, workers._of) == (0, 0, {})
