#!/usr/bin/env python3
"""Server CPU for each job, beside the reference and beanstalkd, in interleaved rounds.

Every server of a mode runs at the same time on one core and is loaded in turn, step by step, by a
driver on another core. The table shows medians; a step with refused or failed requests shows none.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from driver import Driver
from report import MODES, Table, as_markdown, as_text
from servers import SERVERS, NotAvailable, Server
from steps import STEPS, Step, possible, run

ENOUGH_ROUNDS = 5


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    say = parser.add_argument
    say("--rounds", type=int, default=ENOUGH_ROUNDS, help="measured rounds [default: %(default)s]")
    say("--warm", type=int, default=3, help="rounds before that [default: %(default)s]")
    say("--scale", type=float, default=0.5, help="length of the steps [default: %(default)s]")
    say("--steps", help=f"only these, with commas between: {' '.join(STEPS)}")
    say("--mode", choices=("memory", "file", "both"), default="both")
    say("--only", help=f"only these servers, with commas between: {' '.join(SERVERS)}")
    say("--json", metavar="FILE", help="append every single figure to this file")
    say("--markdown", action="store_true", help="print the tables as in README.md")
    say("--server-core", type=int, default=0, help="[default: %(default)s; -1 pins nothing]")
    say("--driver-core", type=int, default=1, help="[default: %(default)s; -1 pins nothing]")
    say("--longest", type=float, default=180, help="s until a step fails [default: %(default)s]")
    say("--fail", action="store_true", help="exit with 1 where a bar is not reached")
    given = parser.parse_args()
    given.steps = chosen(parser, given.steps, list(STEPS))
    given.only = chosen(parser, given.only, list(SERVERS))
    return given


def chosen(parser: argparse.ArgumentParser, text: str | None, known: list[str]) -> list[str]:
    names = text.split(",") if text else known
    for name in names:
        if name not in known:
            parser.error(f"{name!r} is none of {', '.join(known)}")
    return names


def measure(given: argparse.Namespace, mode: str, driver: Driver, raw: TextIO | None) -> Table:
    """Run all rounds of one mode and return what came out."""
    steps = [STEPS[name] for name in given.steps if mode == "file" or not STEPS[name].stored_only]
    table = Table(mode, steps)
    with ExitStack() as running:
        servers: dict[str, Server] = {}
        for key in given.only:
            try:
                server = SERVERS[key](stored=mode == "file", core=given.server_core)
                servers[key] = running.enter_context(server)
            except NotAvailable as why:
                if key == "ours":
                    raise
                tell(f"without {key}: {why}")
        for count, (step, key) in turns(given.warm + given.rounds, steps, servers):
            tell(f"{mode}: {name_of(count, given.warm)}, {step.name}, {servers[key].name}")
            figures = run(step, servers[key], driver, given.scale)
            if "failed" in figures:
                tell(f"  failed: {figures['failed']}")
            if raw is not None:
                where = {"mode": mode, "server": servers[key].name, "step": step.name}
                line = {**where, "round": count - given.warm, "scale": given.scale, **figures}
                print(json.dumps(line), file=raw, flush=True)
            if count >= given.warm or "failed" in figures:
                table.add(step.name, key, figures)
        table.servers = list(servers)
    return table


def turns(
    rounds: int, steps: list[Step], servers: dict[str, Server]
) -> Iterator[tuple[int, tuple[Step, str]]]:
    """Every step of every round on every server that knows it, the servers in turn."""
    for count in range(rounds):
        for step in steps:
            for key, server in servers.items():
                if possible(step, server):
                    yield count, (step, key)


def name_of(count: int, warm: int) -> str:
    return f"warm-up {count + 1}" if count < warm else f"round {count - warm + 1}"


def circumstances(given: argparse.Namespace, before: float) -> str:
    """What a reader must know to judge the figures."""
    models = {
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    }
    return (
        f"{time.strftime('%Y-%m-%d', time.gmtime())}; medians of {given.rounds} interleaved rounds"
        f" after {given.warm} to warm up, scale {given.scale:g}; {os.cpu_count()} cores of "
        f"{', '.join(sorted(models)) or platform.machine()}; CPython {platform.python_version()}; "
        f"load average of the minute before {before:.1f}"
    )


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    given = options()
    before = os.getloadavg()[0]
    driver = Driver(core=given.driver_core, longest=given.longest)
    modes = MODES if given.mode == "both" else (given.mode,)
    with ExitStack() as files:
        raw = files.enter_context(open(given.json, "a")) if given.json else None
        try:
            tables = [measure(given, mode, driver, raw) for mode in modes]
        except NotAvailable as why:
            sys.exit(str(why))
    shown = as_markdown if given.markdown else as_text
    print(circumstances(given, before))
    if given.rounds < ENOUGH_ROUNDS:
        print(f"A try: figures count from {ENOUGH_ROUNDS} rounds on.")
    for table in tables:
        print()
        print(shown(table))
    return int(given.fail and not all(table.reached() for table in tables))


if __name__ == "__main__":
    sys.exit(main())
