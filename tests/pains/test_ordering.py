"""Wishes for an order that holds for each key, with any number of workers."""

from __future__ import annotations

import threading
from collections import defaultdict
from random import Random

import pytest
from tests.support.server import Server
from tests.support.wire import Wire

ONE = {"concurrency": 1}


@pytest.mark.slow
def test_jobs_of_one_key_complete_in_the_order_in_which_they_were_added(
    server: Server, wire: Wire, queue: str
) -> None:
    keys, each, lock = 10, 100, threading.Lock()
    done: dict[str, list[int]] = defaultdict(list)

    def work(seed: int) -> None:
        dice = Random(seed)
        with server.connect() as mine:
            while job := (answer := mine.pull(queue, group=ONE, timeout=1_000))["job"]:
                settle = {"id": job["id"], "token": answer["token"]}
                if dice.random() < 0.1:
                    mine.do("FAIL", **settle, error="by chance")
                    continue
                with lock:
                    done[job["groupId"]].append(job["data"])
                mine.do("ACK", **settle)

    jobs = [
        {"data": n, "groupId": f"key {k}", "maxAttempts": 1_000, "backoff": 0}
        for n in range(each)
        for k in range(keys)
    ]
    wire.do("PUSHB", queue=queue, jobs=jobs)
    workers = [threading.Thread(target=work, args=(n,)) for n in range(10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(100)
    assert wire.counts(queue) == {"completed": keys * each}
    assert done == {f"key {k}": list(range(each)) for k in range(keys)}


def test_while_the_first_of_one_key_has_to_wait_its_successors_wait_and_other_keys_go_on(
    wire: Wire, queue: str
) -> None:
    for n in range(3):
        for key in ("a", "b"):
            wire.push(queue, f"{key}{n}", groupId=key)
    first = wire.pull(queue, group=ONE)
    assert first["job"]["data"] == "a0"
    wire.do("FAIL", id=first["job"]["id"], token=first["token"], retryAfter=700)
    seen = []
    while len(seen) < 6:
        answer = wire.pull(queue, group=ONE, timeout=5_000)
        seen.append(answer["job"]["data"])
        wire.do("ACK", id=answer["job"]["id"], token=answer["token"])
    assert seen == ["b0", "b1", "b2", "a0", "a1", "a2"]
