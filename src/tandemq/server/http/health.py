"""Probes: what those ask that restart, route to and watch a server (ruling 19).

``/health`` and ``/health/`` are two routes: the first has the job queue's shape, the second the
broker's, which is also all that the health port has. Nothing here wants a token.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from tandemq.commands.access import COMPATIBLE_WITH
from tandemq.model.health import Status, members
from tandemq.model.message import State
from tandemq.server.census import Census, taken_in_slices
from tandemq.server.health import condition, health
from tandemq.server.http.face import Face, answer
from tandemq.server.meter import now_ms
from tandemq.server.pulse import megabytes
from tandemq.server.runtime import Runtime


def routes(face: Face) -> list[BaseRoute]:
    """Return the routes of probes; any method may be used."""
    runtime = face.runtime

    async def well(_: Request) -> Response:
        return _well(runtime, await taken_in_slices(runtime.engine))

    async def broker(request: Request) -> Response:
        seen = health(runtime, now_ms(), await taken_in_slices(runtime.engine))
        return answer(members(seen, snake=snake(request)), 200 if seen.is_healthy else 503)

    async def alive(_: Request) -> Response:
        return PlainTextResponse("OK")

    async def ready(_: Request) -> Response:
        return _ready(runtime)

    found = [
        Route("/health", well),
        Route("/health/", broker),
        Route("/healthz", alive),
        Route("/live", alive),
        Route("/ready", ready),
    ]
    for route in found:
        route.methods = None
    return [*found]


def snake(request: Request) -> bool:
    """Whether names are wanted with underscores."""
    return request.query_params.get("naming") == "snake"


def _well(runtime: Runtime, census: Census) -> Response:
    """Tell how the server is; memory that is nearly full is a matter of ``/health/``."""
    storage, memory = runtime.storage(), megabytes(runtime)
    degraded = bool(runtime.outage) or runtime.winding_down
    links = runtime.monitor.links()
    told: dict[str, Any] = {
        "ok": not degraded,
        "status": str(Status.DEGRADED if degraded else Status.HEALTHY),
        "uptime": int(runtime.meter.uptime),
        "version": COMPATIBLE_WITH,
        "queues": {
            "waiting": census[State.READY],
            "active": census[State.LEASED],
            "delayed": census[State.DELAYED],
            "completed": census[State.DONE],
            "dlq": census[State.DEAD],
        },
        "connections": {"tcp": links["tcp"], "ws": links["websocket"], "sse": links["sse"]},
        "memory": memory,
    }
    if degraded:
        told |= {"storage": storage, "reasons": condition(runtime)[1]}
    return answer(told, 503 if degraded else 200)


def _ready(runtime: Runtime) -> Response:
    """Tell whether requests are welcome: the store works, and nobody has said stop.

    Migrations are done before anybody can ask.
    """
    if not (runtime.outage or runtime.winding_down):
        return answer({"ok": True, "ready": True})
    told = {"ok": False, "ready": False, "storage": runtime.storage()}
    return answer({**told, "reasons": condition(runtime)[1]}, 503)
