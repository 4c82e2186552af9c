"""Signing in, what a user without rights to change anything sees, and what nobody is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.support.server import Server, is_own
from tests.support.web import Web
from tests.ui.site import READY, WHY_NOT, asked, browse, furnish

pytestmark = [
    pytest.mark.skipif(not READY, reason=WHY_NOT),
    pytest.mark.skipif(not is_own(), reason="the page of this server is tested"),
]

TOKEN = "open-sesame-0123456789"
LOOK = ["GetQueueInfo", "ListQueues"]


@pytest.fixture
def closed(new_server: Callable[..., Server]) -> Iterator[tuple[Server, Web]]:
    """A server that wants to know who asks, with a user who may only look."""
    server = new_server(environment={"TANDEMQ_TOKEN": TOKEN, "TANDEMQ_LOGIN_LIMIT": "0"})
    server.start()
    web = Web(server.http_port, TOKEN)
    yield server, web
    web.close()


def test_signing_in_and_only_looking(closed: tuple[Server, Web]) -> None:
    server, web = closed
    things = furnish(web)
    asked(web, "POST", "/users", {"name": "root", "password": "correct horse", "superuser": True})
    asked(web, "POST", "/users", {"name": "ann", "password": "battery staple"})
    asked(web, "POST", "/users/ann/permissions", {"pattern": "*", "operations": LOOK})
    secret = asked(web, "POST", "/users/ann/tokens", {})["data"]["token"]
    browse("login", server.http_port, token=TOKEN, reader=secret, dead=things["dead"][0])
