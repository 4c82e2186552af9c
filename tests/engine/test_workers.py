"""The registry of those who say that they are working."""

from __future__ import annotations

import pytest

from tandemq.engine.workers import ACTIVE, STALE, Worker, Workers


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
