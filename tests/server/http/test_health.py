"""Probes (ruling 19) and section 17 of the broker's scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.server.http.room import room
from tests.server.offline import GatedStore, Peer
from tests.support.server import Server, is_own
from tests.support.web import Web

from tandemq.commands.access import COMPATIBLE_WITH

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")
MANY = 1_000_000  # bytes of memory for messages: enough for nobody to be near it by chance
PROBES = ("/health", "/health/", "/healthz", "/live", "/ready")
BROKER = {
    "isHealthy", "status", "activeConnections", "queueCount", "inFlightMessages",
    "totalMessagesPublished", "totalMessagesDelivered", "memoryUsageMb", "timestamp",
}  # fmt: skip


@pytest.fixture
def web(server: Server) -> Iterator[Web]:
    web = Web(server.http_port)
    yield web
    web.close()


def test_health_has_the_shape_of_the_job_queue(web: Web) -> None:
    status, told = web.get("/health")
    assert (status, told["ok"], told["status"]) == (200, True, "healthy")
    assert told["version"] == COMPATIBLE_WITH
    assert told.keys() == {
        "ok", "status", "uptime", "version", "queues", "connections", "memory",
    }  # fmt: skip
    assert told["queues"].keys() == {"waiting", "active", "delayed", "completed", "dlq"}
    assert told["connections"].keys() == {"tcp", "ws", "sse"}
    assert told["memory"].keys() == {"heapUsed", "heapTotal", "rss"}
    assert 0 < told["memory"]["rss"] < 10_000  # MiB


def test_health_with_a_slash_has_the_shape_of_the_broker(web: Web) -> None:
    status, told = web.get("/health/")
    assert (status, told["isHealthy"], told["status"]) == (200, True, "healthy")
    assert told.keys() == BROKER


def test_names_can_be_had_with_underscores(web: Web) -> None:
    """S-234."""
    told = web.get("/health/?naming=snake")[1]
    assert {"is_healthy", "active_connections", "memory_usage_mb"} <= told.keys()
    assert not {"isHealthy", "activeConnections"} & told.keys()
    told = web.get("/metrics/?naming=snake")[1]
    assert {"total_messages_published", "average_delivery_latency_ms", "uptime"} <= told.keys()
    hours, minutes, seconds = told["uptime"].split(":")
    assert (int(hours), int(minutes)) == (0, 0)
    assert 0 <= float(seconds) < 60


def test_an_unknown_path_is_not_found(web: Web) -> None:
    """S-233."""
    for path in ("/healthy", "/health/x", "/metrics/x", "/live/", "/ready/", "/"):
        assert web.get(path) == (404, {"ok": False, "error": "Not found"}), path


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_probes_take_any_method(web: Web, method: str) -> None:
    for path in PROBES:
        assert web.ask(method, path)[0] == 200, path
    assert web.get("/healthz") == web.get("/live") == (200, "OK")
    assert web.get("/ready") == (200, {"ok": True, "ready": True})


def test_probes_want_no_token_and_count_for_no_limit(new_server: Callable[..., Server]) -> None:
    environment = {"TANDEMQ_TOKEN": "alpha", "TANDEMQ_REQUESTS_PER_MINUTE": "3"}
    with new_server(environment=environment) as server:
        web = Web(server.http_port)
        for _ in range(5):
            assert {web.get(path)[0] for path in PROBES} == {200}
        assert web.get("/stats")[0] == 401
        assert web.get("/prometheus")[0] == 200
        web.close()


def test_nothing_listens_where_http_is_off(new_server: Callable[..., Server]) -> None:
    """S-233."""
    with (
        new_server(environment={"TANDEMQ_HTTP": "false"}) as server,
        pytest.raises(ConnectionRefusedError),
    ):
        Web(server.http_port).get("/health/")


async def test_memory_makes_a_broker_unhealthy_and_stops_no_probe() -> None:
    """S-231."""
    async with room(max_memory=MANY) as at:
        engine = at.runtime.engine
        engine.pressure.grow(engine, int(MANY * 0.91))
        status, told = await at.get("/health/")
        assert (status, told["isHealthy"], told["status"]) == (503, False, "unhealthy")
        assert told.keys() == BROKER | {"reasons"}
        assert "91%" in told["reasons"][0]
        for path in ("/health", "/healthz", "/live", "/ready"):
            assert (await at.get(path))[0] == 200, path
        engine.pressure.grow(engine, -int(MANY * 0.91))
        assert (await at.get("/health/"))[0] == 200


async def test_a_store_that_cannot_be_written_is_told_and_liveness_stays() -> None:
    """S-231."""
    store = GatedStore()
    async with room(store) as at:
        store.fail("no space left")
        assert not (await Peer(at.runtime).ask("PUSH", queue="q", data=1))["ok"]
        for path in ("/health", "/health/", "/ready"):
            status, told = await at.get(path)
            assert (status, "no space left" in str(told)) == (503, True), path
        status, told = await at.get("/ready")
        assert (told["ok"], told["ready"], told["storage"]["diskFull"]) == (False, False, True)
        assert (await at.get("/live"))[0] == (await at.get("/healthz"))[0] == 200
        assert (await at.get("/prometheus"))[1].count("\nbunqueue_storage_degraded 1\n") == 1
        store.recover()
        await Peer(at.runtime).push()
        assert (await at.get("/ready"))[0] == 200


async def test_a_server_that_stops_is_alive_and_not_ready() -> None:
    async with room() as at:
        at.runtime.wind_down()
        assert {p: (await at.get(p))[0] for p in PROBES} == {
            "/health": 503, "/health/": 503, "/ready": 503, "/healthz": 200, "/live": 200,
        }  # fmt: skip
        assert (await at.get("/ready"))[1]["reasons"] == ["the server is about to stop"]


def test_readiness_ends_before_the_server_does(new_server: Callable[..., Server]) -> None:
    server = new_server().start()
    with server.connect() as worker:
        worker.ask("PUSH", queue="q", data=1)
        job = worker.ask("PULL", queue="q", owner="w")
        web = Web(server.http_port)
        assert web.get("/ready")[0] == 200
        server.process.terminate()
        while (answer := web.get("/ready"))[0] == 200:
            pass
        assert answer[0] == 503
        assert web.get("/live")[0] == 200
        assert worker.ask("ACK", id=job["job"]["id"], token=job["token"])["ok"]
        assert server.process.wait(20) == 0
        web.close()
