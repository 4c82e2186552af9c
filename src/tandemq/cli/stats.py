"""``tandemq stats``, ``metrics``, ``ping`` and ``health``: how a server is doing."""

from __future__ import annotations

import time

import click

from tandemq.cli.exits import Exit
from tandemq.cli.groups import Verbs
from tandemq.cli.link import Server
from tandemq.cli.output import Card, Done, Rows, Shown, Text, columns, show
from tandemq.cli.verb import current, verb

_top = Verbs()  # where these commands are collected; each is a command of its own


@verb(_top)
def stats(server: Server) -> Shown:
    """Print the counts of all jobs and the rates a second.

    Example: tandemq stats --json
    """
    return Card(server.call("Stats", details=True)["stats"], ("waiting", "active", "delayed"))


@verb(_top)
@click.argument("queue", required=False)
@click.option("--failed", is_flag=True, help="Count failures instead of completions.")
@click.option("--prometheus", is_flag=True, help="Print every figure as Prometheus text.")
def metrics(server: Server, queue: str | None, failed: bool, prometheus: bool) -> Shown:
    """Print totals since the start, or the ends of a queue's jobs minute by minute.

    Example: tandemq metrics mail --failed
    """
    if prometheus:
        return Text(server.call("Prometheus")["metrics"], "metrics")
    if queue is None:
        return Card(server.call("Metrics")["metrics"])
    said = server.call("Metrics", queue=queue, type="failed" if failed else "completed")
    rows = [{"minutesAgo": minute, "jobs": count} for minute, count in enumerate(said["data"])]
    return Rows(columns("minutesAgo", "jobs"), rows, "Nothing has ended yet.")


@verb(_top)
def ping(server: Server) -> Shown:
    """Ask the server for a sign of life and print how long it took.

    Example: tandemq ping --timeout 2s
    """
    begun = time.perf_counter()
    server.call("Ping")
    took = (time.perf_counter() - begun) * 1000
    return Done(f"Answered in {took:.1f} ms.", {"ok": True, "milliseconds": round(took, 3)})


@verb(_top)
def health(server: Server) -> None:
    """Say whether the server answers and can store; exit code 1 when not. For HEALTHCHECK.

    Example: tandemq health --timeout 3s --quiet
    """
    server.call("Ping")
    storage = server.call("StorageStatus")
    well = not storage["diskFull"] and storage["error"] is None
    record = {"ok": well, "diskFull": storage["diskFull"], "error": storage["error"]}
    text = "ok" if well else f"The store cannot be written: {storage['error'] or 'disk full'}."
    show(Done(text, record), current().style)
    if not well:
        click.get_current_context().exit(Exit.FAILED)


@verb(_top)
def compact(server: Server) -> Shown:
    """Have the server let go of memory that it does not need; it does so by itself as well.

    Example: tandemq compact
    """
    server.call("CompactMemory")
    return Done("Done.", {"ok": True})
