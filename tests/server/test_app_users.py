"""A server process with users: its first start, later ones, and what kill -9 leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.test_app import ended, run, says
from tests.support.patience import eventually
from tests.support.server import Server, is_own

pytestmark = pytest.mark.skipif(not is_own(), reason="only about our own server")

NewServer = Callable[..., Server]
CHEAP = {"TANDEMQ_PASSWORD_HASH_BYTES": "8KiB", "TANDEMQ_PASSWORD_HASH_ROUNDS": "1"}
PASSWORD = {"TANDEMQ_SUPERUSER": "root", "TANDEMQ_SUPERUSER_PASSWORD": "hunter2", **CHEAP}


def test_a_first_start_without_a_password_fails_and_says_what_to_do(tmp_path: Path) -> None:
    told = run("--port", "0", "--superuser", "root", folder=tmp_path)
    assert told.returncode == 78
    assert "the superuser 'root' needs a password, and none is given" in told.stderr
    assert "--superuser-password-file" in told.stderr
    assert "TANDEMQ_SUPERUSER_PASSWORD" in told.stderr
    assert "Traceback" not in told.stderr


def test_the_superuser_outlives_the_server_and_the_settings_that_made_it(
    new_server: NewServer,
) -> None:
    server = new_server(environment=dict(PASSWORD)).start()
    says(server, "auth   on, 1 user\n")
    with server.connect() as wire:
        assert wire.ask("Ping")["error"] == "Not authenticated"
        wire.do("Auth", user="root", password="hunter2")
        wire.push("q", 1)
    server.kill()
    for later in ({}, {**PASSWORD, "TANDEMQ_SUPERUSER_PASSWORD": "another"}):
        server._environment.clear()
        server._environment.update({**CHEAP, **later})
        server.start()
        with server.connect() as wire:
            assert wire.ask("Auth", user="root", password="another")["ok"] is False
            wire.do("Auth", user="root", password="hunter2")
            assert wire.do("Count", queue="q")["count"] == 1
        assert server.stop() == 0
    assert "hunter2" not in server.log_tail(1_000_000)


def test_the_usual_parameters_let_a_user_in_too(new_server: NewServer) -> None:
    server = new_server(environment={"TANDEMQ_SUPERUSER_PASSWORD": "hunter2"}).start()
    with server.connect() as wire, server.connect() as other:
        for connection in (wire, other):
            connection.do("Auth", user="vibemq", password="hunter2")
        wire.do("Stats")
    assert server.stop() == 0


def test_a_stop_in_the_middle_of_many_logins_is_clean(new_server: NewServer) -> None:
    server = new_server(environment={"TANDEMQ_SUPERUSER_PASSWORD": "hunter2"}).start()
    wires = [server.connect() for _ in range(30)]
    try:
        for wire in wires:
            wire.send("Auth", user="vibemq", password="wrong")
        eventually(lambda: "a login from 127.0.0.1 failed" in server.log_tail(), "the first answer")
        assert server.stop() == 0
        assert "Traceback" not in server.log_tail(100_000)
    finally:
        for wire in wires:
            wire.close()


def test_a_password_file_that_cannot_be_read_is_named(
    tmp_path: Path, new_server: NewServer
) -> None:
    file = tmp_path / "missing"
    environment = {"TANDEMQ_SUPERUSER_PASSWORD_FILE": str(file), **CHEAP}
    server = new_server(environment=environment)
    server.start(wait=False)
    assert ended(server) == 78
    assert f"superuser_password_file {file} cannot be read" in server.log_tail()
    file.write_text("hunter2\n")
    server.start()
    with server.connect() as wire:
        wire.do("Auth", user="vibemq", password="hunter2")
    assert server.stop() == 0
