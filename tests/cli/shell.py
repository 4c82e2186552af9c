"""Runs commands in this process, as a shell would: arguments in, output and exit code out."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from click.testing import CliRunner, Result
from tests.support.server import clean_environment

from tandemq.cli.main import tandemq


class Shell:
    """Commands against one server."""

    def __init__(self, port: int, *, token: str | None = None) -> None:
        self.url = f"tandemq://127.0.0.1:{port}"
        self._early = ["--url", self.url, *(["--token", token] if token else [])]

    def run(self, *arguments: str, input: str | bytes | None = None, **environ: str) -> Result:
        """Run a command, however it ends; what it raises is a defect."""
        done = CliRunner().invoke(tandemq, [*self._early, *arguments], input=input, env=environ)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "Traceback" not in done.output
        return done

    def text(self, *arguments: str, **options: Any) -> str:
        """What a command that succeeds prints, without the last line end."""
        done = self.run(*arguments, **options)
        assert done.exit_code == 0, done.output
        return done.stdout.removesuffix("\n")

    def json(self, *arguments: str, **options: Any) -> Any:
        """The one document that a command prints that succeeds."""
        return json.loads(self.text(*arguments, "--json", **options))

    def fails(self, code: int, *arguments: str, **options: Any) -> str:
        """What a command says on standard error that ends with a code; nothing else is printed."""
        done = self.run(*arguments, **options)
        assert (done.exit_code, done.stdout) == (code, ""), done.output
        return done.stderr

    def add(self, queue: str, data: str = "1", *options: str) -> str:
        """Add a job and return its id."""
        return self.text("job", "add", queue, data, *options)


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """A command in a process of its own, without a terminal."""
    environ = {**clean_environment(), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "tandemq", *arguments]
    return subprocess.Popen(
        command, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL, **options,
    )  # fmt: skip
