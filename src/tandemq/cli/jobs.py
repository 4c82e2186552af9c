"""``tandemq job``: one job, from its publication to its end."""

from __future__ import annotations

import time
from typing import Any

import click

from tandemq.cli import output
from tandemq.cli.exits import Refused, TimedOut
from tandemq.cli.groups import Verbs
from tandemq.cli.link import Server
from tandemq.cli.output import Card, Done, Rows, Shown, columns
from tandemq.cli.types import DURATION, PAYLOAD, SIZE
from tandemq.cli.verb import present, several, verb

FIRST = ("id", "queue", "name", "state", "data", "returnvalue", "failedReason")
LISTED = columns("id", "name", "state", "priority", "attempts", "createdAt", "data")
STATES = (
    "waiting", "prioritized", "delayed", "active", "completed", "failed", "waiting-children",
    "paused",
)  # fmt: skip
MORE = 60_000  # ms that one question to a server may take while a verb waits longer


@click.group(cls=Verbs, aliases={"push": "add", "show": "get", "remove": "cancel", "move": "delay"})
def job() -> None:
    """Add jobs, look at them, and change what becomes of them."""


# -- adding ---------------------------------------------------------------------------------------


add_options = several(  # one for each field of a push
    click.option("--name", help="Name of the job, by which workers tell what to do."),
    click.option("--priority", type=int, help="Higher goes first."),
    click.option("--delay", type=DURATION, help="Wait before it may run."),
    click.option("--attempts", "maxAttempts", type=int, help="Tries in all."),
    click.option("--backoff", type=DURATION, help="Wait after a failure."),
    click.option("--ttl", type=DURATION, help="Time in which it has to start."),
    click.option("--run-time", "timeout_", type=DURATION, help="Longest time that it may run."),
    click.option("--id", "jobId", help="Id of your own: adding it again changes nothing."),
    click.option("--unique-key", "uniqueKey", help="Only one live job may have this key."),
    click.option("--group", "groupId", help="Group within the queue."),
    click.option("--depends-on", "dependsOn", multiple=True, help="Job to wait for; repeat."),
    click.option("--tag", "tags", multiple=True, help="Word to find it by; repeat."),
    click.option("--size-limit", "sizeLimit", type=SIZE, help="Largest size of the data."),
    click.option("--lifo", is_flag=True, default=None, help="Before those that wait."),
    click.option("--durable", is_flag=True, default=None, help="Survives loss of power."),
    click.option(
        "--remove-on-complete",
        "removeOnComplete",
        is_flag=True,
        default=None,
        help="Forget it when it is done.",
    ),
    click.option(
        "--remove-on-fail",
        "removeOnFail",
        is_flag=True,
        default=None,
        help="Forget it instead of a dead letter.",
    ),
)


@verb(job)
@click.argument("queue")
@click.argument("data", type=PAYLOAD, required=False)
@add_options
def add(server: Server, queue: str, data: Any, **options: Any) -> Shown:
    """Add a job. DATA is JSON, @FILE, or - for standard input.

    Example: tandemq job add mail '{"to": "ada@example.org"}' --priority 5 --delay 10m
    """
    fields = present(options)
    if data is not None:
        fields["data"] = data
    id = server.call("PUSH", queue=queue, **fields)["id"]
    return Done(id, {"id": id, "queue": queue})


@verb(job, "add-many")
@click.argument("queue")
@click.argument("data", type=PAYLOAD)
@add_options
def add_many(server: Server, queue: str, data: Any, **options: Any) -> Shown:
    """Add one job for each member of a JSON array, 1,000 at a time.

    Example: tandemq job add-many mail @addresses.json --attempts 5
    """
    if not isinstance(data, list):
        raise click.BadParameter("must be a JSON array.", param_hint="DATA")
    fields = present(options)
    if "jobId" in fields:
        raise click.UsageError("--id names one job, so it cannot be given for many.")
    ids: list[str] = []
    with output.progress(len(data), "Adding") as bar:
        for start in range(0, len(data), 1000):
            part = [{**fields, "data": each} for each in data[start : start + 1000]]
            ids += server.call("PUSHB", queue=queue, jobs=part)["ids"]
            bar.update(len(part))
    return Done(f"Added {output.counted(len(ids), 'job')} to {queue}.", {"ids": ids})


# -- looking --------------------------------------------------------------------------------------


@verb(job)
@click.argument("id")
def get(server: Server, id: str) -> Shown:
    """Show a job with its state, its result and its last error.

    Example: tandemq job get 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69
    """
    return Card(server.call("GetJob", id=id)["job"], FIRST)


@verb(job)
@click.argument("id")
def state(server: Server, id: str) -> Shown:
    """Print the state of a job.

    Example: tandemq job state 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69
    """
    said = server.call("GetState", id=id)["state"]
    if said == "unknown":
        raise Refused(f"There is no job {id}.")
    return Done(said, {"id": id, "state": said})


@verb(job)
@click.argument("id")
def result(server: Server, id: str) -> Shown:
    """Print the result of a completed job as JSON.

    Example: tandemq job result 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69
    """
    value = server.call("GetResult", id=id).get("result")
    return Done(output.compact(value), {"id": id, "result": value})


@verb(job, "list")
@click.argument("queue")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("--limit", default=20, show_default=True, help="Most jobs to show.")
@click.option("--offset", default=0, show_default=True, help="Jobs to pass over.")
@click.option("--newest", is_flag=True, help="The newest first.")
def list_(
    server: Server, queue: str, state: str | None, limit: int, offset: int, newest: bool
) -> Shown:
    """List jobs of a queue in the order in which they were added.

    Example: tandemq job list mail --state failed --limit 50
    """
    asked = {"queue": queue, "limit": limit, "offset": offset, "asc": not newest}
    if state is not None:
        asked["state"] = state
    return Rows(LISTED, server.call("GetJobs", **asked)["jobs"], f"No such jobs in {queue}.")


@verb(job)
@click.argument("text", required=False)
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("--name", help="Name of the job; * is any text.")
@click.option("--tag", help="One of its tags.")
@click.option("--since", type=DURATION, help="Only what was added since then, like 2h.")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Most jobs to show.",
)
def search(server: Server, limit: int, since: int | None, **options: Any) -> Shown:
    """Find jobs by what stands in their data or their last error, the newest first.

    Example: tandemq job search ada@example.org --queue mail --since 2d
    """
    asked = present(options)
    if since is not None:
        asked["after"] = time.time() * 1000 - since
    found: list[dict[str, Any]] = []
    while len(found) < limit:
        page = server.call("Search", **asked, limit=limit - len(found))
        found += page["jobs"]
        if page.get("cursor") is None:
            break
        asked["cursor"] = page["cursor"]
    return Rows(columns("queue", *(c.key for c in LISTED)), found, "Nothing was found.")


@verb(job)
@click.argument("id")
def explain(server: Server, id: str) -> Shown:
    """Say why a job is not running, or who runs it.

    Example: tandemq job explain 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69
    """
    said = server.call("Explain", id=id)
    reasons = "\n".join(reason["text"] for reason in said["reasons"])
    return Done(f"{id} is {said['state']}.\n{reasons}", said)


@verb(job)
@click.argument("id")
@click.option("--last", type=int, help="Only so many of the newest lines.")
def logs(server: Server, id: str, last: int | None) -> Shown:
    """Print what a job has logged.

    Example: tandemq job logs 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 --last 20
    """
    lines = server.call("GetLogs", id=id)["logs"]
    if last is not None:
        lines = lines[-last:] if last > 0 else []
    return Rows(columns("timestamp", "level", "message"), lines, "Nothing was logged.")


@verb(job)
@click.argument("id")
@click.option("--for", "within", type=DURATION, default="5m", show_default=True, help="So long.")
def wait(server: Server, id: str, within: int) -> Shown:
    """Wait until a job has ended, and print its result; exit code 1 when it failed, 5 in vain.

    Example: tandemq job wait 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 --for 10m
    """
    ends = time.monotonic() + within / 1000
    while (left := ends - time.monotonic()) > 0:
        turn = max(1, min(int(left * 1000), MORE))
        told = server.call("WaitJob", id=id, timeout=turn, anyEnd=True)
        if told.get("failed"):
            raise Refused(f"{id} failed: {output.printable(str(told.get('error')))}")
        if told.get("removed"):
            raise Refused(f"{id} was removed.")
        if told["completed"]:
            value = told.get("result")
            return Done(output.compact(value), {"id": id, "result": value})
    raise TimedOut(f"{id} has not ended within {output.span(within)}.")
