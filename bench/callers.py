"""Python clients that add jobs: ours against our server beside the reference's against its own.

Servers run on core 0, each client in a fresh process on core 1, in rounds that take turns, so that
whatever else the machine does meets both. `python bench/callers.py` prints medians and ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from statistics import median
from typing import Any

from driver import pinned
from servers import SERVERS, NotAvailable, Server

CALLERS = 50  # that add one job after the other, at the same time
BATCH = 1_000  # jobs of one add_bulk; ours makes parts of that size by itself
DATA = {"to": "someone@example.org", "subject": "hello", "number": 7}

Work = Callable[[int, int], None]


# -- what is measured, each in a process of its own ----------------------------------------------


def our_adds(port: int, jobs: int) -> None:
    """Add one by one, CALLERS at a time."""
    from tandemq import AsyncClient

    async def caller(queue: Any, count: int) -> None:
        for _ in range(count):
            await queue.add("mail", DATA)

    async def main() -> None:
        async with AsyncClient(f"tandemq://127.0.0.1:{port}") as client:
            queue = client.queue("bench")
            await asyncio.gather(*(caller(queue, jobs // CALLERS) for _ in range(CALLERS)))

    _run(main)


def our_gathered_adds(port: int, jobs: int) -> None:
    """Add one by one, a thousand at a time: what costs a thread there is cheap in a loop."""
    from tandemq import AsyncClient

    async def main() -> None:
        async with AsyncClient(f"tandemq://127.0.0.1:{port}") as client:
            queue = client.queue("bench")
            for _ in range(jobs // BATCH):
                await asyncio.gather(*(queue.add("mail", DATA) for _ in range(BATCH)))

    _run(main)


def our_batches(port: int, jobs: int) -> None:
    """Add all at once."""
    from tandemq import AsyncClient

    async def main() -> None:
        async with AsyncClient(f"tandemq://127.0.0.1:{port}") as client:
            await client.queue("bench").add_many(("mail", DATA) for _ in range(jobs))

    _run(main)


def our_sync_adds(port: int, jobs: int) -> None:
    """Add one by one from CALLERS threads."""
    from tandemq import Client

    with Client(f"tandemq://127.0.0.1:{port}") as client, ThreadPoolExecutor(CALLERS) as threads:
        queue = client.queue("bench")

        def caller(count: int) -> None:
            for _ in range(count):
                queue.add("mail", DATA)

        list(threads.map(caller, [jobs // CALLERS] * CALLERS))


def their_adds(port: int, jobs: int) -> None:
    """Add one by one from CALLERS threads."""
    from bunqueue import Queue

    with Queue("bench", port=port) as queue, ThreadPoolExecutor(CALLERS) as threads:

        def caller(count: int) -> None:
            for _ in range(count):
                queue.add("mail", DATA)

        list(threads.map(caller, [jobs // CALLERS] * CALLERS))


def their_batches(port: int, jobs: int) -> None:
    """Add in batches, one after the other."""
    from bunqueue import Queue

    with Queue("bench", port=port) as queue:
        each = iter([{"name": "mail", "data": DATA}] * jobs)
        while part := list(islice(each, BATCH)):
            queue.add_bulk(part)


def _run(main: Callable[[], Any]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())


WORK: dict[str, tuple[str, Work, int]] = {
    "ours, add": ("ours", our_adds, 40_000),
    "ours, add, gathered": ("ours", our_gathered_adds, 100_000),
    "ours, add, sync": ("ours", our_sync_adds, 8_000),
    "ours, add_many": ("ours", our_batches, 200_000),
    "reference, add": ("reference", their_adds, 8_000),
    "reference, add_bulk": ("reference", their_batches, 100_000),
}
RATIOS = (
    ("ours, add", "reference, add", 8.0),
    ("ours, add, gathered", "reference, add", 8.0),
    ("ours, add, sync", "reference, add", None),
    ("ours, add_many", "reference, add_bulk", 3.0),
)


# -- the rounds ----------------------------------------------------------------------------------


def measured(name: str, server: Server) -> tuple[float, float, float]:
    """Return jobs a second, and CPU in us per job of client and server."""
    jobs = WORK[name][2]
    before = server.cpu()
    command = [*pinned(1), sys.executable, __file__, "--one", name, "--port", str(server.port)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=300)
    seconds, cpu = json.loads(ran.stdout)
    return jobs / seconds, cpu / jobs * 1e6, (server.cpu() - before) / jobs * 1e6


def rounds(count: int) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """Measure everything so many times, in turns."""
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        for name in ("ours", "reference"):
            server = servers[name] = SERVERS[name](stored=False, core=0)
            stack.callback(server.close)
            server.start()
        for _ in range(count):
            for name, (home, _, _) in WORK.items():
                yield name, measured(name, servers[home])


def report(figures: dict[str, list[tuple[float, float, float]]]) -> None:
    """Print medians, and what they are beside each other."""
    print(f"{'':24}{'jobs/s':>12}{'client us':>12}{'server us':>12}")
    middle = {
        name: [median(column) for column in zip(*found, strict=True)]
        for name, found in figures.items()
    }
    for name, (rate, client, server) in middle.items():
        print(f"{name:24}{rate:12,.0f}{client:12.1f}{server:12.1f}")
    for ours, theirs, bar in RATIOS:
        wall = middle[ours][0] / middle[theirs][0]
        cpu = middle[theirs][1] / middle[ours][1]
        asked = f", at least {bar:g} is asked" if bar else ""
        print(f"{ours} / {theirs}: {wall:.1f} times the rate, {cpu:.1f} times the CPU{asked}")


def main() -> None:
    """Run the rounds, or one measurement for them."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--one", choices=WORK)
    asked.add_argument("--port", type=int)
    options = asked.parse_args()
    if options.one:
        _, work, jobs = WORK[options.one]
        work(options.port, CALLERS)  # imports, connections
        began, used = time.perf_counter(), time.process_time()
        work(options.port, jobs)
        print(json.dumps([time.perf_counter() - began, time.process_time() - used]))
        return
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in WORK}
    try:
        for name, found in rounds(options.rounds):
            figures[name].append(found)
    except NotAvailable as missing:
        sys.exit(str(missing))
    report(figures)


if __name__ == "__main__":
    main()
