"""``tandemq cron``: jobs that come again by themselves."""

from __future__ import annotations

from typing import Any

import click

from tandemq.cli.groups import Verbs
from tandemq.cli.link import Server
from tandemq.cli.output import Card, Done, Rows, Shown, columns
from tandemq.cli.types import DURATION, PAYLOAD
from tandemq.cli.verb import present, verb

LISTED = columns("name", "queue", "schedule", "repeatEvery", "timezone", "nextRun", "executions")
PAGE = 1000


@click.group(cls=Verbs, aliases={"get": "show", "remove": "delete", "set": "add"})
def cron() -> None:
    """List, add and remove schedules, and see when they run."""


@verb(cron, "list")
@click.option("--queue", help="Only schedules of this queue.")
def list_(server: Server, queue: str | None) -> Shown:
    """List all schedules with their next run.

    Example: tandemq cron list --queue reports
    """
    found: list[dict[str, Any]] = []
    asked = present({"queue": queue, "limit": PAGE})
    while page := server.call("CronList", offset=len(found), **asked)["crons"]:
        found += page
    return Rows(LISTED, found, "There is no schedule.")


@verb(cron)
@click.argument("name")
def show(server: Server, name: str) -> Shown:
    """Show a schedule, its next run, and how it treats runs that were missed.

    Example: tandemq cron show nightly
    """
    return Card(server.call("CronGet", name=name, preview=0)["cron"], ("name", "queue"))


@verb(cron)
@click.argument("name")
@click.option(
    "--count", default=5, show_default=True, type=click.IntRange(1, 1000), help="Runs to list."
)
def next_(server: Server, name: str, count: int) -> Shown:
    """List the next runs of a schedule.

    Example: tandemq cron next nightly --count 10
    """
    runs = server.call("CronGet", name=name, preview=count)["preview"]
    return Rows(columns("at", "utc", "local"), runs, "It does not run again.")


@verb(cron)
@click.argument("name")
@click.argument("queue")
@click.argument("data", type=PAYLOAD, required=False)
@click.option("--pattern", "schedule", help="Cron expression of five or six fields.")
@click.option("--every", "repeatEvery", type=DURATION, help="Interval instead of a pattern.")
@click.option("--tz", "timezone", help="Zone of the pattern, like Europe/Rome. [default: UTC]")
@click.option("--job-name", "jobName", help="Name of its jobs.")
@click.option("--priority", type=int, help="Priority of its jobs.")
@click.option("--attempts", "maxAttempts", type=int, help="Tries of each job.")
@click.option("--runs", "maxLimit", type=click.IntRange(1), help="Runs in all.")
@click.option(
    "--missed", type=click.Choice(("skip", "once", "all")), help="What becomes of missed runs."
)
@click.option("--max-lateness", "maxLateness", type=DURATION, help="Beyond it a run is missed.")
@click.option("--overlap", is_flag=True, help="Also run while an earlier run is not done.")
@click.option("--now", "immediately", is_flag=True, default=None, help="Run at once, too.")
def add(server: Server, name: str, queue: str, data: Any, overlap: bool, **options: Any) -> Shown:
    """Add a schedule, or change the one of this name.

    Example: tandemq cron add nightly reports --pattern '0 3 * * *' --tz Europe/Rome
    """
    if (options["schedule"] is None) == (options["repeatEvery"] is None):
        raise click.UsageError("Give --pattern or --every, one of them.")
    attempts = options.pop("maxAttempts")
    fields = present({**options, "data": data})
    if attempts is not None:
        fields["jobOptions"] = {"maxAttempts": attempts}
    made = server.call("Cron", name=name, queue=queue, preventOverlap=not overlap, **fields)
    return Card(made["cron"], ("name", "queue", "nextRun"))


@verb(cron, asks="Delete schedule {name}?")
@click.argument("name")
def delete(server: Server, name: str) -> Shown:
    """Remove a schedule; a job that it has added stays.

    Example: tandemq cron delete nightly --yes
    """
    server.call("CronDelete", name=name)
    return Done(f"Deleted {name}.", {"name": name})
