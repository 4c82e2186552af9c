"""The command ``tandemq``: finds the subcommand and imports only that one."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import NoReturn

import click

from tandemq import __version__
from tandemq.cli.exits import Exit, Unread
from tandemq.cli.lazy import LazyGroup
from tandemq.cli.verb import link_options, style_options, sure_option

COMMANDS = {
    "serve": ("tandemq.cli.serve:serve", "Run the server until it is told to stop."),
    "worker": (
        "tandemq.cli.worker:worker",
        "Run the tasks of one or more queues until told to stop.",
    ),
    "job": (
        "tandemq.cli.jobchanges:job",
        "Add jobs, look at them, and change what becomes of them.",
    ),
    "queue": (
        "tandemq.cli.queues:queue",
        "Look at queues, stop and start them, empty them, limit them.",
    ),
    "dlq": (
        "tandemq.cli.deadletters:dlq",
        "Look at dead letters, let them run again, forget them.",
    ),
    "cron": (
        "tandemq.cli.schedules:cron",
        "List, add and remove schedules, and see when they run.",
    ),
    "workers": (
        "tandemq.cli.workers:workers",
        "See which workers are registered; tandemq worker runs one.",
    ),
    "broker": (
        "tandemq.cli.broker:broker",
        "Publish and subscribe, and look after the queues of the broker.",
    ),
    "webhook": ("tandemq.cli.webhooks:webhook", "List, add, remove and switch webhooks."),
    "user": (
        "tandemq.cli.users:user",
        "Add and remove users, and say what each may do. Superusers only.",
    ),
    "token": (
        "tandemq.cli.users:token",
        "Make and revoke tokens that stand for users. Superusers only.",
    ),
    "stats": (
        "tandemq.cli.stats:stats",
        "Print the counts of all jobs and the rates a second.",
    ),
    "metrics": (
        "tandemq.cli.stats:metrics",
        "Print totals since the start, or the ends of a queue's jobs minute by minute.",
    ),
    "top": (
        "tandemq.cli.top:top",
        "Show what the server does, live; Ctrl-C ends it. In a pipe it is one look.",
    ),
    "ping": (
        "tandemq.cli.stats:ping",
        "Ask the server for a sign of life and print how long it took.",
    ),
    "health": (
        "tandemq.cli.stats:health",
        "Say whether the server answers and can store; exit code 1 when not. For HEALTHCHECK.",
    ),
    "compact": (
        "tandemq.cli.stats:compact",
        "Have the server let go of memory that it does not need; it does so by itself as well.",
    ),
    "bench": ("tandemq.cli.bench:bench", "Load a server for a moment and print what it did."),
    "doctor": (
        "tandemq.cli.doctor:doctor",
        "Check this machine and these settings; exit code 1 when something is wrong.",
    ),
    "backup": (
        "tandemq.cli.backup:backup",
        "Copy, check and bring back a data file; the server may go on.",
    ),
    "config": ("tandemq.cli.config:config", "Show, check or write settings."),
    "commands": ("tandemq.cli.commands:commands", "List the commands of the wire protocols."),
    "completion": (
        "tandemq.cli.completion:completion",
        "Print a script for a shell; it goes into the shell's start file.",
    ),
    "version": ("tandemq.cli.version:version", "Print the versions of program, wires and file."),
    "rate-limit": (
        "tandemq.cli.queues:rate_limit",
        "Limit the jobs of a queue in each second.",
    ),
    "concurrency": ("tandemq.cli.queues:concurrency", "Limit the jobs that run at a time."),
}
ALIASES = {  # words of the reference, and plurals
    "start": "serve",
    "push": "job add",
    "pull": "job pull",
    "ack": "job ack",
    "fail": "job fail",
    "healthcheck": "health",
    "jobs": "job",
    "queues": "queue",
    "schedules": "cron",
    "users": "user",
    "tokens": "token",
    "webhooks": "webhook",
}

MOVED = {f"worker {verb}": "workers" for verb in ("list", "stats", "register", "unregister")}


@click.group(
    cls=LazyGroup,
    targets=COMMANDS,
    moved=MOVED,
    aliases=ALIASES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@link_options
@style_options
@sure_option
@click.version_option(__version__, prog_name="tandemq")
def tandemq(**_: object) -> None:
    """A job queue and a message broker in one server.

    Example: tandemq serve --data ./jobs.db
    """


UNWRITABLE = errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    _fill_streams()
    sys.exit(run())


def _fill_streams() -> None:
    """Put nothing where a stream was closed, or its number would become that of a socket."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            setattr(sys, name, os.fdopen(nothing, "w" if number else "r", closefd=False))


def run() -> int:
    """Run the command line; who interrupts it, or stops reading it, ends it as a signal would."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # users' data may be anything
    try:
        code = tandemq.main(prog_name="tandemq", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except click.Abort as given_up:
        if isinstance(given_up.__cause__, EOFError):
            click.echo("Nothing was changed.", err=True)
            return 1
        return 128 + signal.SIGINT
    except BrokenPipeError:
        unread = Unread()
        unread.show()
        return unread.exit_code
    except OSError as problem:
        if problem.errno not in UNWRITABLE:
            raise
        Unread().show()
        click.echo(f"Error: the output cannot be written: {problem.strerror}.", err=True)
        return Exit.IO
    return code if isinstance(code, int) else 0
