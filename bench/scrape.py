"""What a scrape takes with many queues, and what others notice of it.

.venv/bin/python bench/scrape.py [--queues 10000] [--scrapes 30]
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from tests.support.server import Server  # noqa: E402


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--queues", type=int, default=10_000)
    ask.add_argument("--scrapes", type=int, default=30)
    given = ask.parse_args()
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server:
        wire = server.connect()
        for n in range(given.queues):
            wire.ask("PUSH", queue=f"queue-{n}", data=n)
        pings: list[float] = []
        told: multiprocessing.SimpleQueue[list[float]] = multiprocessing.SimpleQueue()
        arguments = (server.http_port, given.scrapes, told)
        scraping = multiprocessing.Process(target=scrape, args=arguments)
        scraping.start()
        while scraping.is_alive():
            began = time.perf_counter()
            wire.ask("Ping")
            pings.append(1_000 * (time.perf_counter() - began))
        took = told.get()
    print(f"{given.queues} queues, {len(took)} scrapes one after the other")
    print(f"scrape: median {median(took):.0f} ms, max {max(took):.0f} ms")
    p = quantiles(pings, n=100)
    shown = f"p50 {p[49]:.1f} ms, p99 {p[98]:.1f} ms, max {max(pings):.1f} ms"
    print(f"ping meanwhile ({len(pings)}): {shown}")


def scrape(port: int, count: int, told: multiprocessing.SimpleQueue[list[float]]) -> None:
    """Scrape so often, and tell how long each took, in ms."""
    took = []
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(count):
        began = time.perf_counter()
        line.request("GET", "/prometheus")
        line.getresponse().read()
        took.append(1_000 * (time.perf_counter() - began))
    told.put(took)


if __name__ == "__main__":
    main()
