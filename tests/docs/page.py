"""Runs the examples of a page in their order, in one folder and against one server.

* A Python block whose first line is a comment with a file name is that file; any other is run.
* Of a console block each line that begins with ``$ `` is run by a shell, and what follows is its
  output, where ``...`` stands for anything. Without such lines the output may be anything.
* ``tandemq serve`` has its flags checked: the server of the test is there already. ``tandemq
  worker`` works until the end of the page. ``pip install`` is left out.
* A shell runs what is known to harm nothing; other programs are not for tests to start.
* ``<!-- not run: reason -->`` in the line before a block leaves it out.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from tandemq.cli.main import tandemq

PATIENCE = 60.0  # s for one command
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n+)?"
    r"^(?P<indent> *)```(?P<kind>\w+)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# (?P<name>[\w./-]+\.\w+)\b.*\n")
DATA = re.compile(r"^\$ tandemq serve\b.*--data[= ](?P<file>\S+)", re.MULTILINE)
GRACE = 20.0  # s for a worker to end
HARMLESS = {"tandemq", "python", "pytest", "echo", "cat", "mkdir", "ls"}
ASSIGNMENT = re.compile(r"[A-Z_]+=\S*$")


@dataclass(frozen=True, slots=True)
class Block:
    """An example."""

    kind: str
    text: str
    line: int
    reason: str | None  # why it is not run


def blocks(page: Path) -> list[Block]:
    """The examples of a page."""
    text = page.read_text("utf-8")
    return [
        Block(
            match["kind"],
            re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE),
            text.count("\n", 0, match.start("kind")) + 1,
            match["reason"],
        )
        for match in BLOCK.finditer(text)
    ]


def data_file(page: Path) -> str | None:
    """The data file that the page gives its server."""
    for block in blocks(page):
        if block.kind == "console" and (match := DATA.search(block.text)):
            return match["file"]
    return None


class Reader:
    """Somebody who types what a page says."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        tools = str(Path(sys.executable).parent)
        self._folder = folder
        self._environ = {**environ, "PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "200"}
        self._environ["PYTHONPATH"] = str(folder)
        self._workers: list[subprocess.Popen[str]] = []

    def read(self, block: Block) -> None:
        """Do what an example says; it has to work."""
        if block.kind == "python":
            self._python(block)
        elif block.kind == "console":
            for command, expected in commands(block.text):
                self._type(command, expected)
        elif block.kind in ("toml", "json") and (match := FILE.match(block.text)):
            (self._folder / match["name"]).write_text(block.text, "utf-8")

    def close(self) -> None:
        """End what still works; it has to end in order."""
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            out, _ = worker.communicate(timeout=GRACE)
            assert worker.returncode == 0, out

    def _python(self, block: Block) -> None:
        match = FILE.match(block.text)
        if match is not None:
            file = self._folder / match["name"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, "utf-8")
            return
        file = self._folder / f"line_{block.line}.py"
        file.write_text(block.text, "utf-8")
        self._run([sys.executable, "-W", "error", str(file)])

    def _type(self, command: str, expected: list[str]) -> None:
        if command.startswith("pip install"):
            return
        if command.startswith("tandemq worker "):
            self._start(command)
            return
        if command.startswith("tandemq serve"):
            flags = command.removeprefix("tandemq serve")
            command, expected = f"tandemq config check {flags}", []
        printed = self._printed(command)
        if expected:
            pattern = re.escape(squeezed(expected)).replace(r"\.\.\.", r".*?")
            seen = squeezed(printed.splitlines())
            assert re.fullmatch(pattern, seen, re.DOTALL), (
                f"$ {command}\n{printed}\nis not\n" + "\n".join(expected)
            )

    def _printed(self, command: str) -> str:
        """Run a command as a shell would; one of ours in this process, which takes a tenth."""
        words = shlex.split(command, comments=True)
        program = next(word for word in words if not ASSIGNMENT.match(word))
        assert program in HARMLESS, f"mark the block as not run: {command}"
        if words[0] != "tandemq" or set("|&;<>$(`") & set(command):
            return self._run(["bash", "-c", command])
        environ = {**dict.fromkeys(os.environ), **self._environ}
        with contextlib.chdir(self._folder):
            done = CliRunner().invoke(tandemq, words[1:], env=environ)
        assert done.exit_code == 0, f"{command}\n{done.output}"
        return done.stdout

    def _start(self, command: str) -> None:
        worker = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=self._folder, env=self._environ, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._workers.append(worker)

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=self._folder, env=self._environ, text=True, timeout=PATIENCE, check=False,
            stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def commands(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the output that is shown."""
    found: list[tuple[str, list[str]]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            command, _ = found.pop()
            found.append((f"{command.removesuffix(chr(92))} {line[2:]}", []))
        elif line and found:
            found[-1][1].append(line)
    return found


def squeezed(lines: Iterable[str]) -> str:
    """Lines in which how far apart words are does not count."""
    return "".join(f"{' '.join(line.split())}\n" for line in lines)
