"""``tandemq commands``: the command table, with the place where each command is written."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from tandemq.cli.output import as_json, table
from tandemq.commands.table import COMMANDS, Command


class Row(NamedTuple):
    """One command of the table."""

    name: str
    permission: str
    summary: str
    file: str
    line: int


@click.command()
@click.option("--json", "json_wanted", is_flag=True, help="Print one JSON document.")
def commands(json_wanted: bool) -> None:
    """List the commands of the wire protocols.

    Each with its permission and the file and line where it is written.

    Example: tandemq commands --json
    """
    import_module("tandemq.commands.all")  # registers every command
    rows = [_row(COMMANDS[name]) for name in sorted(COMMANDS, key=str.lower)]
    if json_wanted:
        click.echo(as_json([row._asdict() for row in rows]))
        return
    head = ("COMMAND", "PERMISSION", "SUMMARY", "WHERE")
    table(head, [(r.name, r.permission, r.summary, f"{r.file}:{r.line}") for r in rows])


def _row(command: Command) -> Row:
    code: Any = getattr(command.run, "__code__")  # noqa: B009  a callable need not have one
    file = _near(Path(code.co_filename))
    return Row(
        command.name, command.permission.value, command.summary, str(file), code.co_firstlineno
    )


def _near(path: Path) -> Path:
    """The path as it is shortest to type from here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
