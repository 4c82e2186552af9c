"""``tandemq commands``: what is registered, and where it is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from tandemq.cli.commands import commands
from tandemq.commands import table
from tandemq.commands.table import Permission, Request, command


@pytest.fixture(autouse=True)
def two_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of two commands in place of the real one."""
    monkeypatch.setattr(table, "BY_REQUEST", {})
    monkeypatch.setattr(table, "COMMANDS", {})
    monkeypatch.setattr("tandemq.cli.commands.COMMANDS", table.COMMANDS)
    monkeypatch.setitem(sys.modules, "tandemq.commands.all", ModuleType("tandemq.commands.all"))
    register()


class Zip(Request, tag="Zip"):
    pass


class Add(Request, tag="ADD"):
    pass


def register() -> None:
    @command(Permission.CONTROL)
    def run_zip(request: Zip, call: Any) -> None:
        """Close something.

        More that the table leaves out.
        """

    @command(Permission.PUBLISH)
    def run_add(request: Add, call: Any) -> None:
        """Add something."""


def listed() -> list[dict[str, Any]]:
    done = CliRunner().invoke(commands, ["--json"])
    assert done.exit_code == 0, done.output
    rows: list[dict[str, Any]] = json.loads(done.output)
    return rows


def test_each_row_has_permission_summary_and_place() -> None:
    rows = listed()
    assert [row["name"] for row in rows] == ["ADD", "Zip"]
    assert rows[1]["permission"] == "control"
    assert rows[1]["summary"] == "Close something."
    lines = Path(rows[0]["file"]).resolve().read_text(encoding="utf-8").splitlines()
    assert lines[rows[0]["line"] - 1].strip() == "@command(Permission.PUBLISH)"


def test_people_get_one_line_for_each() -> None:
    lines = CliRunner().invoke(commands).output.splitlines()
    assert lines[0].split() == ["COMMAND", "PERMISSION", "SUMMARY", "WHERE"]
    assert lines[1].startswith("ADD")
    assert len(lines) == 3


def test_the_page_has_a_line_for_each() -> None:
    lines = CliRunner().invoke(commands, ["--markdown"]).output.splitlines()
    assert lines[-2:] == [
        "| ADD | publish |  | Add something. |",
        "| Zip | control |  | Close something. |",
    ]


def test_the_place_is_short_from_the_folder_it_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    assert {row["file"] for row in listed()} == {"test_commands.py"}
