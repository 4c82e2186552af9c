"""Reports of deploys in Kubernetes: signals that did not arrive, probes, workers that linger."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pains.test_graceful_shutdown import given, states
from tests.pains.workers import Crew
from tests.support.patience import eventually
from tests.support.server import Server, is_own
from tests.support.web import Web
from tests.support.wire import Wire

pytestmark = pytest.mark.skipif(not is_own(), reason="the worker is ours")


def workers(wire: Wire) -> list[str]:
    """The states of the workers that are listed."""
    return [worker["status"] for worker in wire.do("ListWorkers")["data"]["workers"]]


@pytest.mark.parametrize("shell", [False, True], ids=["alone", "by a shell"])
def test_a_worker_drains_whether_started_alone_or_by_a_shell_that_becomes_it(
    server: Server, wire: Wire, queue: str, tmp_path: Path, shell: bool
) -> None:
    with Crew(tmp_path, server, queue, shell=shell) as crew:
        (id,) = given(wire, queue, "nap", 1)
        crew.stop()
        crew.says("draining")
        assert crew.process.wait(20) == 0
        assert states(wire, [id]) == {"completed"}


def test_draining_ends_within_its_time(
    server: Server, wire: Wire, queue: str, tmp_path: Path
) -> None:
    with Crew(tmp_path, server, queue, "--drain-timeout", "1s") as crew:
        (id,) = given(wire, queue, "nap", 60)
        began = time.monotonic()
        crew.stop()
        assert crew.process.wait(20) == 6
        assert 0.9 < time.monotonic() - began < 6
        assert states(wire, [id]) == {"waiting"}


def test_a_worker_that_has_stopped_is_listed_no_more(
    server: Server, wire: Wire, queue: str, tmp_path: Path
) -> None:
    for end in (Crew.stop, Crew.kill):
        with Crew(tmp_path, server, queue) as crew:
            eventually(lambda: workers(wire) == ["active"], "the worker")
            end(crew)
            eventually(lambda: workers(wire) == [], "the end of it in the list")


def test_a_worker_that_has_frozen_is_listed_as_stale(
    new_server: Callable[..., Server], tmp_path: Path
) -> None:
    environment = {"TANDEMQ_WORKER_TIMEOUT_MS": "300"}
    with (
        new_server(environment=environment) as server,
        server.connect() as wire,
        Crew(tmp_path, server, "q") as crew,
    ):
        eventually(lambda: workers(wire), "the worker")
        os.kill(crew.process.pid, signal.SIGSTOP)
        eventually(lambda: workers(wire) in (["stale"], []), "that it is silent", every=0.01)


def test_a_server_is_ready_from_its_first_answer_until_it_stops(
    new_server: Callable[..., Server],
) -> None:
    """Traffic goes elsewhere before the server refuses it, and nothing restarts it meanwhile."""
    server = new_server().start()
    web = Web(server.http_port)
    assert web.get("/ready")[0] == 200
    with server.connect() as wire:
        wire.push("q", 1)
        job = wire.pull("q")
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: web.get("/ready")[0] == 503, "that it is not ready any more")
        assert web.get("/live") == (200, "OK")
        assert wire.ask("ACK", id=job["job"]["id"], token=job["token"])["ok"]
    assert server.process.wait(20) == 0
    web.close()
