"""The client as a whole: what importing it costs, and what it says when it is misused."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.support.peer import Peer, until
from tests.support.server import Server

import tandemq
from tandemq import AsyncClient
from tandemq.client.errors import BadOption, Closed, WrongUrl

NEVER = ("tandemq.server", "tandemq.stores", "tandemq.config", "starlette", "uvicorn", "sqlite3")
MEASURE = """
import json, sys, time
began = time.process_time()
import tandemq
imported = time.process_time() - began
tandemq.AsyncClient, tandemq.Client, tandemq.errors.TandemqError
print(json.dumps([imported, sorted(sys.modules)]))
"""


def test_importing_is_quick_and_brings_no_server() -> None:
    found = [
        json.loads(subprocess.run([sys.executable, "-c", MEASURE], stdout=-1, check=True).stdout)
        for _ in range(3)
    ]
    assert min(seconds for seconds, _ in found) < 0.1
    loaded = [name for name in found[0][1] if name.startswith(NEVER)]
    assert loaded == []


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        tandemq.Nonsense  # noqa: B018


def test_a_wrong_url_or_option_is_told_at_once() -> None:
    with pytest.raises(WrongUrl, match="Broker"):
        AsyncClient("vibemq://localhost")
    with pytest.raises(BadOption, match="did you mean pool_size"):
        AsyncClient("localhost", pool_sizes=3)


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_queue_needs_a_name(name: Any) -> None:
    with pytest.raises(BadOption, match="name of a queue"):
        AsyncClient("localhost").queue(name)


async def test_a_closed_client_says_so(server: Server) -> None:
    client = AsyncClient(f"tandemq://127.0.0.1:{server.port}")
    queue = client.queue("q")
    await client.ping()
    await client.close()
    await client.close()
    for use in (client.ping(), queue.count(), queue.add("a"), queue.add_many([("a", 1)])):
        with pytest.raises(Closed, match="make a new one"):
            await use


async def test_clients_share_a_pool_if_they_say_so() -> None:
    async with Peer() as peer:
        first, second = (AsyncClient(peer.url, shared=True) for _ in range(2))
        await first.call("Ping")
        await second.call("Ping")
        assert len(peer.links) == 1
        await first.close()
        with pytest.raises(Closed):
            await first.call("Ping")
        await second.call("Ping")
        await second.close()
        await until(lambda: len(peer.gone) == 1, "the last one closes it")


def test_the_public_errors_are_all_of_them() -> None:
    from tandemq.client import errors

    known = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    assert known == set(tandemq.errors.__all__)
    assert all(issubclass(getattr(errors, name), errors.TandemqError) for name in known)
