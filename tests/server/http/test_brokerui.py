"""The API of the broker's web page."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.server.http.room import Room, room
from tests.server.letters import Correspondent
from tests.server.offline import Peer

from tandemq import __version__
from tandemq.server.health import figures
from tandemq.server.meter import now_ms


@pytest.fixture
async def at() -> AsyncIterator[Room]:
    async with room() as at:
        yield at


async def published(at: Room, *ids: str, payload: object = 1, **headers: str) -> None:
    """Publish letters to the queue q."""
    publisher = await Correspondent(at.runtime).connect()
    for id in ids:
        await publisher.do("publish", id=id, queue="q", payload=payload, headers=headers)


async def test_versions_are_those_of_this_server(at: Room) -> None:
    told = {"server_version": __version__, "webui_version": __version__}
    assert await at.get("/api/version") == (200, told)


async def test_health_is_ok_as_long_as_it_answers(at: Room) -> None:
    status, told = await at.get("/api/health")
    assert (status, told["status"], told["is_healthy"]) == (200, "ok", True)
    at.runtime.wind_down()
    status, told = await at.get("/api/health")
    assert (status, told["status"], told["is_healthy"]) == (200, "ok", False)


async def test_metrics_have_all_figures(at: Room) -> None:
    await published(at, "a")
    status, told = await at.get("/api/metrics")
    assert (status, told["total_messages_published"]) == (200, 1)
    assert told.keys() == set(figures(at.runtime, now_ms()).__struct_fields__)


async def test_queues_are_named_whatever_the_method(at: Room) -> None:
    await published(at, "a")
    await Peer(at.runtime).push("jobs")
    for method in ("GET", "POST", "PUT"):
        assert await at.ask(method, "/api/queues") == (200, ["jobs", "q"])


async def test_a_queue_is_shown_with_numbers_for_names(at: Room) -> None:
    await published(at, "a", "b")
    status, told = await at.get("/api/queues/q")
    assert status == 200
    assert told.pop("created_at").endswith("Z")
    assert told == {
        "name": "q",
        "message_count": 2,
        "subscriber_count": 0,
        "delivery_mode": 0,
        "max_size": 10_000,
        "enable_dead_letter_queue": False,
        "overflow_strategy": 0,
        "max_retry_attempts": 3,
    }
    assert (await at.get("/api/queues/other"))[0] == 404


async def test_names_are_percent_decoded(at: Room) -> None:
    await Peer(at.runtime).do("Pause", queue="a/b c")
    await Peer(at.runtime).push("x:y")
    assert (await at.get("/api/queues/x%3Ay"))[1]["name"] == "x:y"
    assert (await at.get("/api/queues/a%2Fb%20c"))[0] == 404  # it holds nothing
    assert (await at.get("/api/queues/%ff"))[0] == 400


async def test_a_queue_can_be_deleted_also_when_it_is_not_there(at: Room) -> None:
    await published(at, "a")
    for _ in range(2):
        assert await at.ask("DELETE", "/api/queues/q") == (204, "")
    assert (await at.get("/api/queues/q"))[0] == 404


async def test_messages_that_wait_are_listed_page_by_page(at: Room) -> None:
    await published(at, *(f"m{n:03}" for n in range(120)), payload={"n": [1]})
    path = "/api/queues/q/messages"

    async def ids(query: str) -> list[str]:
        status, found = await at.get(path + query)
        assert status == 200
        return [m["id"] for m in found]

    assert len(await ids("")) == 50
    assert await ids("?limit=2&offset=3") == ["m003", "m004"]
    assert len(await ids("?limit=1000")) == 100
    assert len(await ids("?limit=0")) == 1
    assert await ids("?limit=x&offset=-1") == await ids("")
    assert await ids("?offset=5&x=" + "y" * 2_048) == await ids("")
    assert await at.get("/api/queues/none/messages") == (200, [])


async def test_a_message_is_shown_with_everything(at: Room) -> None:
    await published(at, "a", payload={"n": 1}, priority="high", x="y")
    status, told = await at.get("/api/queues/q/messages/a")
    assert status == 200
    assert told.pop("timestamp").endswith("Z")
    assert told == {
        "id": "a",
        "queue_name": "q",
        "payload": {"n": 1},
        "headers": {"priority": "high", "x": "y"},
        "version": 1,
        "priority": 2,
        "delivery_attempts": 0,
    }
    assert (await at.get("/api/queues/q/messages/b"))[0] == 404
    assert (await at.get("/api/queues/none/messages/a"))[0] == 404


async def test_a_message_without_payload_is_listed(at: Room) -> None:
    """S-236."""
    await published(at, "a", payload=None)
    status, (told,) = await at.get("/api/queues/q/messages")
    assert (status, told["payload"]) == (200, None)


async def test_jobs_are_listed_too_whatever_their_data(at: Room) -> None:
    peer = Peer(at.runtime)
    id = (await peer.do("PUSH", queue="q", data=b"\xff\x00", priority=1, delay=60_000))["id"]
    status, (told,) = await at.get("/api/queues/q/messages")
    assert (status, told["id"], told["priority"], told["headers"]) == (200, id, 2, {})
    assert isinstance(told["payload"], str)


async def test_a_message_can_be_removed_once(at: Room) -> None:
    await published(at, "a", "b")
    assert (await at.ask("DELETE", "/api/queues/q/messages/a"))[0] == 204
    assert (await at.ask("DELETE", "/api/queues/q/messages/a"))[0] == 404
    assert [m["id"] for m in (await at.get("/api/queues/q/messages"))[1]] == ["b"]


async def test_a_purge_leaves_what_somebody_holds(at: Room) -> None:
    peer = Peer(at.runtime)
    held = await peer.push()
    await peer.pull()
    await peer.push()
    assert (await at.ask("DELETE", "/api/queues/q/messages"))[0] == 204
    assert (await at.get("/api/queues/q/messages"))[1] == []
    assert await peer.state(held) == "active"
    assert (await at.ask("DELETE", "/api/queues/none/messages"))[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/api/queues/q", 405),
        ("PUT", "/api/queues/q/messages", 405),
        ("POST", "/api/queues/q/messages/a", 405),
        ("POST", "/api/version", 405),
        ("DELETE", "/api/health", 405),
        ("HEAD", "/api/version", 200),
        ("GET", "/api/none", 404),
        ("GET", "/api", 404),
        ("GET", "/api/queues/", 404),
    ],
)
async def test_a_wrong_method_is_told_apart_from_a_wrong_path(
    at: Room, method: str, path: str, status: int
) -> None:
    assert (await at.ask(method, path))[0] == status


async def test_it_wants_who_the_other_faces_want() -> None:
    async with room(tokens=("alpha",)) as at:
        for path in ("version", "health", "metrics", "queues", "queues/q", "queues/q/messages"):
            assert (await at.get(f"/api/{path}"))[0] == 401, path
        assert (await at.get("/api/queues", token="alpha"))[0] == 200
