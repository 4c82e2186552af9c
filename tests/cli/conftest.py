"""The command line is tried without the variables that steer the tests themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.cli.shell import Shell
from tests.support.server import Server


@pytest.fixture(autouse=True)
def no_variables_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TANDEMQ_")]:
        monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def shell(server: Server) -> Shell:
    """Runs commands against a server that the tests of a module share."""
    return Shell(server.port)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that wants a token: ``sesame``."""
    folder = tmp_path_factory.mktemp("closed")
    quick = {"TANDEMQ_PASSWORD_HASH_BYTES": "8192", "TANDEMQ_PASSWORD_HASH_ROUNDS": "1"}
    environment = {"TANDEMQ_TOKEN": "sesame", "TANDEMQ_LOGIN_LIMIT": "0", **quick}
    with Server(folder, environment=environment) as running:
        yield running
