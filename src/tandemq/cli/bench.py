"""``tandemq bench``: a load of known size, and what the server made of it.

The figures tell about this server, this machine and this client together; the benchmarks in
``bench/`` measure the server alone.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import click

from tandemq.cli import output
from tandemq.cli.groups import Verbs
from tandemq.cli.link import failures, target
from tandemq.cli.output import Rows, Shown, columns
from tandemq.cli.verb import current, link_options, verb
from tandemq.client.client import AsyncClient

_group = Verbs()
BATCH = 100  # jobs of a PUSHB
PATIENCE = 1_000  # ms that a pull waits where nothing is left
Step = Callable[[], Awaitable[int]]


def _amount(flag: str, usual: int, least: int, most: int, line: str) -> Callable[[Any], Any]:
    kind = click.IntRange(least, most)
    return click.option(flag, type=kind, default=usual, show_default=True, help=line)


@verb(_group, link=None)
@_amount("--jobs", 5_000, 1, 10_000_000, "Jobs of a step.")
@_amount("--concurrency", 50, 1, 1_000, "Calls at a time.")
@_amount("--size", 100, 0, 1_000_000, "Bytes of each job.")
@_amount("--links", 4, 1, 64, "Connections.")
@link_options
def bench(jobs: int, concurrency: int, size: int, links: int) -> Shown:
    """Load a server for a moment and print what it did: jobs, rate and times of answers.

    Jobs of SIZE bytes are added one by one, then in hundreds, then taken and ended, in a queue
    that is made for it and removed.

    Example: tandemq bench --jobs 20000 --concurrency 100
    """
    where = {**target(current()), "pool_size": links}
    with failures():
        rows = asyncio.run(_load(where, jobs, concurrency, "x" * size))
    return Rows(columns("step", "jobs", "seconds", "perSecond", "medianMs", "p99Ms"), rows)


async def _load(
    where: dict[str, Any], jobs: int, concurrency: int, body: str
) -> list[dict[str, Any]]:
    queue = f"bench-{os.getpid()}-{time.time_ns()}"
    async with AsyncClient(**where) as client:
        await client.connect()
        try:

            async def add() -> int:
                await client.call("PUSH", queue=queue, data=body)
                return 1

            async def add_many() -> int:
                await client.call("PUSHB", queue=queue, jobs=[{"data": body}] * BATCH)
                return BATCH

            async def work() -> int:
                got = await client.call("PULL", queue=queue, timeout=PATIENCE)
                if got.get("job") is None:
                    return 0
                await client.call("ACK", id=got["job"]["id"])
                return 1

            added = await _timed("add", add, jobs, concurrency)
            many = await _timed("add many", add_many, jobs, concurrency)
            return [
                added,
                many,
                await _timed("run", work, added["jobs"] + many["jobs"], concurrency),
            ]
        finally:
            await client.call("Obliterate", queue=queue)


async def _timed(step: str, once: Step, jobs: int, concurrency: int) -> dict[str, Any]:
    """Do a step until so many jobs are through it, and return its figures."""
    times: list[float] = []
    begun, done = 0, 0

    async def hand() -> None:
        nonlocal begun, done
        while begun < jobs:
            begun += unit
            started = time.perf_counter()
            count = await once()
            times.append(time.perf_counter() - started)
            done += count
            bar.update(count)
            if not count:
                return

    unit = BATCH if step == "add many" else 1
    with output.progress(jobs, step) as bar:
        started = time.perf_counter()
        await asyncio.gather(*(hand() for _ in range(concurrency)))
        took = time.perf_counter() - started
    times.sort()
    return {
        "step": step,
        "jobs": done,
        "seconds": round(took, 3),
        "perSecond": round(done / took),
        "medianMs": round(times[len(times) // 2] * 1000, 2),
        "p99Ms": round(times[len(times) * 99 // 100] * 1000, 2),
    }
