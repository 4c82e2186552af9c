"""The http column of the command table as routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from tandemq.commands.all import COMMANDS
from tandemq.commands.table import Command, HttpRoute
from tandemq.model.errors import TandemqError
from tandemq.server.http.face import Face, answer, body_of, refusal
from tandemq.server.http.merge import BODILESS, merged, segment

Endpoint = Callable[[Request], Awaitable[Response]]
Found = tuple[Command, HttpRoute, dict[str, str]]


def routes(face: Face) -> list[BaseRoute]:
    """Return a route for every row that has one."""
    paths: dict[str, dict[str, Endpoint]] = {}
    for row in COMMANDS.values():
        for route in row.http:
            paths.setdefault(route.path, {})[route.method] = _endpoint(face, row, route)
    return [_joined(path, paths[path]) for path in sorted(paths, key=_by_precision)]


class CommandPaths:
    """Finds the command that a path means, as the routes would."""

    def __init__(self, others: Sequence[BaseRoute]) -> None:
        """``others`` are the routes that come before those of the commands."""
        self._others = others
        self._rows: dict[tuple[str, int], list[tuple[list[str], Command, HttpRoute]]] = {}
        rows = ((route, row) for row in COMMANDS.values() for route in row.http)
        for route, row in sorted(rows, key=lambda item: _by_precision(item[0].path)):
            parts = route.path.split("/")
            self._rows.setdefault((route.method, len(parts)), []).append((parts, row, route))

    def find(self, method: str, path: str) -> Found | None:
        """Return the row, the route and what stands in the path for its parameters."""
        scope = {"type": "http", "method": method, "path": path, "root_path": ""}
        if any(other.matches(scope)[0] is Match.FULL for other in self._others):
            return None
        given = path.split("/")
        for parts, row, route in self._rows.get((method, len(given)), ()):
            if (params := _matched(parts, given)) is not None:
                return row, route, params
        return None


def _matched(parts: list[str], given: list[str]) -> dict[str, str] | None:
    params: dict[str, str] = {}
    for part, word in zip(parts, given, strict=True):
        if part.startswith("{"):
            if not word:
                return None
            params[part[1:-1]] = word
        elif part != word:
            return None
    return params


def _by_precision(path: str) -> tuple[bool, ...]:
    """Sort what is spelled out before what takes any name."""
    return tuple(part.startswith("{") for part in path.split("/"))


def _joined(path: str, methods: dict[str, Endpoint]) -> Route:
    async def serve(request: Request) -> Response:
        return await methods[request.method](request)

    route = Route(path, serve, methods=list(methods))
    route.methods = set(methods)  # without HEAD, which would take jobs that nobody sees
    return route


def _endpoint(face: Face, row: Command, route: HttpRoute) -> Endpoint:
    async def serve(request: Request) -> Response:
        try:
            caller = await face.caller(request, row.permission)
            body = b""
            if route.method not in BODILESS:
                body = await body_of(request, face.settings.max_frame_bytes)
            query = request.scope["query_string"].decode("latin-1")
            params = {name: segment(raw) for name, raw in request.path_params.items()}
            fields = merged(face, row, route, query, body, params)
            told = await face.asked(caller, row, fields)
            after = face.after(row)
            return answer(told if after is None else after(told, fields, caller.call))
        except (TandemqError, ConnectionError) as error:
            return refusal(error, route.refused)

    return serve
