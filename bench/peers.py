#!/usr/bin/env python3
"""Our client and worker beside Celery, RQ, arq, Dramatiq and Huey on Redis, with tasks of nothing.

Servers run on core 0; one producer and one worker process at a time, fresh ones for each figure, on
core 1; all take turns in each round. The others live in an environment in the scratch folder.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from driver import SCRATCH, pinned
from peer import PEERS, PIPE, TIME
from servers import NotAvailable, Ours, Server

LIBRARIES = {  # an environment for each: Celery and arq ask for different clients of Redis
    "Celery": ("celery[redis]==5.7.0", "redis==7.4.0", "hiredis==3.5.0"),
    "RQ": ("rq==3.0.0", "redis==7.4.0", "hiredis==3.5.0"),
    "arq": ("arq==0.28.0", "redis==5.3.1", "hiredis==3.5.0", "uvloop==0.23.0"),
    "Dramatiq": ("dramatiq[redis]==2.2.1", "redis==7.4.0", "hiredis==3.5.0"),
    "Huey": ("huey==3.5.4", "redis==7.4.0", "hiredis==3.5.0"),
}
WARM = 0.1  # of the jobs are drained before the clock starts
ALONE = 40  # jobs in flight one at a time, the first two not counted
ALONE_SECONDS = 5.0  # after which fewer must do
LONGEST = 60.0  # seconds of draining


class Row(NamedTuple):
    """A library and one way to work with it; how many jobs it is given one by one, and in bulk."""

    library: str
    kind: str
    shown: str
    singly: int
    at_once: int


ROWS = (
    Row("tandemq", "loop", "tandemq, async, 10", 2_000, 30_000),
    Row("tandemq", "threads", "tandemq, 10 threads", 2_000, 30_000),
    Row("Celery", "threads", "Celery, 10 threads", 2_000, 0),
    Row("Celery", "prefork", "Celery, 10 processes (its default pool)", 2_000, 0),
    Row("RQ", "simple", "RQ, `SimpleWorker`, 1", 1_000, 1_000),
    Row("RQ", "fork", "RQ, `Worker` (forks for each job), 1", 200, 200),
    Row("arq", "loop", "arq, async, 10", 1_500, 0),
    Row("Dramatiq", "threads", "Dramatiq, 10 threads", 2_000, 0),
    Row("Huey", "threads", "Huey, 10 threads", 2_000, 0),
)


class Figures(NamedTuple):
    """Jobs a second, and seconds from before a job was added until it ran."""

    added: float
    added_many: float | None
    drained: float
    alone: float


class Redis(Server):
    """redis-server from Debian without snapshots; stored: appended, flushed every second."""

    name = "redis"

    def command(self) -> list[str]:
        program = shutil.which("redis-server")
        if program is None:
            raise NotAvailable("redis-server is not installed (apt-get install redis-server)")
        append = ["--appendonly", "yes", "--appendfsync", "everysec"] if self.stored else []
        place = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)]
        return [program, *place, "--save", "", *append]


def installed() -> None:
    """Make the environments of the others, where they are not there in these versions."""
    for library, wanted in LIBRARIES.items():
        folder = environment(library)
        stamp = folder / "installed"
        if stamp.exists() and stamp.read_text() == "\n".join(wanted):
            continue
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        if subprocess.run([*pip, "--disable-pip-version-check", *wanted]).returncode:
            raise NotAvailable(f"{library} cannot be installed")
        stamp.write_text("\n".join(wanted))


def environment(library: str) -> Path:
    """Where a library lives."""
    return SCRATCH / "peers" / library.lower()


# -- one row -------------------------------------------------------------------------------------


def command(row: Row, what: str, server: Server, jobs: int = 0) -> list[str]:
    """The words that run a part of a row in a process of its own on core 1."""
    ours = row.library == "tandemq"
    python = sys.executable if ours else str(environment(row.library) / "bin" / "python")
    words = [python, __file__, "--one", what, "--library", row.library, "--kind", row.kind]
    return [*pinned(1), *words, "--port", str(server.port), "--jobs", str(jobs)]


def produced(row: Row, what: str, server: Server, jobs: int) -> float:
    """Run a producer and return its figure."""
    words = command(row, what, server, jobs)
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST)
    if done.returncode:
        raise SystemExit(f"{row.shown}, {what} failed:\n{done.stderr[-2000:]}")
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


@contextmanager
def working(row: Row, server: Server) -> Iterator[None]:
    """A worker process, ended with all that it started."""
    with (SCRATCH / f"peer-{row.library}-{row.kind}.log").open("wb") as log:
        words = command(row, "work", server)
        worker = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        worker.terminate()
        with suppress(subprocess.TimeoutExpired):
            worker.wait(5)
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def drained(pipe: int, jobs: int) -> float:
    """Jobs a second, from the times at which they ran."""
    said, deadline = b"", time.monotonic() + LONGEST
    while len(said) < jobs * TIME.size:
        if time.monotonic() > deadline:
            raise SystemExit(f"only {len(said) // TIME.size} of {jobs} jobs ran")
        if select.select([pipe], [], [], 1.0)[0]:
            said += os.read(pipe, 1 << 16)
            time.sleep(0.02)  # so that reading costs nothing beside what is measured
    times = sorted(time for (time,) in TIME.iter_unpack(said))
    first = int(jobs * WARM)
    return (jobs - 1 - first) / (times[-1] - times[first])


def measured(row: Row, server: Server, pipe: int) -> Figures:
    """Add, drain, and add one job at a time."""
    added = produced(row, "add", server, row.singly)
    many = produced(row, "add_many", server, row.at_once) if row.at_once else None
    with working(row, server):
        rate = drained(pipe, row.singly + row.at_once)
        time.sleep(0.5)  # the last job is done with
        alone = produced(row, "alone", server, ALONE)
    return Figures(added, many, rate, alone)


# -- what a producer does ------------------------------------------------------------------------


def alone(library: str, port: int, jobs: int) -> float:
    """Median seconds until a job ran, the next being added after that."""
    took: list[float] = []
    pipe = os.open(os.environ[PIPE], os.O_RDONLY)

    def turns() -> Iterator[None]:
        ends = time.monotonic() + ALONE_SECONDS
        while len(took) < jobs and (len(took) < 5 or time.monotonic() < ends):
            put = time.perf_counter()
            yield
            took.append(TIME.unpack(os.read(pipe, TIME.size))[0] - put)

    PEERS[library](port).add(turns())
    return median(took[2:])


def added(library: str, port: int, jobs: int, *, at_once: bool) -> float:
    """Jobs a second, with imports and connecting left out where the library allows it."""
    peer = PEERS[library](port)
    if at_once:
        began = time.perf_counter()
        peer.add_many(jobs)
        return jobs / (time.perf_counter() - began)
    begins: list[float] = []

    def turns() -> Iterator[None]:
        for number in range(jobs):
            if number == jobs // 10:
                begins.append(time.perf_counter())
            yield

    peer.add(turns())
    return (jobs - jobs // 10) / (time.perf_counter() - begins[0])


def one(given: argparse.Namespace) -> None:
    """Be the producer, or the worker."""
    if given.one == "work":
        PEERS[given.library](given.port).work(given.kind)
    elif given.one == "alone":
        print(json.dumps(alone(given.library, given.port, given.jobs)))
    else:
        at_once = given.one == "add_many"
        print(json.dumps(added(given.library, given.port, given.jobs, at_once=at_once)))


# -- rounds --------------------------------------------------------------------------------------


def compare(rounds: int, *, stored: bool) -> dict[Row, list[Figures]]:
    """Measure every row in every round, all in turn."""
    found: dict[Row, list[Figures]] = {row: [] for row in ROWS}
    name = SCRATCH / f"ran-{os.getpid()}"
    with Ours(stored=stored, core=0) as ours, Redis(stored=stored, core=0) as redis:
        os.mkfifo(name)
        pipe = os.open(name, os.O_RDWR | os.O_NONBLOCK)
        os.environ[PIPE] = str(name)
        try:
            for number in range(rounds):
                for row in ROWS:
                    server: Server = ours if row.library == "tandemq" else redis
                    found[row].append(measured(row, server, pipe))
                    load = os.getloadavg()[0]
                    print(
                        f"round {number + 1}, load {load:.1f}: {row.shown}: {found[row][-1]}",
                        file=sys.stderr,
                    )
        finally:
            os.close(pipe)
            name.unlink()
    return found


def table(found: dict[Row, list[Figures]]) -> str:
    """Return the medians as a table of Markdown."""
    lines = [
        "| Library | added one by one | in bulk | drained | rounds | put to run |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for row, figures in found.items():
        singly, many, rates, waits = zip(*figures, strict=True)
        bulk = f"{median(many):,.0f} /s" if row.at_once else "-"
        lines.append(
            f"| {row.shown} | {median(singly):,.0f} /s | {bulk} | {median(rates):,.0f} /s |"
            f" {min(rates):,.0f} to {max(rates):,.0f} | {median(waits) * 1e3:.2f} ms |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stored", action="store_true", help="with a file, and a log of Redis")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given)
        return
    try:
        installed()
        print(table(compare(given.rounds, stored=given.stored)))
    except NotAvailable as missing:
        raise SystemExit(str(missing)) from None


if __name__ == "__main__":
    main()
