"""``tandemq queue``: what is in queues, and how they behave."""

from __future__ import annotations

from typing import Any

import click

from tandemq.cli import output
from tandemq.cli.groups import Verbs
from tandemq.cli.link import Server
from tandemq.cli.output import Card, Done, Rows, Shown, columns
from tandemq.cli.types import DURATION
from tandemq.cli.verb import present, verb

PAGE = 1000  # queues of one question
MODES = ("round-robin", "fan-out-with-ack", "fan-out-without-ack", "priority-based")
STRATEGIES = ("drop-oldest", "drop-newest", "block-publisher", "redirect-to-dlq")
POLICY = ("mode", "maxSize", "ttl", "overflow", "deadLetters", "maxAttempts", "ackWait")
OVERVIEW = columns("name", "waiting", "prioritized", "delayed", "active", "dlq", "paused")


@click.group(cls=Verbs, aliases={"purge": "drain", "count": "show", "remove": "obliterate"})
def queue() -> None:
    """Look at queues, stop and start them, empty them, limit them."""


def every_queue(server: Server) -> list[dict[str, Any]]:
    """Return the figures of all queues, asked for in pages."""
    found: list[dict[str, Any]] = []
    while True:
        page = server.call("DashboardQueues", offset=len(found), limit=PAGE)["queues"]
        found += page
        if not page:
            return found


@verb(queue, "list")
def list_(server: Server) -> Shown:
    """List all queues with the number of jobs in each state.

    Example: tandemq queue list --json
    """
    found = sorted(every_queue(server), key=lambda each: str(each["name"]))
    return Rows(OVERVIEW, found, "There is no queue.")


@verb(queue)
@click.argument("queue")
def show(server: Server, queue: str) -> Shown:
    """Show the counts, limits and rules of one queue.

    Example: tandemq queue show mail
    """
    seen = server.call("DashboardQueue", queue=queue)
    limits = server.call("GetQueueLimits", queue=queue)["limits"]
    rules = server.call("GetStallConfig", queue=queue)["config"]
    policy = server.call("GetQueuePolicy", queue=queue)["policy"]
    counts = seen["counts"]
    held = counts.pop("paused")  # those that would wait if the queue went on
    shown = {"queue": queue, "paused": seen["paused"], **counts, "pausedJobs": held}
    return Card({**shown, "limits": limits, "stall": rules, "policy": policy})


@verb(queue)
@click.argument("queue")
def pause(server: Server, queue: str) -> Shown:
    """Stop handing out jobs; adding them and ending them goes on.

    Example: tandemq queue pause mail
    """
    server.call("Pause", queue=queue)
    return Done(f"{queue} is paused.", {"queue": queue, "paused": True})


@verb(queue)
@click.argument("queue")
def resume(server: Server, queue: str) -> Shown:
    """Hand out jobs again.

    Example: tandemq queue resume mail
    """
    server.call("Resume", queue=queue)
    return Done(f"{queue} goes on.", {"queue": queue, "paused": False})


@verb(queue)
@click.argument("queue")
def paused(server: Server, queue: str) -> Shown:
    """Say whether a queue is paused.

    Example: tandemq queue paused mail
    """
    stopped = server.call("IsPaused", queue=queue)["paused"]
    return Done("yes" if stopped else "no", {"queue": queue, "paused": stopped})


@verb(queue)
@click.argument("queue")
@click.option("--limit", default=20, show_default=True, help="Most jobs to show.")
def jobs(server: Server, queue: str, limit: int) -> Shown:
    """List the jobs of a queue, as job list does.

    Example: tandemq queue jobs mail
    """
    from tandemq.cli.jobs import LISTED

    return Rows(LISTED, server.call("GetJobs", queue=queue, limit=limit)["jobs"], "No jobs.")


# -- emptying -------------------------------------------------------------------------------------


@verb(queue, asks="Take all waiting and delayed jobs of {queue} away?")
@click.argument("queue")
@click.option("--dry-run", is_flag=True, help="Only count them.")
def drain(server: Server, queue: str, dry_run: bool) -> Shown:
    """Take away the jobs that wait or are delayed; running ones stay. Also called purge.

    Example: tandemq queue drain mail --dry-run
    """
    if dry_run:
        count = server.call("Count", queue=queue)["count"]
        text = f"Would take {output.counted(count, 'job')} of {queue} away."
        return Done(text, {"queue": queue, "count": count, "dryRun": True})
    count = server.call("Drain", queue=queue)["count"]
    return Done(f"Took {output.counted(count, 'job')} away.", {"queue": queue, "count": count})


@verb(queue, asks="Take old {state} jobs of {queue} away?")
@click.argument("queue")
@click.option("--older-than", "grace", type=DURATION, default="0s", help="Only those so old.")
@click.option(
    "--state",
    type=click.Choice(("waiting", "completed", "failed")),
    default="completed",
    help="State of those to take.",
)
@click.option("--limit", default=1000, show_default=True, help="Most jobs to take away.")
def clean(server: Server, queue: str, grace: int, state: str, limit: int) -> Shown:
    """Take away jobs of one state that are old enough.

    Example: tandemq queue clean mail --state completed --older-than 7d --yes
    """
    taken = server.call("Clean", queue=queue, grace=grace, state=state, limit=limit)
    return Done(
        f"Took {output.counted(taken['count'], 'job')} away.",
        {"queue": queue, "count": taken["count"], "ids": taken["ids"]},
    )


@verb(queue, asks="Take away ALL jobs of {queue}, running ones too, and what was set for it?")
@click.argument("queue")
def obliterate(server: Server, queue: str) -> Shown:
    """Take away everything: jobs of all states, dead letters, limits and rules.

    Example: tandemq queue obliterate mail --yes
    """
    server.call("Obliterate", queue=queue)
    return Done(f"{queue} is gone.", {"queue": queue})


@verb(queue)
@click.argument("queue")
@click.option("--count", type=click.IntRange(1), help="At most so many.")
def promote(server: Server, queue: str, count: int | None) -> Shown:
    """Let delayed jobs run now.

    Example: tandemq queue promote mail --count 100
    """
    moved = server.call("PromoteJobs", queue=queue, **present({"count": count}))["count"]
    return Done(f"{output.counted(moved, 'job')} may run now.", {"queue": queue, "count": moved})


# -- limits and rules -----------------------------------------------------------------------------


@verb(queue)
@click.argument("queue")
def limits(server: Server, queue: str) -> Shown:
    """Show how fast, and how many at a time, jobs of a queue may run.

    Example: tandemq queue limits mail
    """
    return Card({"queue": queue, **server.call("GetQueueLimits", queue=queue)["limits"]})


@verb(queue, "set")
@click.argument("queue")
@click.option("--rate", type=float, help="Jobs in each --per; 0 stops the queue.")
@click.option("--per", type=DURATION, default="1s", show_default=True, help="Span of --rate.")
@click.option("--no-rate", is_flag=True, help="No limit of the rate.")
@click.option("--concurrency", type=int, help="Jobs that may run at a time.")
@click.option("--no-concurrency", is_flag=True, help="No limit of those that run.")
@click.option("--stall-after", type=DURATION, help="Silence after which a job is taken back.")
@click.option("--max-stalls", type=click.IntRange(0), help="Stalls that make a dead letter.")
@click.option("--stalls/--no-stalls", default=None, help="Whether silent jobs are taken back.")
@click.option("--mode", type=click.Choice(MODES), help="To whom its messages go.")
@click.option("--max-size", "maxSize", type=click.IntRange(1), help="Messages that may wait.")
@click.option("--ttl", type=DURATION, help="How long a message is good.")
@click.option("--overflow", type=click.Choice(STRATEGIES), help="What it does when it is full.")
@click.option("--dead-letters/--no-dead-letters", "deadLetters", default=None, help="Keep them.")
@click.option("--max-attempts", "maxAttempts", type=click.IntRange(0), help="Deliveries in all.")
@click.option("--ack-timeout", "ackWait", type=DURATION, help="Wait for an acknowledgment.")
def set_(server: Server, queue: str, **options: Any) -> Shown:
    """Set limits and rules of a queue; what is not named stays as it is.

    Mode, size and what follows belong to queues of the broker, and make an empty queue one.

    Example: tandemq queue set mail --rate 100 --per 1m --concurrency 10
    """
    changes = list(_changes(options))
    if not changes:
        raise click.UsageError("Nothing to set: name at least one limit or rule.")
    for command, fields in changes:
        server.call(command, queue=queue, **fields)
    return Done(f"{queue} is set.", {"queue": queue, **present(options)})


def _changes(options: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the commands that options stand for."""
    found: list[tuple[str, dict[str, Any]]] = []
    if options["rate"] is not None and options["no_rate"]:
        raise click.UsageError("--rate and --no-rate exclude each other.")
    if options["rate"] is not None:
        found.append(("RateLimit", {"limit": options["rate"], "duration": options["per"]}))
    if options["no_rate"]:
        found.append(("RateLimitClear", {}))
    if options["concurrency"] is not None:
        found.append(("SetConcurrency", {"limit": options["concurrency"]}))
    if options["no_concurrency"]:
        found.append(("ClearConcurrency", {}))
    named = {"stalls": "enabled", "stall_after": "stallInterval", "max_stalls": "maxStalls"}
    rules = {name: options[key] for key, name in named.items() if options[key] is not None}
    if rules:
        found.append(("SetStallConfig", {"config": rules}))
    policy = {key: options[key] for key in POLICY if options[key] is not None}
    if policy:
        found.append(("SetQueuePolicy", {"policy": policy}))
    return found


def limit_group(command: str, clear: str, name: str, line: str) -> click.Group:
    """Make the reference's noun for one limit, with the verbs ``set`` and ``clear``."""
    noun = Verbs(name, help=line)

    def set_one(server: Server, queue: str, limit: float) -> Shown:
        server.call(command, queue=queue, limit=limit)
        return Done(f"{queue} is set.", {"queue": queue, "limit": limit})

    def clear_one(server: Server, queue: str) -> Shown:
        server.call(clear, queue=queue)
        return Done(f"{queue} has no such limit.", {"queue": queue})

    set_one.__doc__ = f"Set the limit.\n\n    Example: tandemq {name} set mail 10\n    "
    clear_one.__doc__ = f"Forget the limit.\n\n    Example: tandemq {name} clear mail\n    "
    limit = click.argument("limit", type=float)(set_one)
    verb(noun, "set")(click.argument("queue")(limit))
    verb(noun, "clear")(click.argument("queue")(clear_one))
    return noun


rate_limit = limit_group(
    "RateLimit", "RateLimitClear", "rate-limit", "Limit the jobs of a queue in each second."
)
concurrency = limit_group(
    "SetConcurrency", "ClearConcurrency", "concurrency", "Limit the jobs that run at a time."
)
