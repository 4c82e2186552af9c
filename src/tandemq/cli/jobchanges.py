"""``tandemq job``: what can be done to a job, by operators and by scripts that work on jobs."""

from __future__ import annotations

from typing import Any

import click

from tandemq.cli.exits import Refused
from tandemq.cli.jobs import FIRST, job
from tandemq.cli.link import Server
from tandemq.cli.output import Card, Done, Shown
from tandemq.cli.types import DURATION, PAYLOAD
from tandemq.cli.verb import present, verb

__all__ = ["job"]

LONGEST = 60_000  # ms that a pull may wait


@verb(job, asks="Take job {id} away?")
@click.argument("id")
def cancel(server: Server, id: str) -> Shown:
    """Take a job away that has not begun.

    Example: tandemq job cancel 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 --yes
    """
    server.call("Cancel", id=id)
    return Done(f"Took {id} away.", {"id": id})


@verb(job, asks="Make job {id} a dead letter?")
@click.argument("id")
def discard(server: Server, id: str) -> Shown:
    """Make a job a dead letter, whatever it does at the moment.

    Example: tandemq job discard 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 --yes
    """
    server.call("Discard", id=id)
    return Done(f"{id} is a dead letter.", {"id": id})


@verb(job)
@click.argument("id")
def retry(server: Server, id: str) -> Shown:
    """Let a job run again that has failed for good or was completed.

    Example: tandemq job retry 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69
    """
    found = server.call("GetJob", id=id)["job"]
    queue, state = found["queue"], found["state"]
    if state == "completed":
        count = server.call("RetryCompleted", queue=queue, id=id)["count"]
    else:
        count = server.call("RetryDlq", queue=queue, jobId=id)["count"]
    if not count:
        raise Refused(f"{id} is {state}: only what is completed or failed can run again.")
    return Done(f"{id} runs again.", {"id": id, "queue": queue})


@verb(job)
@click.argument("id")
def promote(server: Server, id: str) -> Shown:
    """Let a delayed job run now.

    Example: tandemq job promote 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69
    """
    server.call("Promote", id=id)
    return Done(f"{id} may run now.", {"id": id})


@verb(job)
@click.argument("id")
@click.argument("delay", type=DURATION)
def delay(server: Server, id: str, delay: int) -> Shown:
    """Let a job wait, from now on.

    Example: tandemq job delay 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 10m
    """
    state = server.call("GetState", id=id)["state"]
    server.call("MoveToDelayed" if state == "active" else "ChangeDelay", id=id, delay=delay)
    return Done(f"{id} waits.", {"id": id, "delay": delay})


@verb(job)
@click.argument("id")
@click.argument("priority", type=int)
def priority(server: Server, id: str, priority: int) -> Shown:
    """Give a job another priority; higher goes first.

    Example: tandemq job priority 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 10
    """
    server.call("ChangePriority", id=id, priority=priority)
    return Done(f"{id} has priority {priority}.", {"id": id, "priority": priority})


@verb(job)
@click.argument("id")
@click.argument("data", type=PAYLOAD)
def update(server: Server, id: str, data: Any) -> Shown:
    """Give a job other data.

    Example: tandemq job update 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 '{"to": "bob"}'
    """
    server.call("Update", id=id, data=data)
    return Done(f"{id} has other data.", {"id": id})


# -- for scripts that work ------------------------------------------------------------------------


@verb(job)
@click.argument("queue")
@click.option("--for", "within", type=DURATION, default="0s", help="Wait so long for one.")
def pull(server: Server, queue: str, within: int) -> Shown:
    """Take the next job of a queue; end it by ack or fail. Exit code 1 when there is none.

    The job stays taken when this command ends, until it shows no sign of life for the time that
    the queue allows (30 s by default).

    Example: tandemq job pull mail --for 10s --json
    """
    found = server.call("PULL", queue=queue, timeout=min(within, LONGEST), detach=True).get("job")
    if found is None:
        raise Refused(f"No job of {queue} can be had.")
    return Card(found, FIRST)


@verb(job)
@click.argument("id")
@click.argument("result", type=PAYLOAD, required=False)
def ack(server: Server, id: str, result: Any) -> Shown:
    """Say that a job is done, with its result as JSON.

    Example: tandemq job ack 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 '{"sent": true}'
    """
    server.call("ACK", id=id, **present({"result": result}))
    return Done(f"{id} is done.", {"id": id})


@verb(job)
@click.argument("id")
@click.argument("error", default="failed by hand")
@click.option("--for-good", is_flag=True, help="Do not try it again.")
def fail(server: Server, id: str, error: str, for_good: bool) -> Shown:
    """Say that a job has failed; it is tried again as its options say.

    Example: tandemq job fail 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 'no such address'
    """
    server.call("FAIL", id=id, error=error, unrecoverable=for_good)
    return Done(f"{id} has failed.", {"id": id, "error": error})


@verb(job)
@click.argument("id")
@click.argument("percent", type=click.IntRange(0, 100))
@click.option("--message", help="What it does at the moment.")
def progress(server: Server, id: str, percent: int, message: str | None) -> Shown:
    """Say how far a running job is, from 0 to 100.

    Example: tandemq job progress 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 50 --message halfway
    """
    server.call("Progress", id=id, progress=percent, **present({"message": message}))
    return Done(f"{id} is at {percent} %.", {"id": id, "progress": percent})


@verb(job)
@click.argument("id")
@click.argument("message")
@click.option("--level", default="info", show_default=True, help="How severe it is.")
def log(server: Server, id: str, message: str, level: str) -> Shown:
    """Add a line to the log of a job.

    Example: tandemq job log 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 'looked at by hand'
    """
    server.call("AddLog", id=id, message=message, level=level)
    return Done("Noted.", {"id": id})
