"""Routes that show queues and workers in ways that no command does."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tandemq.commands.states import states_of
from tandemq.commands.table import Permission
from tandemq.engine.workers import Worker
from tandemq.model.errors import AccessDenied, TandemqError
from tandemq.model.permission import Operation
from tandemq.server.http.face import Face, answer, refusal
from tandemq.server.http.merge import segment
from tandemq.server.meter import now_ms

SUMMED = ("waiting", "prioritized", "active", "completed", "failed", "delayed")
TOLD = (
    "id", "name", "queues", "concurrency", "registeredAt", "lastSeen", "activeJobs",
    "processedJobs", "failedJobs",
)  # fmt: skip


def routes(face: Face) -> list[BaseRoute]:
    """Return the routes."""

    async def summary(request: Request) -> Response:
        try:
            caller = await face.caller(request, Permission.LIST)
        except TandemqError as error:
            return refusal(error)
        found = sorted(face.runtime.engine.queues.values(), key=lambda q: q.name)
        listed = (q for q in found if not q.blank)
        may = caller.call.may
        shown: list[dict[str, Any]] = []
        for q in listed:
            if may(Operation.LIST_QUEUES, q.name):
                states = states_of(q)
                counts = {name: states[name] for name in SUMMED}
                shown.append({"name": q.name, "paused": q.settings.paused, "counts": counts})
        return answer(shown)

    async def workers(request: Request) -> Response:
        engine, queue = face.runtime.engine, segment(request.path_params["queue"])
        try:
            caller = await face.caller(request, Permission.INSPECT)
            if not caller.call.may(Operation.GET_QUEUE_INFO, queue):
                raise AccessDenied(Operation.GET_QUEUE_INFO)
        except TandemqError as error:
            return refusal(error)
        found = [_worker(w) for w in engine.workers.on(queue, now_ms())]
        return answer({"ok": True, "workers": found})

    return [
        Route("/queues/summary", summary, methods=["GET"]),
        Route("/queues/{queue}/workers", workers, methods=["GET"]),
    ]


def _worker(w: Worker) -> dict[str, Any]:
    values = (
        w.id, w.name, w.queues, w.concurrency, w.registered, w.seen, w.active, w.processed,
        w.failed,
    )  # fmt: skip
    return dict(zip(TOLD, values, strict=True))
