"""The HTTP side of a runtime without sockets, asked in the test's own loop."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp, Message, Scope
from tests.server.offline import serving

from tandemq.server.http.app import application
from tandemq.server.http.face import Face
from tandemq.server.runtime import Runtime
from tandemq.stores.base import Store


class Room:
    """A runtime and its HTTP application."""

    def __init__(self, runtime: Runtime, app: ASGIApp) -> None:
        self.runtime, self._app = runtime, app

    async def ask(
        self, method: str, path: str, body: Any = None, token: str | None = None
    ) -> tuple[int, Any]:
        """Return the status of an answer and what it holds, JSON or text."""
        sent = b"" if body is None else json.dumps(body).encode()
        said: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": sent}

        async def send(message: Message) -> None:
            said.append(message)

        await self._app(_scope(method, path, token), receive, send)
        text = b"".join(message.get("body", b"") for message in said).decode()
        headers = dict(said[0]["headers"])
        is_json = headers.get(b"content-type") == b"application/json"
        return said[0]["status"], json.loads(text) if is_json else text

    async def get(self, path: str, token: str | None = None) -> tuple[int, Any]:
        return await self.ask("GET", path, token=token)


def _scope(method: str, path: str, token: str | None) -> Scope:
    raw, _, query = path.partition("?")
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": raw,
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "headers": [(b"authorization", f"Bearer {token}".encode())] if token else [],
        "client": ("127.0.0.1", 1),
        "state": {},
    }


@asynccontextmanager
async def room(store: Store | None = None, **settings: Any) -> AsyncIterator[Room]:
    """A runtime on a store; see ``serving``."""
    async with serving(store, **settings) as runtime:
        yield Room(runtime, application(Face(runtime)))
