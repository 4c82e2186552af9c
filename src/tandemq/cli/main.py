"""The command ``tandemq``: finds the subcommand and imports only that one."""

from __future__ import annotations

from typing import NoReturn

import click

from tandemq import __version__
from tandemq.cli.lazy import LazyGroup

COMMANDS = {
    "serve": ("tandemq.cli.serve:serve", "Run the server until it is told to stop."),
    "config": ("tandemq.cli.config:config", "Show, check or write settings."),
    "commands": ("tandemq.cli.commands:commands", "List the commands of the wire protocols."),
    "version": ("tandemq.cli.version:version", "Print the versions of program, wires and file."),
}


@click.group(
    cls=LazyGroup, targets=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="tandemq")
def tandemq() -> None:
    """A job queue and a message broker in one server.

    Example: tandemq serve --data ./jobs.db
    """


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    tandemq.main(prog_name="tandemq")
    raise AssertionError("click ends the process")
