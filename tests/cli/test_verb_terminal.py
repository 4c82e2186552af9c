"""Questions on a terminal, and what becomes of each answer."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.shell import Shell
from tests.support.server import Server, clean_environment

PATIENCE = 30.0  # s


class Terminal:
    """A command with a person in front of it."""

    def __init__(self, *arguments: str) -> None:
        self._own, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tandemq", *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**clean_environment(), "TERM": "dumb"}, preexec_fn=_take,
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def answer(self, question: str, answer: str) -> None:
        """Wait for a question and type an answer."""
        ends = time.monotonic() + PATIENCE
        while question not in self.seen:
            assert time.monotonic() < ends, self.seen
            self._look()
        os.write(self._own, answer.encode())

    def code(self, *, again: str = "") -> int:
        """Read on until the command ends; ``again`` is typed now and then until it does.

        Python does not see a Ctrl-C in the few moments in which it begins to read a line.
        """
        ends = time.monotonic() + PATIENCE
        looks = 0
        while self.process.poll() is None:
            assert time.monotonic() < ends, self.seen
            self._look()
            looks += 1
            if looks % 10 == 0:
                os.write(self._own, again.encode())
        self._look()
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._own)

    def _look(self) -> None:
        ready, _, _ = select.select([self._own], [], [], 0.05)
        if ready:
            try:
                self.seen += os.read(self._own, 65_536).decode()
            except OSError:  # how the end of a terminal reads
                time.sleep(0.01)


def _take() -> None:
    """Make the terminal that of the new session, so that Ctrl-C reaches it."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    made: list[Terminal] = []
    yield made
    for each in made:
        each.close()


@pytest.mark.parametrize(
    ("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 1), ("\n", 1, 1), ("\x03", 130, 1)]
)
def test_what_destroys_asks_and_heeds_the_answer(
    shell: Shell, queue: str, terminals: list[Terminal], answer: str, code: int, left: int
) -> None:
    shell.add(queue)
    terminal = Terminal("queue", "drain", queue, "--url", shell.url)
    terminals.append(terminal)
    terminal.answer(f"Take all waiting and delayed jobs of {queue} away? [y/N]", answer)
    assert terminal.code(again="\x03" if answer == "\x03" else "") == code
    assert "Traceback" not in terminal.seen
    assert len(shell.json("job", "list", queue)) == left


def test_a_password_is_asked_for_twice_and_not_shown(
    closed: Server, tmp_path: Path, terminals: list[Terminal]
) -> None:
    url = f"tandemq://:sesame@127.0.0.1:{closed.port}"
    terminal = Terminal("user", "create", "root", "--superuser", "--url", url)
    terminals.append(terminal)
    terminal.answer("Password:", "hunter2\n")
    terminal.answer("Repeat for confirmation:", "hunter2\n")
    assert terminal.code() == 0, terminal.seen
    assert "Made superuser root." in terminal.seen
    assert "hunter2" not in terminal.seen
    by_password = Shell(closed.port)
    by_password.url = f"tandemq://root:hunter2@127.0.0.1:{closed.port}"
    assert by_password.run("ping", "--url", by_password.url).exit_code == 0
