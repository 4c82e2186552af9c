"""The API of the broker's web page: queues and what waits in them (VibeMQ semantics 13).

Unlike the reference's it asks who is there: reading a queue wants GetQueueInfo, emptying it
PurgeQueue, deleting it DeleteQueue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tandemq import __version__
from tandemq.commands.bulk import Drain
from tandemq.commands.manage import Cancel
from tandemq.commands.queues import DeleteQueue, ListQueues, QueueInfo
from tandemq.commands.table import Permission
from tandemq.engine.inspect import pending
from tandemq.model.crossing import Uncarriable, name_of, payload_of
from tandemq.model.errors import AccessDenied, NotFound
from tandemq.model.health import members
from tandemq.model.message import Message
from tandemq.model.permission import Operation
from tandemq.server.census import taken_in_slices
from tandemq.server.health import figures, health
from tandemq.server.http.face import Caller, Face, answer
from tandemq.server.http.merge import segment
from tandemq.server.meter import now_ms
from tandemq.wires.vibemq import levels, queues

PAGE: Final = 50  # messages, unless another number is asked for
LARGEST_PAGE: Final = 100
LONGEST_QUERY: Final = 2_048  # characters; a longer one says nothing
SLICE: Final = 2_000  # messages that are looked through in one go

Verb = Callable[[Request], Awaitable[Response]]


def routes(face: Face) -> list[BaseRoute]:
    """Return the routes."""
    api = Api(face)
    queue, messages = "/api/queues/{queue}", "/api/queues/{queue}/messages"
    return [
        _route("/api/version", GET=api.version),
        _route("/api/health", GET=api.health),
        _route("/api/metrics", GET=api.metrics),
        Route("/api/queues", api.names, methods=["GET", "POST", "PUT", "DELETE"]),
        _route(queue, GET=api.show, DELETE=api.delete),
        _route(messages, GET=api.page, DELETE=api.purge),
        _route(messages + "/{message}", GET=api.message, DELETE=api.remove),
    ]


def _route(path: str, **verbs: Verb) -> Route:
    async def serve(request: Request) -> Response:
        verb = verbs.get("GET" if request.method == "HEAD" else request.method)
        if verb is None:
            told = answer({"ok": False, "error": "Method not allowed"}, 405)
            told.headers["allow"] = ", ".join(verbs)
            return told
        return await verb(request)

    route = Route(path, serve)
    route.methods = None  # all of them, so that the wrong ones are told what the right ones are
    return route


class Api:
    """What the routes do."""

    def __init__(self, face: Face) -> None:
        self._face, self._runtime = face, face.runtime

    async def version(self, request: Request) -> Response:
        await self._caller(request)
        return answer({"server_version": __version__, "webui_version": __version__})

    async def health(self, request: Request) -> Response:
        """Tell how the server is; that it answers is its ``ok``."""
        await self._caller(request)
        seen = health(self._runtime, now_ms(), await taken_in_slices(self._runtime.engine))
        return answer({**members(seen, snake=True), "status": "ok"})

    async def metrics(self, request: Request) -> Response:
        await self._caller(request, Permission.SUPERUSER)
        census = await taken_in_slices(self._runtime.engine)
        return answer(members(figures(self._runtime, now_ms(), census), snake=True))

    # -- queues --------------------------------------------------------------------------------

    async def names(self, request: Request) -> Response:
        return answer(sorted(await (await self._caller(request)).ask(ListQueues())))

    async def show(self, request: Request) -> Response:
        caller, queue = await self._caller(request), _queue(request)
        found = await caller.ask(QueueInfo(queue=queue))
        if found is None:
            return _missing("Queue not found")
        facts = msgspec.structs.asdict(queues.facts(found))
        return answer({name: value for name, value in facts.items() if value is not UNSET})

    async def delete(self, request: Request) -> Response:
        caller = await self._caller(request)
        await caller.ask(DeleteQueue(queue=_queue(request)))
        return Response(status_code=204)

    async def purge(self, request: Request) -> Response:
        """Take away what waits, not what somebody holds."""
        caller, queue = await self._caller(request), _queue(request)
        if await caller.ask(QueueInfo(queue=queue)) is None:
            return _missing("Queue not found")
        await caller.ask(Drain(queue=queue))
        return Response(status_code=204)

    # -- messages that wait --------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        await self._reader(request)
        asked = request.query_params if len(request.url.query) <= LONGEST_QUERY else {}
        limit = max(1, min(LARGEST_PAGE, _number(asked.get("limit"), PAGE)))
        start = _number(asked.get("offset"), 0)
        waiting = pending(self._runtime.engine.queues.get(_queue(request)))
        return answer([_shown(m) for m in islice(waiting, start, start + limit)])

    async def message(self, request: Request) -> Response:
        await self._reader(request)
        m = await self._found(request)
        return _missing("Message not found") if m is None else answer(_shown(m))

    async def remove(self, request: Request) -> Response:
        caller = await self._reader(request)
        m = await self._found(request)
        if m is None:
            return _missing("Message not found")
        try:
            await caller.ask(Cancel(id=m.id))
        except NotFound:  # somebody was sooner
            return _missing("Message not found")
        return Response(status_code=204)

    async def _found(self, request: Request) -> Message | None:
        """Return the first waiting message of a name, which need not be the only one."""
        queue, name = _queue(request), segment(request.path_params["message"])
        waiting = list(pending(self._runtime.engine.queues.get(queue)))
        for at in range(0, len(waiting), SLICE):
            for m in waiting[at : at + SLICE]:
                if name_of(m) == name:
                    return m
            await asyncio.sleep(0)
        return None

    async def _caller(self, request: Request, permission: Permission = Permission.OPEN) -> Caller:
        return await self._face.caller(request, permission)

    async def _reader(self, request: Request) -> Caller:
        """Return who asks, if it may look into the queue."""
        caller = await self._caller(request)
        if not caller.call.may(Operation.GET_QUEUE_INFO, _queue(request)):
            raise AccessDenied(Operation.GET_QUEUE_INFO)
        return caller


def _queue(request: Request) -> str:
    return segment(request.path_params["queue"])


def _missing(text: str) -> Response:
    return answer({"ok": False, "error": text}, 404)


def _number(text: str | None, default: int) -> int:
    """Read a number from 0 on; what is none counts as not said."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else default


def _shown(m: Message) -> dict[str, Any]:
    """Show a message; the payload of one that has none is null."""
    headers = (m.letter.headers if m.letter is not None else None) or {}
    try:
        text = payload_of(m)
        payload: Any = msgspec.Raw(text) if text else None
    except Uncarriable:  # data of a job for which JSON has no words: the bytes, as base64
        payload = m.body
    return {
        "id": name_of(m),
        "queue_name": m.queue,
        "payload": payload,
        "timestamp": queues.moment_text(m.created),
        "headers": headers,
        "version": 1,
        "priority": levels.priority(headers) if headers else max(0, min(3, m.priority + 1)),
        "delivery_attempts": m.attempts,
    }
