"""The command line as its users meet it: help, suggestions, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from click.testing import CliRunner

from tandemq import __version__
from tandemq.cli.main import COMMANDS, main, tandemq
from tandemq.cli.version import version


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tandemq", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_the_module_and_the_installed_command_are_the_same() -> None:
    (script,) = entry_points(group="console_scripts", name="tandemq")
    assert script.load() is main
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"tandemq, version {__version__}\n")


def spread(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def test_the_overview_tells_what_each_command_itself_tells() -> None:
    runner = CliRunner()
    overview = spread(runner.invoke(tandemq, ["--help"]).output)
    for name, (_, line) in COMMANDS.items():
        assert f"{name} {line}" in overview
        assert line.rstrip(".") in spread(runner.invoke(tandemq, [name, "--help"]).output)


@pytest.mark.parametrize("path", [["serve"], ["commands"], ["version"]])
def test_every_help_has_an_example(path: list[str]) -> None:
    assert (
        f"Example: tandemq {' '.join(path)}"
        in CliRunner().invoke(tandemq, [*path, "--help"]).output
    )


@pytest.mark.parametrize(("typed", "meant"), [("serv", "serve"), ("comands", "commands")])
def test_a_mistyped_command_is_a_usage_error_with_a_suggestion(typed: str, meant: str) -> None:
    done = CliRunner().invoke(tandemq, [typed])
    assert done.exit_code == 2
    assert f"No such command '{typed}'. Did you mean '{meant}'?" in done.output


def test_a_mistyped_option_is_a_usage_error_with_a_suggestion() -> None:
    done = CliRunner().invoke(tandemq, ["serve", "--prot", "1"])
    assert done.exit_code == 2
    assert "--port" in done.output


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from tandemq.cli.main import tandemq\n"
        "try: tandemq(['--help'])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "msgspec", "sqlite3", "ssl", "logging", "uvloop", "tandemq.config"}
    assert not heavy & set(done.stderr.split())


def test_version_prints_the_three_numbers() -> None:
    text = CliRunner().invoke(version).output
    assert f"tandemq   {__version__}\n" in text
    assert "bunqueue  protocol version 3\n" in text
    assert "data file schema version " in text
    assert '"bunqueue": 3' in CliRunner().invoke(version, ["--json"]).output


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is full")
def test_output_that_cannot_be_written_is_an_error_of_its_own() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tandemq", "commands", "--jsonl"]
        done = subprocess.run(command, stdout=full, stderr=-1, text=True)
    assert (done.returncode, done.stderr) == (
        74,
        "Error: the output cannot be written: No space left on device.\n",
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_place_for_a_socket(closed: str) -> None:
    line = f'"$0" -m tandemq queue list --url tandemq://127.0.0.1:1 {closed}'
    done = subprocess.run(["sh", "-c", line, sys.executable], capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)
