"""``tandemq commands``: the command table, with the place where each command is written."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tandemq.cli.groups import Verbs
from tandemq.cli.output import Column, Rows, Shown
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
def commands() -> Shown:
    """List the commands of the wire protocols.

    Each with its permission and the file and line where it is written.

    Example: tandemq commands --json
    """
    import_module("tandemq.commands.all")  # registers every command
    rows = [_row(COMMANDS[name]) for name in sorted(COMMANDS, key=str.lower)]
    return Rows(LISTED, [{**row._asdict(), "where": f"{row.file}:{row.line}"} for row in rows])


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
