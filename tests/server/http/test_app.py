"""The HTTP server as a whole: it is there, answers, and ends with the server."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from tests.support.server import Server, is_own
from tests.support.web import Web

from tandemq.broker import BrokerBuilder

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


def test_http_is_encrypted_where_the_server_has_a_certificate(
    new_server: Callable[..., Server], tmp_path: Path
) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    issued.private_key_pem.write_to_path(key)
    for part in issued.cert_chain_pems:
        part.write_to_path(chain, append=True)
    environment = {"TANDEMQ_TLS_CERT": str(chain), "TANDEMQ_TLS_KEY": str(key)}
    server = new_server(environment=environment).start(wait=False)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    for _ in range(200):
        with contextlib.suppress(ConnectionRefusedError):
            connection = http.client.HTTPSConnection(
                "localhost", server.http_port, timeout=20, context=trusting
            )
            connection.request("POST", "/queues/tls/jobs", b'{"data":1}')
            break
        time.sleep(0.05)
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["ok"]) == (200, True)
    connection.close()


def test_http_can_be_off(new_server: Callable[..., Server]) -> None:
    server = new_server(environment={"TANDEMQ_HTTP": "false"}).start()
    with pytest.raises(ConnectionRefusedError):
        Web(server.http_port).get("/ping")


async def test_a_server_inside_a_program_serves_http_if_asked() -> None:
    async with BrokerBuilder.create().use_port(0).use_memory().use_http(0).build() as server:
        assert server.http_port is not None
        web = Web(server.http_port)
        assert await asyncio.to_thread(web.get, "/healthz") == (200, "OK")
        _, told = await asyncio.to_thread(web.post, "/queues/q/jobs", {"data": 1})
        assert told["ok"]
        web.close()
    assert server.http_port is None
    async with BrokerBuilder.create().use_port(0).use_memory().build() as quiet:
        assert quiet.http_port is None


def test_ten_pushes_of_one_id_are_one_job(web: Web) -> None:
    for _ in range(10):
        assert web.post("/queues/app-one/jobs", {"jobId": "app-one"})[1]["id"] == "app-one"
    _, told = web.post("/queues/app-one/jobs/bulk", {"jobs": [{"customId": "app-one"}] * 10})
    assert told["ids"] == ["app-one"] * 10
    assert web.get("/queues/app-one/count")[1]["count"] == 1


def test_no_priority_is_priority_zero(web: Web) -> None:
    pushed = [
        web.post("/queues/app-prior/jobs", {"priority": p, "jobId": f"prior-{p}"})[1]["id"]
        for p in (-1, 0, 2)
    ]
    pushed.insert(2, web.post("/queues/app-prior/jobs", {"jobId": "prior-none"})[1]["id"])
    pulled = [web.get("/queues/app-prior/jobs")[1]["job"]["id"] for _ in pushed]
    assert pulled == ["prior-2", "prior-0", "prior-none", "prior--1"]
