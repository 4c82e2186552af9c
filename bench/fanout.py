#!/usr/bin/env python3
"""Server CPU for each delivery to subscribers, as a share of mosquitto's in the same rounds.

Rows are numbers of subscribers with and without acknowledgment (MQTT: QoS 1 and 0). Each step has a
fresh server on one core, all kinds in turn, and a driver on another.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import time
from statistics import median
from typing import Any, NamedTuple

from driver import Driver
from servers import NotAvailable, Ours, Server


class Row(NamedTuple):
    """One number of subscribers."""

    name: str
    subscribers: int
    acked: bool
    messages: int  # at scale 1
    bar: float  # our share of mosquitto's CPU


ROWS = (
    Row("1, acknowledged", 1, True, 40_000, 0.54),
    Row("10, acknowledged", 10, True, 12_000, 0.46),
    Row("10, not acknowledged", 10, False, 20_000, 0.28),
    Row("100, not acknowledged", 100, False, 4_000, 0.30),
)


class Mosquitto(Server):
    """mosquitto from Debian, with no bound on what a subscriber may have."""

    name, proto = "mosquitto", "mqtt"

    def command(self) -> list[str]:
        program = shutil.which("mosquitto")
        if program is None:
            raise NotAvailable("mosquitto is not installed (apt-get install mosquitto)")
        config = self.folder / "mosquitto.conf"
        config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\n"
            "max_queued_messages 0\nmax_inflight_messages 0\n"
        )
        return [program, "-c", str(config)]


class Nats(Server):
    """nats-server from Debian: core NATS, which acknowledges nothing."""

    name, proto = "nats", "nats"

    def command(self) -> list[str]:
        program = shutil.which("nats-server")
        if program is None:
            raise NotAvailable("nats-server is not installed (apt-get install nats-server)")
        return [program, "-a", "127.0.0.1", "-p", str(self.port)]


class OursAsBroker(Ours):
    """tandemq, reached on the JSON wire of its broker."""

    name, proto = "tandemq", "vibe"


def load(row: Row, proto: str, scale: float) -> dict[str, Any]:
    """Return the driver's options for one step."""
    step: dict[str, Any] = {"conns": 1, "window": 20, "subs": row.subscribers}
    step["ops"] = int(row.messages * scale)
    if proto == "vibe":
        step["mode"] = 2 if not row.acked else 0 if row.subscribers == 1 else 1
        if not row.acked:
            step["noack"] = True
    elif proto == "mqtt":
        step["qos"] = int(row.acked)
    return step


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    say = parser.add_argument
    say("--rounds", type=int, default=5, help="measured rounds [default: %(default)s]")
    say("--warm", type=int, default=1, help="rounds before that [default: %(default)s]")
    say("--scale", type=float, default=0.5, help="length of the steps [default: %(default)s]")
    say("--server-core", type=int, default=0, help="[default: %(default)s; -1 pins nothing]")
    say("--driver-core", type=int, default=1, help="[default: %(default)s; -1 pins nothing]")
    return parser.parse_args()


def main() -> None:
    given = options()
    driver = Driver(core=given.driver_core, longest=180)
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, {platform.machine()}, load {os.getloadavg()[0]:.1f}")
    found: dict[tuple[str, str], list[float]] = {}
    for turn in range(given.warm + given.rounds):
        for row in ROWS:
            for kind in (OursAsBroker, Mosquitto, Nats):
                if kind is Nats and row.acked:
                    continue
                cost = measured(driver, kind, row, given)
                if turn >= given.warm and cost is not None:
                    found.setdefault((row.name, kind.name), []).append(cost)
    show(found)


def measured(
    driver: Driver, kind: type[Server], row: Row, given: argparse.Namespace
) -> float | None:
    """Return the us for each delivery of a fresh server; None where it failed, or is not here."""
    try:
        with kind(stored=False, core=given.server_core) as server:
            step = load(row, server.proto, given.scale)
            pids = server.pids()
            answer = driver("fanout", port=server.port, pids=pids, proto=server.proto, **step)
    except NotAvailable as why:
        print(f"without {kind.name}: {why}")
        return None
    if "failed" in answer:
        print(f"{kind.name}, {row.name}: {answer['failed']}")
        return None
    return float(answer["cpu_us_per_job"])


def show(found: dict[tuple[str, str], list[float]]) -> None:
    """Print the table as in README.md."""
    print("| subscribers | tandemq us | mosquitto us | nats us | share of mosquitto | bar |")
    print("|---|--:|--:|--:|--:|--:|")
    for row in ROWS:
        costs = [
            median(found[row.name, name]) if (row.name, name) in found else None
            for name in ("tandemq", "mosquitto", "nats")
        ]
        shown = [f"{cost:.2f}" if cost is not None else "-" for cost in costs]
        ours, theirs = costs[:2]
        share = f"{ours / theirs:.2f}" if ours is not None and theirs else "-"
        print(f"| {row.name} | {' | '.join(shown)} | {share} | {row.bar:.2f} |")


if __name__ == "__main__":
    main()
