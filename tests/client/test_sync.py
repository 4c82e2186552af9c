"""The sync twin: the same methods with the same signatures, for any number of threads."""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.server import Server
from tests.support.wire import Wire

from tandemq import Client
from tandemq.client import (
    client,
    dead_letters,
    events,
    flow,
    groups,
    job,
    limits,
    queue,
    schedules,
    sync,
    webhooks,
)
from tandemq.client.blocking import Blocking
from tandemq.client.errors import Closed, Misused, NotFound, NotSent
from tandemq.client.flow import Step

TWINS = [
    (client.AsyncClient, sync.Client),
    (dead_letters.DeadLetters, sync.DeadLetters),
    (events.Events, sync.Events),
    (flow.Flows, sync.Flows),
    (groups.Group, sync.Group),
    (job.Job, sync.Job),
    (limits.Limits, sync.Limits),
    (queue.Queue, sync.Queue),
    (schedules.Schedules, sync.Schedules),
    (webhooks.Webhooks, sync.Webhooks),
]
OWN = ("next", "free", "changed")  # what events have for the loop that runs them
SAMPLE = Path(__file__).parent / "typed_sample.py"


@pytest.fixture
def tq(server: Server) -> Iterator[Client]:
    with Client(f"tandemq://127.0.0.1:{server.port}") as running:
        yield running


@pytest.mark.parametrize(("theirs", "twin"), TWINS, ids=lambda kind: kind.__name__)
def test_a_twin_has_every_method_of_its_original(theirs: type, twin: type) -> None:
    for name, method in vars(theirs).items():
        if name.startswith("_") or not callable(method) or name in OWN:
            continue
        own = vars(twin).get(name)
        assert own is not None, f"{twin.__name__} has no {name}"
        if isinstance(own, Blocking):
            assert own.__wrapped__ is method
        else:
            named = list(inspect.signature(method).parameters)
            assert list(inspect.signature(own).parameters) == named, name
        assert own.__doc__


def test_a_job_goes_all_the_way(tq: Client, queue: str) -> None:
    q = tq.queue(queue)
    added = q.add("mail", {"to": "a@example.org"}, priority=3)
    assert isinstance(added, sync.Job)
    assert (added.name, added.data, added.queue) == ("mail", {"to": "a@example.org"}, queue)
    assert q.add_many([("mail", n) for n in range(3)])
    assert [each.id for each in q.jobs("prioritized")] == [added.id]
    answer = tq.call("PULL", queue=queue, owner="me")
    held = q.job(answer["job"]["id"])
    assert held == added
    held.complete({"sent": True}, answer["token"])
    assert added.result(timeout=10) == {"sent": True}
    assert added.refresh().priority == 3
    assert q.get("nobody") is None
    with pytest.raises(NotFound):
        q.job("nobody").cancel()


def test_parts_have_twins_too(tq: Client, queue: str) -> None:
    q = tq.queue(queue)
    q.limits.set_concurrency(3)
    assert q.limits.get()["concurrencyLimit"] == 3
    q.add("a", group="g")
    assert q.group("g").count() == 1
    q.schedules.every(f"{queue}-s", 60)
    assert q.schedules.remove(f"{queue}-s")
    assert q.dead_letters.jobs() == []
    last = tq.flows.chain(Step(queue, "one"), Step(queue, "two"))
    assert [child.name for child in last.children] == ["one"]
    assert tq.webhooks.list() == []
    q.job(last.children[0].id).leave_parent()
    assert last.state() in ("waiting", "prioritized")


def test_events_are_a_plain_loop(tq: Client, queue: str) -> None:
    q = tq.queue(queue)
    with q.events() as happening:
        ids = q.add_many([("a", n) for n in range(3)])
        seen = []
        for event in happening:
            seen.append(event.job_id)
            if len(seen) == 3:
                break
    assert seen == ids
    assert list(happening) == [], "closed events have an end"


def test_many_threads_share_one_client(tq: Client, queue: str) -> None:
    q = tq.queue(queue)
    with ThreadPoolExecutor(16) as threads:
        ids = list(threads.map(lambda n: q.add("a", n).id, range(400)))
    assert len(set(ids)) == 400
    assert q.count() == 400


def test_a_closed_client_says_so(server: Server) -> None:
    tq = Client(f"tandemq://127.0.0.1:{server.port}")
    q = tq.queue("q")
    tq.ping()
    tq.close()
    tq.close()
    for use in (tq.ping, q.count, q.events):
        with pytest.raises(Closed, match="make a new one"):
            use()


def test_a_client_that_was_never_used_closes_too() -> None:
    Client("tandemq://127.0.0.1:1").close()


async def test_in_an_event_loop_it_says_what_to_use_instead(server: Server) -> None:
    tq = Client(f"tandemq://127.0.0.1:{server.port}")
    with pytest.raises(Misused, match="use AsyncClient"):
        tq.ping()
    await asyncio.to_thread(tq.close)


def test_what_goes_wrong_is_told_to_the_caller() -> None:
    with (
        Client("tandemq://127.0.0.1:1", command_timeout=0.1) as tq,
        pytest.raises(NotSent, match="cannot connect"),
    ):
        tq.ping()


def test_forked_children_connect_by_themselves(server: Server, queue: str, wire: Wire) -> None:
    """P93: a parent and four children send with one client; no frame gets mixed up."""
    program = f"""
import os, sys, threading, warnings
from tandemq import Client
warnings.simplefilter("ignore")
tq = Client("tandemq://127.0.0.1:{server.port}")
q = tq.queue("{queue}")
q.add("parent", -1)
children = []
for child in range(4):
    pid = os.fork()
    if not pid:
        ids = {{q.add("child", child * 100 + n).id for n in range(100)}}
        os._exit(0 if len(ids) == 100 else 1)
    children.append(pid)
ids = {{q.add("parent", n).id for n in range(100)}}
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
tq.close()
sys.exit(any(codes) or len(ids) != 100)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert wire.counts(queue) == {"waiting": 501}
    children = sorted(job["data"] for job in wire.jobs(queue) if job["name"] == "child")
    assert children == list(range(400))


@pytest.mark.slow
def test_mypy_knows_the_signatures() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", str(SAMPLE)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


@pytest.mark.slow
def test_pyright_knows_the_signatures(tmp_path: Path) -> None:
    settings = tmp_path / "pyrightconfig.json"
    asked = {
        "include": [SAMPLE.name],
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": True,
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    settings.write_text(json.dumps(asked))
    shutil.copy(SAMPLE, tmp_path)
    ran = subprocess.run(
        [sys.executable, "-m", "pyright", "-p", str(settings), "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    if " errors" not in ran.stdout:
        pytest.skip(f"pyright does not run here: {ran.stderr[-200:]}")
    assert "No source files" not in ran.stdout
    assert ran.returncode == 0, ran.stdout
