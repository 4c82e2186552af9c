"""GET /jobs/search and what the web page asks besides, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.server import Server, is_own
from tests.support.web import Web

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")


@pytest.fixture
def web(server: Server) -> Iterator[Web]:
    web = Web(server.http_port)
    yield web
    web.close()


def push(web: Web, queue: str, *datas: Any) -> list[str]:
    status, told = web.post(f"/queues/{queue}/jobs/bulk", {"jobs": [{"data": d} for d in datas]})
    assert status == 200, told
    return list(told["ids"])


def found(web: Web, query: str) -> list[str]:
    status, told = web.get(f"/jobs/search?{query}")
    assert status == 200, told
    return [job["id"] for job in told["jobs"]]


def test_what_is_looked_for_stands_in_the_query(web: Web) -> None:
    first, second = push(web, "words", {"code": "007"}, {"order": 4711})
    assert found(web, "queue=words") == [second, first]
    assert found(web, "queue=words&text=007") == [first]
    assert found(web, "queue=words&text=4711") == [second]
    assert found(web, "queue=words&state=delayed,active") == []
    assert found(web, "queue=words&state=waiting&state=active") == [second, first]
    assert found(web, f"id={first[:-2]}&queue=words&text=") in ([first], [second, first])


def test_pages_are_linked_by_cursors(web: Web) -> None:
    ids = push(web, "pages", *range(5))[::-1]
    got: list[str] = []
    cursor = ""
    while True:
        _, told = web.get(f"/jobs/search?queue=pages&limit=2&cursor={cursor}")
        got += [job["id"] for job in told["jobs"]]
        cursor = told["cursor"]
        if cursor is None:
            break
    assert got == ids


def test_a_search_that_takes_long_is_answered_all_the_same(web: Web) -> None:
    [oldest] = push(web, "hay", "needle")
    for _ in range(5):
        push(web, "hay", *["hay"] * 2_500)
    assert found(web, "queue=hay&text=needle") == [oldest]


@pytest.mark.parametrize("query", ["limit=many", "state=stuck", "cursor=x", "after=yesterday"])
def test_what_makes_no_sense_is_refused(web: Web, query: str) -> None:
    status, told = web.get(f"/jobs/search?{query}")
    assert (status, told["ok"]) == (400, False)
    assert query.partition("=")[0] in told["error"]


def test_an_open_server_tells_everybody_that_everything_is_allowed(web: Web) -> None:
    status, told = web.get("/whoami")
    assert (status, told["superuser"], told["open"]) == (200, True, True)


def test_queues_are_found_and_the_pulse_is_short(web: Web) -> None:
    push(web, "findable", 1)
    status, told = web.get("/queues/find?text=FINDABLE")
    assert (status, [q["name"] for q in told["queues"]]) == (200, ["findable"])
    status, told = web.get("/pulse")
    assert (status, told["counts"]["waiting"] >= 1) == (200, True)
    assert int(web.headers["content-length"]) < 1_000
    assert web.get("/subscribers?queue=findable")[1]["total"] == 0
