"""Fixtures for the tests that talk to a real server process."""

from __future__ import annotations

import itertools
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.server import Server, is_own
from tests.support.wire import Wire

REMARKS = pytest.StashKey[list[str]]()
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REMARKS] = []
    # A shell without job control that runs this in the background makes it ignore Ctrl-C, and with
    # it every program that a test starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    remarks = config.stash.get(REMARKS, [])
    if remarks:
        terminalreporter.section("remarks")
        for remark in remarks:
            terminalreporter.write_line(remark)


@pytest.fixture
def remark(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Say something in the summary of the run, whether the test passes or fails."""
    return pytestconfig.stash[REMARKS].append


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on a file, shared by the tests of one module that leave it as they found it."""
    folder = tmp_path_factory.mktemp("server")
    with Server(folder, environment={"TANDEMQ_LOGIN_LIMIT": "0"}) as running:
        yield running
        assert running.running(), f"the server died:\n{running.log_tail()}"
        if is_own():
            assert "Traceback" not in running.log_tail(1_000_000), running.log_tail(20_000)


@pytest.fixture
def new_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Makes servers, each with a folder of its own; all are gone at the end of the test."""
    made: list[Server] = []

    def make(
        *, environment: dict[str, str] | None = None, prefix: list[str] | None = None
    ) -> Server:
        folder = tmp_path / f"server{len(made)}"
        folder.mkdir()
        made.append(Server(folder, environment=environment, prefix=prefix))
        return made[-1]

    yield make
    for each in made:
        each.kill()


@pytest.fixture
def own_server(new_server: Callable[..., Server]) -> Server:
    """A server that this test alone may kill and restart."""
    return new_server().start()


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    with server.connect() as connection:
        yield connection


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    """A queue name that no other test uses."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:60].strip("-")
    return f"{name}-{next(_numbers)}"
