"""Everything that the client promises, against our own server."""

from __future__ import annotations

import pytest
from tests.client.promises import PROMISES, Promise
from tests.support.server import Server

from tandemq import AsyncClient


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
async def test_a_promise_is_kept(server: Server, queue: str, promise: Promise) -> None:
    async with AsyncClient(f"tandemq://127.0.0.1:{server.port}") as client:
        await promise(client, queue)
