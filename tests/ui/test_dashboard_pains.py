"""What made dashboards of other queues a pain (study of reports P32, P33, P55 to P57)."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from tests.support.server import Server, figure, is_own
from tests.support.web import Web
from tests.support.wire import Wire
from tests.ui.site import READY, WHY_NOT, asked, browse

pytestmark = [
    pytest.mark.skipif(not READY, reason=WHY_NOT),
    pytest.mark.skipif(not is_own(), reason="the page of this server is tested"),
]

WORKERS = 5_000


@pytest.fixture
def web(server: Server) -> Iterator[Web]:
    web = Web(server.http_port)
    yield web
    web.close()


def fill(wire: Wire, queue: str, count: int, **job: object) -> None:
    """Add so many jobs."""
    for done in range(0, count, 1_000):
        jobs = [{"name": "j", "data": 1, **job}] * min(1_000, count - done)
        wire.do("PUSHB", queue=queue, jobs=jobs)


def test_the_page_works_behind_a_path_prefix(server: Server, web: Web) -> None:
    """P55."""
    asked(web, "POST", "/queues/mail/jobs", {"name": "x", "data": 1})
    browse("prefix", server.http_port)


def test_thousands_of_workers_queues_and_jobs_come_in_pages(server: Server) -> None:
    """P56, with a thousand queues besides; ten thousand with TANDEMQ_SOAK=1."""
    queues = figure("TANDEMQ_TEST_QUEUES", short=1_000, long=10_000)
    with Wire(server.port) as wire:
        workers = [
            {"cmd": "RegisterWorker", "name": f"w{n}", "queues": ["crowd"], "workerId": f"w{n}"}
            for n in range(WORKERS)
        ]
        wire.do_all(workers)
        fill(wire, "crowd", WORKERS)
        for _ in range(5):
            wire.do("PULLB", queue="crowd", count=1_000, owner="w", lockTtl=600_000)
        names = (f"many-{n:05}" for n in range(queues))
        wire.do_all([{"cmd": "PUSH", "queue": name, "data": 1} for name in names])
        browse("crowd", server.http_port, workers=WORKERS, queues=queues)
        wire.do("Obliterate", queue="crowd")


def test_large_data_is_loaded_only_when_it_is_asked_for(server: Server, web: Web) -> None:
    """P57, with 20 dead letters of 2 MB; 200 with TANDEMQ_SOAK=1. And results of 1 MB, P33."""
    count = figure("TANDEMQ_TEST_LARGE", short=20, long=200)
    with Wire(server.port) as wire:
        for n in range(count):
            id = wire.do("PUSH", queue="large", data={"n": n, "text": "x" * 2_000_000})["id"]
            token = wire.do("PULL", queue="large", owner="w")["token"]
            wire.do("FAIL", id=id, token=token, error="too large", unrecoverable=True)
        for _ in range(5):
            wire.do("PUSH", queue="results", data=1)
            got = wire.do("PULL", queue="results", owner="w")
            wire.do("ACK", id=got["job"]["id"], token=got["token"], result="y" * 1_000_000)
        done = got["job"]["id"]
        browse("large", server.http_port, dead=id, done=done, count=count)


def test_a_page_that_stays_open_keeps_only_what_it_shows(server: Server) -> None:
    """P32, with 20,000 jobs; 300,000 with TANDEMQ_SOAK=1."""
    count = figure("TANDEMQ_TEST_PASSING", short=20_000, long=300_000)

    def pass_jobs() -> None:
        with Wire(server.port) as wire:
            for _ in range(count // 1_000):
                fill(wire, "passing", 1_000, removeOnComplete=True)
                got = wire.do("PULLB", queue="passing", count=1_000, owner="w")
                ids = [job["id"] for job in got["jobs"]]
                wire.do("ACKB", ids=ids, tokens=got["tokens"])

    passing = threading.Thread(target=pass_jobs)
    passing.start()
    try:
        browse("passing", server.http_port)
    finally:
        passing.join()
