"""Our client against the reference server: everything that it has, it does for us too.

TANDEMQ_INTEROP_NODE names a folder in which it is installed: `npm install bun bunqueue@2.9.5`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.client.promises import PROMISES, Promise
from tests.support.server import Server

from tandemq import AsyncClient

NODE = os.environ.get("TANDEMQ_INTEROP_NODE", "")

pytestmark = pytest.mark.skipif(
    not NODE, reason="TANDEMQ_INTEROP_NODE names no folder with bun, bunqueue"
)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The reference server, without its limit of requests."""
    modules = Path(NODE).resolve() / "node_modules"
    program = modules / "bunqueue" / "dist" / "cli" / "index.js"
    bun = (modules / ".bin" / "bun").resolve()
    options = "start --host 127.0.0.1 --tcp-port {port} --http-port {http_port} --data-path {data}"
    with pytest.MonkeyPatch.context() as patch:
        command = f"{shlex.quote(str(bun))} {shlex.quote(str(program))} {options}"
        patch.setenv("TANDEMQ_TEST_SERVER", command)
        environment = {"RATE_LIMIT_MAX_REQUESTS": "100000000", "LOG_LEVEL": "error"}
        with Server(tmp_path_factory.mktemp("reference"), environment=environment) as running:
            yield running


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
async def test_a_promise_is_kept(reference: Server, queue: str, promise: Promise) -> None:
    async with AsyncClient(f"tandemq://127.0.0.1:{reference.port}") as client:
        await promise(client, queue)
