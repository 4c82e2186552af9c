"""Queues in FastAPI and Starlette applications."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI

from tandemq import AsyncClient, Queue
from tandemq.contrib.starlette import client, lifespan
from tandemq.testing import Stage

Server = Annotated[AsyncClient, Depends(client)]


def application(stage: Stage, **options: Any) -> FastAPI:
    queue = Queue("web", stage.target)

    @queue.task
    async def shout(text: str) -> str:
        return text.upper()

    app = FastAPI(lifespan=lifespan(queue, **options))

    @app.post("/shout/{text}")
    async def post(text: str) -> str:
        return (await shout.enqueue(text)).id

    @app.get("/results/{id}")
    async def result(id: str, server: Server) -> str:
        return str(await server.queue("web").job(id).result(5))

    @app.get("/waiting")
    async def waiting(server: Server) -> int:
        return await server.queue("web").count()

    return app


class Web:
    """Asks an application as a server would, without a socket."""

    def __init__(self, app: FastAPI, state: dict[str, Any]) -> None:
        self._app, self._state = app, state

    async def ask(self, method: str, path: str) -> Any:
        said: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            said.append(message)

        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [],
            "scheme": "http", "server": ("test", 80), "client": ("test", 1), "root_path": "",
            "state": dict(self._state),
        }  # fmt: skip
        await self._app(scope, receive, send)
        return json.loads(b"".join(message.get("body", b"") for message in said))


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[Web]:
    async with app.router.lifespan_context(app) as state:
        yield Web(app, dict(state or {}))


async def test_an_application_enqueues_and_works(tandemq_server: Stage) -> None:
    async with running(application(tandemq_server, work=True, concurrency=2)) as web:
        id = await web.ask("POST", "/shout/hello")
        assert await web.ask("GET", f"/results/{id}") == "HELLO"


async def test_an_application_may_leave_the_work_to_others(tandemq_server: Stage) -> None:
    async with running(application(tandemq_server)) as web:
        await web.ask("POST", "/shout/hello")
        assert await web.ask("GET", "/waiting") == 1


async def test_without_the_lifespan_there_is_a_hint(tandemq_server: Stage) -> None:
    web = Web(application(tandemq_server), {})
    with pytest.raises(RuntimeError, match="give it lifespan="):
        await web.ask("GET", "/waiting")
