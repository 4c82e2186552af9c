"""Reports of pages about queues that did not load."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.support.server import Server, is_own
from tests.support.web import Web

pytestmark = pytest.mark.skipif(not is_own(), reason="about the pages of this server")

WORKERS = 5_000
KEPT = 1_000  # completed jobs, the fewest that a server can be told to keep
FAILED, LARGE = 200, 256 << 10  # jobs, and bytes of the data of each


def test_an_overview_of_five_thousand_workers_and_jobs_is_short_and_quick(
    new_server: Callable[..., Server],
) -> None:
    with new_server() as server, server.connect() as wire:
        wire.do_all(
            {"cmd": "RegisterWorker", "name": f"w{n}", "queues": ["q"]} for n in range(WORKERS)
        )
        for _ in range(WORKERS // 1_000):
            wire.do("PUSHB", queue="q", jobs=[{"data": 1}] * 1_000)
            assert len(wire.do("PULLB", queue="q", count=1_000, owner="w")["jobs"]) == 1_000
        web = Web(server.http_port)
        began = time.monotonic()
        status, told = web.get("/dashboard")
        took = time.monotonic() - began
        assert status == 200
        assert took < 5  # a second on a machine with nothing else to do
        assert (told["workers"]["total"], told["stats"]["active"]) == (WORKERS, WORKERS)
        assert (len(told["workers"]["list"]), told["workers"]["truncated"]) == (100, True)
        active = web.get("/queues/q/jobs/list?state=active&limit=100")[1]["jobs"]
        assert len(active) == 100
        web.close()


def test_a_list_at_the_cap_is_the_same_after_a_restart(new_server: Callable[..., Server]) -> None:
    environment = {"TANDEMQ_MAX_COMPLETED": "500"}
    server = new_server(environment=environment).start()
    with server.connect() as wire:
        ids = wire.do("PUSHB", queue="q", jobs=[{"data": n} for n in range(KEPT)])["ids"]
        ids += wire.do("PUSHB", queue="q", jobs=[{"data": n} for n in range(KEPT // 2)])["ids"]
        for _ in range(2):
            held = wire.do("PULLB", queue="q", count=1_000, owner="w")
            done = [job["id"] for job in held["jobs"]]
            wire.do("ACKB", ids=done, tokens=held["tokens"])
    before = listed(server)
    assert before == ids[-KEPT:]
    assert server.stop() == 0
    server.start()
    assert listed(server) == before


def listed(server: Server) -> list[str]:
    """The completed jobs, oldest first, as a page lists them."""
    web = Web(server.http_port)
    found: list[str] = []
    while page := web.get(f"/queues/q/jobs/list?state=completed&limit=300&offset={len(found)}")[1][
        "jobs"
    ]:
        found += [job["id"] for job in page]
    web.close()
    return found


def test_a_list_of_large_failed_jobs_does_not_carry_their_data(
    new_server: Callable[..., Server],
) -> None:
    with new_server() as server, server.connect() as wire:
        large = {"text": "x" * LARGE}
        for _ in range(FAILED // 50):
            wire.do("PUSHB", queue="q", jobs=[{"data": large}] * 50)
        while held := wire.do("PULLB", queue="q", count=50)["jobs"]:
            for job in held:
                wire.do("FAIL", id=job["id"], error="no", unrecoverable=True)
        web = Web(server.http_port)
        status, told = web.get(f"/jobs/search?queue=q&state=failed&limit={FAILED}")
        assert (status, len(told["jobs"])) == (200, FAILED)
        assert int(web.headers["content-length"]) < 200_000
        first = told["jobs"][0]
        assert first["dataBytes"] > LARGE
        assert web.get(f"/jobs/{first['id']}")[1]["job"]["data"] == large
        web.close()
