"""``tandemq top``: what a server does, every second; one look where there is no terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from tandemq.cli import output
from tandemq.cli.groups import Verbs
from tandemq.cli.link import Server
from tandemq.cli.output import Card, Shown, Text
from tandemq.cli.types import DURATION
from tandemq.cli.verb import current, verb

_group = Verbs()
HOME, CLEAR_BELOW = "\x1b[H", "\x1b[J"
OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
COUNTS = ("waiting", "prioritized", "delayed", "active", "dlq")
LEAST = 100  # ms between two looks


@verb(_group)
@click.option("--every", type=DURATION, default="1s", show_default=True, help="Between two looks.")
@click.option("--looks", type=click.IntRange(1), help="End after so many.")
@click.option("--queues", default=20, show_default=True, help="Most queues, the busiest first.")
def top(server: Server, every: int, looks: int | None, queues: int) -> Shown | None:
    """Show what the server does, live; Ctrl-C ends it. In a pipe it is one look.

    Example: tandemq top --every 2s
    """
    if looks is None and not sys.stdout.isatty():
        looks = 1
    if current().style != "people" or looks == 1:
        seen = look(server, queues)
        return Card(seen) if current().style != "people" else Text("\n".join(drawn(seen)))
    _live(server, max(LEAST, every) / 1000, looks, queues)
    return None


def _live(server: Server, every: float, looks: int | None, queues: int) -> None:
    """Draw one look after the other over each other, on the terminal's other screen."""
    terminal = sys.stdout.isatty()
    try:
        if terminal:
            click.echo(OTHER_SCREEN, nl=False)
        while True:
            lines = drawn(look(server, queues))
            if terminal:
                click.echo(HOME, nl=False)
                lines = [f"{line}\x1b[K" for line in lines]
            _print(lines)
            if terminal:
                click.echo(CLEAR_BELOW, nl=False)
            looks = None if looks is None else looks - 1
            if looks == 0:
                break
            time.sleep(every)
    finally:
        if terminal:
            click.echo(OWN_SCREEN, nl=False)


def look(server: Server, most: int) -> dict[str, Any]:
    """Return the figures of one moment."""
    stats = server.call("Stats", details=True)["stats"]
    found = server.call("DashboardQueues")["queues"]
    busy = sorted(found, key=lambda q: (-q["active"], -_waits(q), str(q["name"])))[:most]
    return {"timestamp": time.time() * 1000, "stats": stats, "queues": busy, "total": len(found)}


def _waits(queue: dict[str, Any]) -> int:
    waits: int = queue["waiting"] + queue["prioritized"] + queue["delayed"]
    return waits


def drawn(seen: dict[str, Any]) -> list[str]:
    """Return the lines of one look."""
    stats = seen["stats"]
    rates = f"{stats['pushPerSec']:,.0f} added/s   {stats['pullPerSec']:,.0f} taken/s"
    lines = [
        f"tandemq   up {output.span(stats['uptime'] * 1000)}   {output.local(seen['timestamp'])}",
        rates,
        "   ".join(
            f"{name} {stats[name]:,}"
            for name in ("waiting", "delayed", "active", "completed", "failed", "dlq")
        ),
        "",
        f"{'QUEUE':32}" + "".join(f"{name.upper():>12}" for name in COUNTS),
    ]
    for queue in seen["queues"]:
        name = output.printable(str(queue["name"]))
        name = name if len(name) <= 31 else f"{name[:28]}..."
        figures = "".join(f"{queue[count]:>12,}" for count in COUNTS)
        lines.append(f"{name:32}{figures}{'   paused' if queue['paused'] else ''}")
    if seen["total"] > len(seen["queues"]):
        lines.append(f"... and {seen['total'] - len(seen['queues']):,} more")
    return lines


def _print(lines: list[str]) -> None:
    click.echo("\n".join(lines))
