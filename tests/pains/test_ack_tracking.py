"""Reports of acknowledgements that were counted wrong, or cost more than the one job."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest
from tests.support.patience import eventually
from tests.support.server import Server, lease_grace
from tests.support.wire import NoAnswer, Refused, Wire


@pytest.mark.slow
def test_what_is_acknowledged_in_time_is_never_counted_as_late(
    server: Server, wire: Wire, queue: str
) -> None:
    size, starts, lock = 600, Counter[str](), threading.Lock()

    def consume() -> None:
        with server.connect() as mine:
            while jobs := (
                taken := mine.do(
                    "PULLB", queue=queue, owner="w", count=20, timeout=500, lockTtl=1_000
                )
            )["jobs"]:
                with lock:
                    starts.update(job["id"] for job in jobs)
                time.sleep(0.1)
                mine.do("ACKB", ids=[job["id"] for job in jobs], tokens=taken["tokens"])

    ids = wire.do("PUSHB", queue=queue, jobs=[{"data": n} for n in range(size)])["ids"]
    with server.connect() as listener:
        listener.do("SubscribeEvents", queue=queue)
        consumers = [threading.Thread(target=consume) for _ in range(2)]
        for each in consumers:
            each.start()
        for each in consumers:
            each.join(60)
        seen = Counter(
            listener.next_frame(timeout=5)["event"]["eventType"] for _ in range(2 * size)
        )
        with pytest.raises(NoAnswer):
            listener.next_frame(timeout=0.1)
    assert seen == {"pulled": size, "completed": size}
    assert starts == Counter(ids)
    assert {(job["attempts"], job["stallCount"]) for job in wire.jobs(queue)} == {(0, 0)}


@pytest.mark.slow
def test_one_late_acknowledgement_costs_that_job_and_nothing_else(
    server: Server, wire: Wire, queue: str
) -> None:
    wire.do("PUSHB", queue=queue, jobs=[{"data": n} for n in range(10)])
    with server.connect() as worker:
        taken = worker.do("PULLB", queue=queue, owner="w", count=10, lockTtl=300)
        ids, tokens = [job["id"] for job in taken["jobs"]], taken["tokens"]
        worker.do("ExtendLocks", ids=ids[:9], tokens=tokens[:9], durations=[60_000] * 9)
        again = eventually(
            lambda: wire.pull(queue, owner="other")["job"],
            "the tenth is given on",
            within=2 + lease_grace(),
        )
        assert again["id"] == ids[9]
        with pytest.raises(Refused, match="lock token"):
            worker.do("ACK", id=ids[9], token=tokens[9])
        assert worker.ping(), "the connection goes on"
        assert wire.counts(queue) == {"active": 10}
        worker.do("ACKB", ids=ids[:9], tokens=tokens[:9])
    assert wire.counts(queue) == {"completed": 9, "active": 1}


def test_what_a_consumer_held_is_not_counted_as_active_when_it_is_gone(
    server: Server, wire: Wire, queue: str
) -> None:
    wire.do("PUSHB", queue=queue, jobs=[{"data": n} for n in range(5)])
    with server.connect() as consumer:
        assert len(consumer.do("PULLB", queue=queue, owner="w", count=5)["jobs"]) == 5
        assert wire.counts(queue) == {"active": 5}
    eventually(lambda: wire.counts(queue) == {"waiting": 5}, "all wait again", within=2)
    assert wire.do("Count", queue=queue)["count"] == 5


@pytest.mark.slow
def test_a_window_is_never_exceeded_and_opens_again_however_many_leases_run_out(
    server: Server, wire: Wire, queue: str
) -> None:
    wire.do("SetConcurrency", queue=queue, limit=5)
    wire.do("SetStallConfig", queue=queue, config={"maxStalls": 0})
    wire.do("PUSHB", queue=queue, jobs=[{"data": n, "maxAttempts": 1_000} for n in range(20)])
    redelivered = 0
    with server.connect() as forgetful:
        while redelivered < 15:
            taken = forgetful.do(
                "PULLB", queue=queue, owner="w", count=20, timeout=5_000, lockTtl=50
            )["jobs"]
            assert 1 <= len(taken) <= 5
            assert wire.counts(queue)["active"] <= 5
            redelivered += sum(job["attempts"] > 0 for job in taken)
    while wire.counts(queue) != {"completed": 20}:
        taken = wire.do("PULLB", queue=queue, owner="w", count=20, timeout=5_000)
        assert 1 <= len(taken["jobs"]) <= 5, "it flows again"
        wire.do("ACKB", ids=[job["id"] for job in taken["jobs"]], tokens=taken["tokens"])
