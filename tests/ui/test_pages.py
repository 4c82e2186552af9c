"""Each page in a browser: what it shows, what can be done there, how it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.server import Server, is_own
from tests.support.vibe import Vibe
from tests.support.web import Web
from tests.ui.site import READY, WHY_NOT, asked, browse, hire

from tandemq.wires.sniff import Wire

pytestmark = [
    pytest.mark.skipif(not READY, reason=WHY_NOT),
    pytest.mark.skipif(not is_own(), reason="the page of this server is tested"),
]


@pytest.fixture(scope="module")
def subscriber(server: Server) -> Iterator[Vibe]:
    with Vibe(server.port, Wire.JSON) as vibe:
        vibe.connect()
        vibe.subscribe("news")
        yield vibe


def state(web: Web, id: str) -> str:
    return str(asked(web, "GET", f"/jobs/{id}/state")["state"])


def test_the_overview(
    server: Server, things: dict[str, Any], remark: Callable[[str], None]
) -> None:
    remark(f"web page: {browse('overview', server.http_port).strip()}")


def test_queues(server: Server, things: dict[str, Any]) -> None:
    browse("queues", server.http_port)


def test_one_queue(server: Server, web: Web, things: dict[str, Any]) -> None:
    browse("queue", server.http_port)
    assert asked(web, "GET", "/queues/mail/paused")["paused"] is True
    asked(web, "POST", "/queues/mail/resume", {})


def test_jobs(server: Server, things: dict[str, Any]) -> None:
    browse("jobs", server.http_port, late=things["late"])


def test_one_job(server: Server, web: Web, things: dict[str, Any]) -> None:
    browse("job", server.http_port, dead=things["dead"][0], late=things["late"])
    assert state(web, things["late"]) == "waiting"


def test_dead_letters(server: Server, web: Web, things: dict[str, Any]) -> None:
    first, second = things["dead"][-2:]
    browse("dead", server.http_port, retried=first, edited=second)
    assert state(web, first) != "failed"
    assert state(web, second) == "failed"
    [copy] = asked(web, "GET", "/jobs/search?queue=mail&text=edited-in-the-browser")["jobs"]
    job = asked(web, "GET", f"/jobs/{copy['id']}")["job"]
    assert job["data"] == {"to": "edited-in-the-browser", "big": 12345678901}


def test_schedules(server: Server, web: Web, things: dict[str, Any]) -> None:
    browse("schedules", server.http_port)
    names = [cron["name"] for cron in asked(web, "GET", "/crons")["crons"]]
    assert names == ["nightly", "weekly"]


def test_workers(server: Server, web: Web) -> None:
    hire(web, 3)
    browse("workers", server.http_port)


def test_subscribers(server: Server, subscriber: Vibe) -> None:
    browse("subscribers", server.http_port)


def test_the_keyboard_alone_is_enough(server: Server, things: dict[str, Any]) -> None:
    browse("keyboard", server.http_port)
