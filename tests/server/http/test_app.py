"""The HTTP server as a whole: it is there, answers, and ends with the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.support.server import Server, is_own
from tests.support.web import Web

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")


@pytest.fixture
def web(server: Server) -> Iterator[Web]:
    web = Web(server.http_port)
    yield web
    web.close()


def test_a_job_goes_round(web: Web) -> None:
    status, pushed = web.post(
        "/queues/app-round/jobs", {"name": "x", "data": {"at": 1700000000000}}
    )
    assert (status, pushed["ok"]) == (200, True)
    status, pulled = web.get("/queues/app-round/jobs")
    assert (status, pulled["job"]["id"]) == (200, pushed["id"])
    assert pulled["job"]["data"] == {"at": 1700000000000}
    assert web.post(f"/jobs/{pushed['id']}/ack", {"result": [1]}) == (200, {"ok": True})


def test_what_is_nowhere_is_not_found(web: Web) -> None:
    for method, path in (("GET", "/nowhere"), ("PATCH", "/ping"), ("GET", "/ping/")):
        assert web.ask(method, path) == (404, {"ok": False, "error": "Not found"})


def test_a_request_on_the_wires_port_is_told_where_http_is(server: Server) -> None:
    web = Web(server.port)
    status, text = web.get("/health")
    web.close()
    assert status == 400
    assert str(server.http_port) in text


def test_a_stopping_server_ends_waiting_requests(new_server: Callable[..., Server]) -> None:
    server = new_server().start()
    web = Web(server.http_port)
    web.send("GET", "/queues/empty/jobs?timeout=60000")
    other = Web(server.http_port)
    assert other.get("/ping")[0] == 200  # so what was sent before has been read
    server.stop()
    status, told = web.answer()
    assert (status, told["error"]) == (503, "Server is shutting down; try again later")
    web.close()
    other.close()
