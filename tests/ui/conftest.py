"""One furnished server for the tests of the pages, and its connection over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.server import Server
from tests.support.web import Web
from tests.ui.site import furnish


@pytest.fixture
def web(server: Server) -> Iterator[Web]:
    web = Web(server.http_port)
    yield web
    web.close()


@pytest.fixture(scope="module")
def things(server: Server) -> Iterator[dict[str, Any]]:
    """What is on the pages."""
    web = Web(server.http_port)
    yield furnish(web)
    web.close()
