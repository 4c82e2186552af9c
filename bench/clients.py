#!/usr/bin/env python3
"""Python workers, each against its own server: draining a queue, and one job at a time.

One worker process with handlers that do nothing. Servers run on core 0 with their
defaults, in memory; each client runs in a fresh process on core 1; all take turns in each round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import uvloop
from driver import pinned
from servers import NotAvailable, Ours, Reference, Server

CONCURRENCY = 10
WARM = 200  # jobs that are drained before the clock starts


class Row(NamedTuple):
    """One figure: whose, how it is measured, with how many jobs."""

    name: str
    ours: str
    theirs: str
    our_jobs: int
    their_jobs: int
    bar: float  # our rate over theirs, or their time over ours


ROWS = (
    Row("drain, async handlers, 10 at a time", "drain_async", "their_drain", 20_000, 1_000, 100),
    Row(
        "drain, handlers in threads, 10 at a time",
        "drain_threads",
        "their_drain",
        20_000,
        1_000,
        40,
    ),
    Row(
        "one job in flight, one at a time, put to run, s",
        "one_by_one",
        "their_one_by_one",
        100,
        60,
        10,
    ),
)


# -- ours ----------------------------------------------------------------------------------------


async def _drain(url: str, count: int, *, threads: bool) -> float:
    from tandemq import AsyncClient, Context, Worker

    loop, done = asyncio.get_running_loop(), 0
    ends: asyncio.Future[float] = loop.create_future()
    begins = 0.0

    def ran() -> None:
        nonlocal done, begins
        done += 1
        if done == WARM:
            begins = time.perf_counter()
        elif done == WARM + count:
            loop.call_soon_threadsafe(ends.set_result, time.perf_counter())

    async def in_loop(job: Context) -> None:
        ran()

    lock = threading.Lock()

    def in_thread(job: Context) -> None:
        with lock:
            ran()

    async with AsyncClient(url) as client:
        await client.queue("bench").add_many([("x", {"n": n}) for n in range(WARM + count)])
    handler: Callable[..., Any] = in_thread if threads else in_loop
    async with Worker("bench", handler, url=url, concurrency=CONCURRENCY):
        return count / (await ends - begins)


async def drain_async(url: str, count: int) -> float:
    return await _drain(url, count, threads=False)


async def drain_threads(url: str, count: int) -> float:
    return await _drain(url, count, threads=True)


async def one_by_one(url: str, count: int) -> float:
    from tandemq import AsyncClient, Context, Worker

    began, ran = asyncio.Event(), [0.0]

    async def handle(job: Context) -> None:
        ran[0] = time.perf_counter()
        began.set()

    took = []
    async with AsyncClient(url) as client, Worker("bench-one", handle, url=url, concurrency=1):
        for n in range(count):
            began.clear()
            put = time.perf_counter()
            await client.queue("bench-one").add("x", {"n": n})
            await began.wait()
            took.append(ran[0] - put)
    return median(took)


# -- the reference's official client -------------------------------------------------------------


def _their_queue(url: str, name: str) -> Any:
    from bunqueue import Queue

    return Queue(name, port=_port(url))


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


def their_drain(url: str, count: int) -> float:
    from bunqueue import Worker

    queue = _their_queue(url, "bench")
    warm = 20
    for start in range(0, warm + count, 100):
        part = range(start, min(start + 100, warm + count))
        queue.add_bulk([{"name": "x", "data": {"n": n}} for n in part])
    lock, ended, done, begins = threading.Lock(), threading.Event(), 0, 0.0

    def handle(job: Any) -> None:
        nonlocal done, begins
        with lock:
            done += 1
            if done == warm:
                begins = time.perf_counter()
            elif done == warm + count:
                ended.set()

    worker = Worker("bench", handle, port=_port(url), concurrency=CONCURRENCY)
    ended.wait()
    took = time.perf_counter() - begins
    worker.close()
    queue.close()
    return count / took


def their_one_by_one(url: str, count: int) -> float:
    from bunqueue import Worker

    began, ran, took = threading.Event(), [0.0], []

    def handle(job: Any) -> None:
        ran[0] = time.perf_counter()
        began.set()

    queue = _their_queue(url, "bench-one")
    worker = Worker("bench-one", handle, port=_port(url), concurrency=1)
    for n in range(count):
        began.clear()
        put = time.perf_counter()
        queue.add("x", {"n": n})
        began.wait()
        took.append(ran[0] - put)
    worker.close()
    queue.close()
    return median(took)


# -- rounds --------------------------------------------------------------------------------------


def measured(what: str, server: Server, count: int) -> float:
    """Measure in a fresh process on core 1."""
    words = [sys.executable, __file__, "--measure", what, "--port", str(server.port)]
    done = subprocess.run(
        [*pinned(1), *words, "--jobs", str(count)], capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        raise SystemExit(f"{what} failed:\n{done.stderr[-2000:]}")
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


def compare(rounds: int) -> list[tuple[Row, list[float], list[float]]]:
    """Measure every row in every round, ours and theirs in turn."""
    found: list[tuple[Row, list[float], list[float]]] = [(row, [], []) for row in ROWS]
    with Ours(stored=False, core=0) as our_server, Reference(stored=False, core=0) as their_server:
        for number in range(rounds):
            for row, ours, theirs in found:
                ours.append(measured(row.ours, our_server, row.our_jobs))
                theirs.append(measured(row.theirs, their_server, row.their_jobs))
                print(
                    f"round {number + 1}: {row.name}: {ours[-1]:.6g} {theirs[-1]:.6g}",
                    file=sys.stderr,
                )
    return found


def table(found: list[tuple[Row, list[float], list[float]]]) -> str:
    """Return the figures as a table of Markdown."""
    lines = [
        "| Row | tandemq | bunqueue-client | times better | single rounds | bar | reached |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    for row, ours, theirs in found:
        is_time = row.name.endswith(", s")
        ratios = [t / o if is_time else o / t for o, t in zip(ours, theirs, strict=True)]
        ratio = median(ratios)
        shown = [
            f"{median(values) * 1e3:.2f} ms" if is_time else f"{median(values):,.0f} /s"
            for values in (ours, theirs)
        ]
        name = row.name.removesuffix(", s")
        reached = "yes" if ratio >= row.bar else "NO"
        lines.append(
            f"| {name} | {shown[0]} | {shown[1]} | {ratio:.1f} |"
            f" {min(ratios):.1f} to {max(ratios):.1f} | {row.bar:g} | {reached} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.measure:
        try:
            print(table(compare(given.rounds)))
        except NotAvailable as missing:
            raise SystemExit(str(missing)) from None
        return
    measure = globals()[given.measure]
    value = measure(f"tandemq://127.0.0.1:{given.port}", given.jobs)
    if asyncio.iscoroutine(value):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as tandemq worker
            value = runner.run(value)
    print(json.dumps(value))


if __name__ == "__main__":
    main()
