#!/usr/bin/env python3
"""Pushes over HTTP for each second of server CPU, beside the reference.

wrk (Debian) keeps its connections open and sends the same request as fast as it is answered. Both
servers of a mode run at the same time on one core and are loaded in turn, wrk on another. An answer
that is none of 2xx, or a broken connection, makes a step worth nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from statistics import median
from typing import NamedTuple
from urllib.request import Request, urlopen

from driver import SCRATCH, pinned
from servers import NotAvailable, Ours, Reference, Server

JOB = '{"name":"bench","data":{"ts":1700000000000,"pad":"' + "x" * 100 + '"}}'
BATCH = '{"jobs":[' + ",".join([JOB] * 100) + "]}"


class Row(NamedTuple):
    """One kind of request."""

    name: str
    path: str
    body: str
    stored: bool
    bar: float  # times the reference's rate


ROWS = (
    Row("PUSH, in memory", "/queues/q{turn}/jobs", JOB, False, 1.0),
    Row("bulk of 100, in memory", "/queues/b{turn}/jobs/bulk", BATCH, False, 3.0),
    Row("PUSH, stored", "/queues/q{turn}/jobs", JOB, True, 4.0),
)


class Load(NamedTuple):
    """What wrk made of a server."""

    rate: float  # requests for each second of its CPU
    speed: float  # requests a second
    failed: bool


def load(server: Server, row: Row, turn: int, given: argparse.Namespace) -> Load:
    script = SCRATCH / "push.lua"
    script.write_text(
        'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n'
        f"wrk.body = [==[{row.body}]==]\n"
    )
    site, path = f"http://127.0.0.1:{server.http_port}", row.path.format(turn=turn)
    flags = ["-t1", f"-c{given.connections}", f"-d{given.seconds}", "--timeout", "30s"]
    flags += ["-s", str(script), site + path]
    before = server.cpu()
    command = [*pinned(given.driver_core), "wrk", *flags]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = server.cpu() - before
    queue = "/".join(path.split("/")[:3])
    urlopen(Request(f"{site}{queue}/obliterate", method="POST"), timeout=60).close()
    found = re.search(r"(\d+) requests in", said)
    count = int(found[1]) if found else 0
    failed = "Non-2xx" in said or "Socket errors" in said or not count
    return Load(count / used, count / given.seconds, failed)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    say = parser.add_argument
    say("--rounds", type=int, default=5, help="measured rounds [default: %(default)s]")
    say("--warm", type=int, default=2, help="rounds before that [default: %(default)s]")
    say("--seconds", type=int, default=5, help="of each step [default: %(default)s]")
    say("--connections", type=int, default=64, help="[default: %(default)s]")
    say("--server-core", type=int, default=0, help="[default: %(default)s; -1 pins nothing]")
    say("--driver-core", type=int, default=1, help="[default: %(default)s; -1 pins nothing]")
    say("--fail", action="store_true", help="make a missed bar an error")
    return parser.parse_args()


def measured(rows: list[Row], given: argparse.Namespace) -> dict[str, list[tuple[Load, Load]]]:
    """Return both servers' figures by row, a pair for each round."""
    found: dict[str, list[tuple[Load, Load]]] = {row.name: [] for row in rows}
    with ExitStack() as stack:
        kinds = (Ours, Reference)
        stored = rows[0].stored
        both = [stack.enter_context(kind(stored=stored, core=given.server_core)) for kind in kinds]
        for turn in range(given.warm + given.rounds):
            for row in rows:
                ours, theirs = (load(server, row, turn, given) for server in both)
                if turn >= given.warm:
                    found[row.name].append((ours, theirs))
    return found


def main() -> None:
    given = options()
    if not shutil.which("wrk"):
        sys.exit("wrk is not installed (apt-get install wrk)")
    load_average = os.getloadavg()[0]
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, {platform.machine()}, load {load_average:.1f}")
    print("| request | tandemq for a CPU second | bunqueue | times | single rounds | bar |")
    print("|---|--:|--:|--:|--:|--:|")
    missed = False
    for stored in (False, True):
        rows = [row for row in ROWS if row.stored is stored]
        try:
            found = measured(rows, given)
        except NotAvailable as why:
            sys.exit(str(why))
        for row in rows:
            missed |= not shown(row, found[row.name])
    if missed and given.fail:
        sys.exit(1)


def shown(row: Row, pairs: list[tuple[Load, Load]]) -> bool:
    """Print a row; return whether it reaches its bar."""
    if any(load.failed for pair in pairs for load in pair):
        print(f"| {row.name} | failed | | | | {row.bar:g} |")
        return False
    ours, theirs = (median(pair[n].rate for pair in pairs) for n in (0, 1))
    ratios = [a.rate / b.rate for a, b in pairs]
    span = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(
        f"| {row.name} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} | {span} | {row.bar:g} |"
    )
    return ours / theirs >= row.bar


if __name__ == "__main__":
    main()
