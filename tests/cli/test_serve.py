"""``tandemq serve`` as far as the command line goes: what it hands over, how failures end."""

from __future__ import annotations

import errno
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

import tandemq.server
from tandemq.cli.serve import serve
from tandemq.config import FIELDS, BadSetting, Settings
from tandemq.stores.base import StoreFailed, StoreUnusable

Serve = Callable[[Settings], int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Result]]:
    """Runs the command with a server that is only a function."""
    monkeypatch.chdir(tmp_path)

    def invoke(server: Serve, *arguments: str, **environ: str) -> Result:
        app = ModuleType("tandemq.server.app")
        app.serve = server  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "tandemq.server.app", app)
        monkeypatch.setattr(tandemq.server, "app", app, raising=False)
        return CliRunner().invoke(serve, arguments, env=environ)

    root = logging.getLogger("tandemq")
    handlers, level, propagate = root.handlers, root.level, root.propagate
    yield invoke
    root.handlers, root.propagate = handlers, propagate
    root.setLevel(level)


def failing(problem: BaseException) -> Serve:
    def server(_: Settings) -> int:
        raise problem

    return server


def test_every_setting_is_a_flag() -> None:
    text = CliRunner().invoke(serve, ["--help"], terminal_width=200).output
    for field in FIELDS.values():
        assert (f"{field.flag} " in text) is not field.flagless
        assert (field.doc in text) is not field.flagless


def test_a_password_cannot_be_given_on_a_command_line_that_others_can_read() -> None:
    flagless = {field.name for field in FIELDS.values() if field.flagless}
    assert flagless == {"superuser_password"}
    told = CliRunner().invoke(serve, ["--superuser-password", "hunter2"])
    assert told.exit_code == 2
    assert "hunter2" not in told.output


def test_the_settings_reach_the_server_and_its_code_is_the_exit_code(
    run: Callable[..., Result],
) -> None:
    got: list[Settings] = []

    def server(settings: Settings) -> int:
        got.append(settings)
        return 3

    arguments = ["--port", "0", "--token", "a", "--token", "b", "--half-frame-timeout", "5m"]
    done = run(server, *arguments, TANDEMQ_DATA="memory")
    assert done.exit_code == 3
    expected = Settings(port=0, tokens=("a", "b"), half_frame_timeout=300.0, data="memory")
    assert got == [expected]


def test_the_log_is_set_up_before_the_server_runs(run: Callable[..., Result]) -> None:
    def server(_: Settings) -> int:
        logging.getLogger("tandemq.server").info("hello", extra={"event": "started"})
        return 0

    done = run(server, "--log-format", "logfmt")
    assert "level=info logger=tandemq.server msg=hello event=started" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("problem", "code", "says"),
    [
        (OSError(errno.EADDRINUSE, "address already in use"), 69, "address already in use"),
        (PermissionError(errno.EACCES, "permission denied"), 69, "permission denied"),
        (StoreUnusable("q.db: held by process 7"), 74, "q.db: held by process 7"),
        (StoreFailed("disk full"), 74, "disk full"),
        (OSError(errno.ENOSPC, "no space left"), 74, "no space left"),
        (BadSetting("tls_key x does not belong"), 78, "tls_key x does not belong"),
        (socket.gaierror(-2, "name not known"), 78, "name not known"),
        (ExceptionGroup("parts", [ExceptionGroup("p", [StoreFailed("full")])]), 74, "full"),
    ],
)
def test_a_known_failure_is_one_line_and_its_code(
    run: Callable[..., Result], problem: Exception, code: int, says: str
) -> None:
    done = run(failing(problem))
    assert done.exit_code == code
    assert done.stderr.startswith("Error: ")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_defect_of_ours_shows_its_traceback_and_ends_with_70(run: Callable[..., Result]) -> None:
    done = run(failing(ZeroDivisionError("by zero")))
    assert done.exit_code == 70
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError: by zero" in done.stderr


def test_a_bad_setting_ends_with_78_before_any_server_starts(run: Callable[..., Result]) -> None:
    done = run(failing(AssertionError("started")), "--host", "0.0.0.0")
    assert done.exit_code == 78
    assert "--insecure" in done.stderr
