"""Queues in a Starlette or FastAPI application.

::

    app = FastAPI(lifespan=lifespan(queue))


    @app.post("/welcome/{user_id}")
    async def register(user_id: int, client: Annotated[AsyncClient, Depends(client)]):
        await welcome.enqueue(user_id)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.requests import HTTPConnection

from tandemq.client.client import AsyncClient
from tandemq.client.task_queue import TaskQueue

State = dict[str, Any]
KEY = "tandemq"


def lifespan(
    *queues: TaskQueue, work: bool = False, url: str | None = None, **options: Any
) -> Callable[[Any], AbstractAsyncContextManager[State]]:
    """Return a lifespan that has a client for the application, and closes its queues at the end.

    Args:
        queues: whose tasks the application enqueues.
        work: run a worker for each of them inside the application.
        url: of the client; that of the first queue unless told otherwise.
        options: of the workers, such as ``concurrency=5``.
    """

    @asynccontextmanager
    async def run(app: Any) -> AsyncIterator[State]:
        async with AsyncExitStack() as parts:
            target = url or (queues[0].pool.target if queues else None)
            client = await parts.enter_async_context(AsyncClient(target))
            for queue in queues:
                parts.push_async_callback(queue.close)
                if work:
                    await parts.enter_async_context(queue.worker(**options))
            yield {KEY: client}

    return run


def client(connection: HTTPConnection) -> AsyncClient:
    """Return the application's client; a dependency of FastAPI, or call it with the request.

    Raises:
        RuntimeError: the application does not run with our lifespan.
    """
    found = getattr(connection.state, KEY, None)
    if not isinstance(found, AsyncClient):
        raise RuntimeError(
            "this application has no client: give it lifespan=lifespan() of"
            " tandemq.contrib.starlette"
        )
    return found
