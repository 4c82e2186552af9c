"""``tandemq commands``: the command table, with the place where each command is written."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from tandemq.cli.groups import Verbs
from tandemq.cli.output import Column, Rows, Shown, Text
from tandemq.cli.verb import verb
from tandemq.commands.table import COMMANDS, Command

_group = Verbs()
LISTED = (
    Column("COMMAND", "name"),
    Column("PERMISSION", "permission"),
    Column("SUMMARY", "summary"),
    Column("WHERE", "where"),
)


class Row(NamedTuple):
    """One command of the table."""

    name: str
    permission: str
    summary: str
    file: str
    line: int


@verb(_group, link=None)
@click.option("--markdown", is_flag=True, help="Print the page of the documentation.")
def commands(markdown: bool) -> Shown:
    """List the commands of the wire protocols.

    Each with its permission and the file and line where it is written.

    Example: tandemq commands --json
    """
    if markdown:
        return Text(page(), "page")
    rows = list(map(_row, _every()))
    return Rows(LISTED, [{**row._asdict(), "where": f"{row.file}:{row.line}"} for row in rows])


PAGE = """# Commands

Made of the command table by `tandemq commands --markdown`. Each command can be asked for on the
job wire ([protocol](protocol/bunqueue.md)) and, where a route is named, over HTTP. What a
permission takes is told [with the users](explain/users.md): `anybody` needs no proof of who asks,
`open` no more than that.

| Command | Permission | HTTP | What it does |
|---|---|---|---|
"""


def page() -> str:
    """Return the page about all commands, in Markdown."""
    return PAGE + "".join(map(_line, _every()))


def _every() -> list[Command]:
    import_module("tandemq.commands.all")  # registers every command
    return [COMMANDS[name] for name in sorted(COMMANDS, key=str.lower)]


def _line(command: Command) -> str:
    routes = "<br>".join(f"`{route.method} {route.path}`" for route in command.http)
    summary = command.summary.replace("``", "`").replace("|", "\\|")
    return f"| {command.name} | {command.permission.value} | {routes} | {summary} |\n"


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
