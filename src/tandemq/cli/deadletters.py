"""``tandemq dlq``: what failed for good, and letting it run again."""

from __future__ import annotations

import time
from typing import Any

import click

from tandemq.cli import output
from tandemq.cli.exits import Refused
from tandemq.cli.groups import Verbs
from tandemq.cli.link import Server
from tandemq.cli.output import Card, Done, Rows, Shown, columns
from tandemq.cli.types import DURATION, PAYLOAD
from tandemq.cli.verb import present, several, verb

REASONS = (
    "explicit_fail", "max_attempts_exceeded", "timeout", "stalled", "ttl_expired", "worker_lost",
    "unknown",
)  # fmt: skip
LISTED = columns("id", "name", "reason", "error", "retryCount", "enteredAt", "data")


@click.group(cls=Verbs, aliases={"retry": "replay", "stats": "show", "rules": "config"})
def dlq() -> None:
    """Look at dead letters, let them run again, forget them."""


filter_options = several(  # which dead letters are meant
    click.option("--reason", type=click.Choice(REASONS), help="Only what ended like this."),
    click.option("--older-than", "older", type=DURATION, help="Only what died so long ago."),
    click.option("--newer-than", "newer", type=DURATION, help="Only what died since then."),
    click.option("--limit", type=click.IntRange(1), help="At most so many, the oldest first."),
)


def wanted(options: dict[str, Any]) -> dict[str, Any]:
    """Return the filter of the wire for these options."""
    now = time.time() * 1000
    moments = {"olderThan": options["older"], "newerThan": options["newer"]}
    since = {name: now - span for name, span in moments.items() if span is not None}
    found = {**present({"reason": options["reason"], "limit": options["limit"]}), **since}
    return {"filter": found} if found else {}


@verb(dlq, "list")
@click.argument("queue")
@filter_options
def list_(server: Server, queue: str, **options: Any) -> Shown:
    """List dead letters of a queue, the oldest first, with the cause of each.

    Example: tandemq dlq list mail --reason timeout --newer-than 1d
    """
    options["limit"] = options["limit"] or 20
    found = server.call("Dlq", queue=queue, **wanted(options))["entries"]
    return Rows(LISTED, [_flat(entry) for entry in found], f"No such dead letters in {queue}.")


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of a dead letter beside the main fields of its job."""
    job = entry["job"]
    shown = {key: job.get(key) for key in ("id", "name", "queue")}
    rest = {key: value for key, value in entry.items() if key != "job"}
    return {**shown, **rest, "data": job.get("data")}


@verb(dlq)
@click.argument("queue")
@click.argument("id", required=False)
def show(server: Server, queue: str, id: str | None) -> Shown:
    """Show one dead letter with its attempts, or the figures of all of a queue.

    Example: tandemq dlq show mail 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69
    """
    if id is None:
        return Card(server.call("GetDlqStats", queue=queue)["stats"], ("total", "byReason"))
    return Card(_flat(_letter(server, queue, id)), ("id", "reason", "error", "data", "attempts"))


def _letter(server: Server, queue: str, id: str) -> dict[str, Any]:
    """Find a dead letter, in pages.

    Raises:
        Refused: there is none of this id.
    """
    passed = 0
    while entries := server.call("Dlq", queue=queue, filter={"offset": passed, "limit": 1000})[
        "entries"
    ]:
        for entry in entries:
            if entry["job"]["id"] == id:
                found: dict[str, Any] = entry
                return found
        passed += len(entries)
    raise Refused(f"{id} is no dead letter of {queue}.")


@verb(dlq)
@click.argument("queue")
@click.argument("id", required=False)
@filter_options
@click.option("--dry-run", is_flag=True, help="Only count them.")
def replay(server: Server, queue: str, id: str | None, dry_run: bool, **options: Any) -> Shown:
    """Let one dead letter run again, those that fit, or all.

    Example: tandemq dlq replay mail --reason timeout --newer-than 1d --dry-run
    """
    which = {"jobId": id} if id is not None else wanted(options)
    count = server.call("RetryDlq", queue=queue, dryRun=dry_run, **which)["count"]
    if id is not None and not count:
        raise Refused(f"{id} is no dead letter of {queue}, or its id or key is in use again.")
    would = "Would let" if dry_run else "Let"
    text = f"{would} {output.counted(count, 'job')} of {queue} run again."
    return Done(text, {"queue": queue, "count": count, "dryRun": dry_run})


@verb(dlq)
@click.argument("queue")
@click.argument("id")
@click.argument("data", type=PAYLOAD)
@click.option("--dry-run", is_flag=True, help="Only say whether it could be done.")
def edit(server: Server, queue: str, id: str, data: Any, dry_run: bool) -> Shown:
    """Let a copy of a dead letter run with other data; the letter stays, and names its copy.

    Example: tandemq dlq edit mail 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 '{"to": "ada@example.org"}'
    """
    said = server.call("RetryDlq", queue=queue, jobId=id, data=data, dryRun=dry_run)
    if not said["count"]:
        raise Refused(f"{id} is no dead letter of {queue}.")
    copy = said.get("id")
    text = f"A copy could be made of {id}." if dry_run else f"{copy} is a copy of {id}."
    return Done(text, {"queue": queue, "id": copy, "replayOf": id, "dryRun": dry_run})


@verb(dlq, asks="Forget dead letters of {queue}?")
@click.argument("queue")
@filter_options
@click.option("--dry-run", is_flag=True, help="Only count them.")
def purge(server: Server, queue: str, dry_run: bool, **options: Any) -> Shown:
    """Forget all dead letters of a queue, or those that fit.

    Example: tandemq dlq purge mail --older-than 30d --yes
    """
    count = server.call("PurgeDlq", queue=queue, dryRun=dry_run, **wanted(options))["count"]
    forgot = "Would forget" if dry_run else "Forgot"
    text = f"{forgot} {output.counted(count, 'dead letter')} of {queue}."
    return Done(text, {"queue": queue, "count": count, "dryRun": dry_run})


@verb(dlq, asks="Forget dead letter {id} of {queue}?")
@click.argument("queue")
@click.argument("id")
def remove(server: Server, queue: str, id: str) -> Shown:
    """Forget one dead letter.

    Example: tandemq dlq remove mail 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 --yes
    """
    if not server.call("RemoveDlqJob", queue=queue, jobId=id)["removed"]:
        raise Refused(f"{id} is no dead letter of {queue}.")
    return Done(f"Forgot {id}.", {"queue": queue, "id": id})


@verb(dlq)
@click.argument("queue")
@click.option("--auto-retry/--no-auto-retry", "autoRetry", default=None, help="Retry by itself.")
@click.option("--interval", "autoRetryInterval", type=DURATION, help="Wait before the first.")
@click.option("--max-retries", "maxAutoRetries", type=click.IntRange(0), help="Such retries.")
@click.option("--max-age", "maxAge", type=DURATION, help="Forget what is older.")
@click.option("--max-entries", "maxEntries", type=click.IntRange(1), help="Forget the oldest.")
def config(server: Server, queue: str, **options: Any) -> Shown:
    """Show the rules for the dead letters of a queue, after changing those that are named.

    Example: tandemq dlq config mail --auto-retry --interval 1h --max-age P7D
    """
    if changes := present(options):
        server.call("SetDlqConfig", queue=queue, config=changes)
    return Card({"queue": queue, **server.call("GetDlqConfig", queue=queue)["config"]})
