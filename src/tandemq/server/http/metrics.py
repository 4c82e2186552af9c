"""Figures of the server: for dashboards, for Prometheus, for who looks for a leak."""

from __future__ import annotations

import gc
from collections import Counter
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tandemq.commands.dashboard import collections_of
from tandemq.commands.table import Permission
from tandemq.model.health import members
from tandemq.model.message import State
from tandemq.server.census import Census, taken_in_slices
from tandemq.server.health import figures
from tandemq.server.http.face import Face, answer
from tandemq.server.http.health import snake
from tandemq.server.meter import now_ms
from tandemq.server.prometheus import scraped
from tandemq.server.pulse import megabytes
from tandemq.server.runtime import Runtime

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
NO_TOKENS = "Metrics authentication is enabled but no tokens are configured"
OBJECTS = 100_000  # that are looked at for their types
TYPES = 20  # of them that are told of

Told = dict[str, Any]


def routes(face: Face) -> list[BaseRoute]:
    """Return the routes of figures."""
    runtime = face.runtime
    engine = runtime.engine

    async def prometheus(request: Request) -> Response:
        if (barred := await _barred(face, request)) is not None:
            return barred
        return Response(await scraped(runtime), media_type=EXPOSITION)

    async def broker(request: Request) -> Response:
        if (barred := await _barred(face, request)) is not None:
            return barred
        seen = figures(runtime, now_ms(), await taken_in_slices(engine))
        return answer(members(seen, snake=snake(request)))

    async def metrics(request: Request) -> Response:
        await face.caller(request, Permission.SUPERUSER)
        return answer({"ok": True, "metrics": _totals(runtime)})

    async def stats(request: Request) -> Response:
        await face.caller(request, Permission.SUPERUSER)
        return answer(_stats(runtime, await taken_in_slices(engine)))

    async def heap(request: Request) -> Response:
        await face.caller(request, Permission.SUPERUSER)
        return answer(_heap(runtime))

    async def collect(request: Request) -> Response:
        await face.caller(request, Permission.SUPERUSER)
        before = megabytes(runtime)
        engine.compact()
        gc.collect()
        return answer({"ok": True, "before": before, "after": megabytes(runtime)})

    return [
        Route("/prometheus", prometheus),
        Route("/metrics", metrics),
        Route("/metrics/", broker),
        Route("/stats", stats),
        Route("/heapstats", heap),
        Route("/gc", collect, methods=["POST"]),
    ]


async def _barred(face: Face, request: Request) -> Response | None:
    """Return what to say to who may not scrape; None to who may, which is anybody by default.

    Raises:
        TandemqError: a token is wanted, and there is no good one.
    """
    if not face.settings.metrics_auth:
        return None
    if face.runtime.accounts.open:
        return answer({"ok": False, "error": NO_TOKENS}, 503)
    await face.caller(request, Permission.SUPERUSER)
    return None


def _totals(runtime: Runtime) -> Told:
    counters = runtime.engine.counters
    return {
        "totalPushed": counters.pushed,
        "totalPulled": counters.pulled,
        "totalCompleted": counters.completed,
        "totalFailed": counters.failed,
    }


def _stats(runtime: Runtime, census: Census) -> Told:
    schedules = runtime.engine.schedules
    stats = {
        "waiting": census[State.READY] - census.prioritized,
        "prioritized": census.prioritized,
        "delayed": census[State.DELAYED],
        "active": census[State.LEASED],
        "dlq": census[State.DEAD],
        "completed": census[State.DONE],
        "waiting-children": census[State.PARKED],
        **_totals(runtime),
        "uptime": int(runtime.meter.uptime * 1_000),
        "cronJobs": len(schedules),
        "cronPending": sum(not s.spent for s in schedules.values()),
        **runtime.monitor.rates(),
    }
    memory = {**megabytes(runtime), "external": 0, "arrayBuffers": 0}
    collections = collections_of(runtime.engine)
    return {"ok": True, "stats": stats, "memory": memory, "collections": collections}


def _heap(runtime: Runtime) -> Told:
    objects = gc.get_objects()
    types = Counter(type(each).__name__ for each in islice(objects, OBJECTS))
    return {
        "ok": True,
        "memory": megabytes(runtime),
        "heap": {"objects": len(objects), "frozen": gc.get_freeze_count()},
        "collections": collections_of(runtime.engine),
        "topObjectTypes": [
            {"type": name, "count": count} for name, count in types.most_common(TYPES)
        ],
    }
