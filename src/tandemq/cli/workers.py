"""``tandemq workers``: who says that it works."""

from __future__ import annotations

import click

from tandemq.cli.groups import Verbs
from tandemq.cli.link import Server
from tandemq.cli.output import Card, Done, Rows, Shown, columns
from tandemq.cli.verb import verb

LISTED = columns(
    "id", "name", "queues", "status", "activeJobs", "concurrency", "processedJobs", "failedJobs",
    "hostname", "pid", "lastSeen",
)  # fmt: skip


@click.group(cls=Verbs)
def workers() -> None:
    """See which workers are registered; tandemq worker runs one."""


@verb(workers, "list")
def list_(server: Server) -> Shown:
    """List the registered workers, what they hold and what they have done.

    Example: tandemq workers list --json
    """
    return Rows(LISTED, server.call("ListWorkers")["workers"], "No worker is registered.")


@verb(workers)
def stats(server: Server) -> Shown:
    """Show how many workers there are, and their sums.

    Example: tandemq workers stats
    """
    return Card(server.call("ListWorkers")["stats"], ("total", "active"))


@verb(workers)
@click.argument("name")
@click.argument("queues", nargs=-1, required=True)
@click.option(
    "--concurrency", default=1, show_default=True, type=click.IntRange(1), help="Jobs at a time."
)
def register(server: Server, name: str, queues: tuple[str, ...], concurrency: int) -> Shown:
    """Register a worker for as long as this connection lasts, to try registries out.

    Example: tandemq workers register by-hand mail
    """
    made = server.call("RegisterWorker", name=name, queues=list(queues), concurrency=concurrency)
    kept = {key: value for key, value in made.items() if key not in ("ok", "data", "reqId")}
    return Card(kept, ("workerId", "name", "queues"))


@verb(workers)
@click.argument("id")
def unregister(server: Server, id: str) -> Shown:
    """Take a worker out of the list; its jobs stay with it.

    Example: tandemq workers unregister 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69
    """
    server.call("UnregisterWorker", workerId=id)
    return Done(f"{id} is not registered any more.", {"id": id})
