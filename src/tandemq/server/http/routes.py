"""The http column of the command table as routes.

Path, query and body are merged into the fields of the command; what stands in the path wins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tandemq.commands.all import COMMANDS
from tandemq.commands.table import Command, HttpRoute
from tandemq.model.errors import Malformed, TandemqError
from tandemq.server.http import forms, jsontext
from tandemq.server.http.face import Face, answer, body_of, refusal

Endpoint = Callable[[Request], Awaitable[Response]]


def routes(face: Face) -> list[BaseRoute]:
    """Return a route for every row that has one."""
    paths: dict[str, dict[str, Endpoint]] = {}
    for row in COMMANDS.values():
        for route in row.http:
            paths.setdefault(route.path, {})[route.method] = _endpoint(face, row, route)
    return [_joined(path, paths[path]) for path in sorted(paths, key=_by_precision)]


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
    before, after = forms.BEFORE.get(row.name, dict), forms.AFTER.get(row.name)

    async def serve(request: Request) -> Response:
        try:
            caller = await face.caller(request, row.permission)
            fields = before(await fields_of(face, request, route))
            told = await face.asked(caller, row, fields)
            return answer(told if after is None else after(told, fields, caller.call))
        except (TandemqError, ConnectionError) as error:
            return refusal(error, route.refused)

    return serve


async def fields_of(face: Face, request: Request, route: HttpRoute) -> dict[str, Any]:
    """Return what a request says, by the names of the command's fields.

    Raises:
        BadRequest: some of it cannot be read.
        FrameTooLarge: the body is too long.
    """
    fields: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        fields[name] = f"{fields[name]},{text}" if name in fields else _queried(text)
    if route.method not in ("GET", "DELETE"):
        body = await body_of(request, face.settings.max_frame_bytes)
        fields |= _members(body, required=route.body)
    for name, value in request.path_params.items():
        fields[name] = segment(value)
    return fields


def _members(text: bytes, *, required: bool) -> dict[str, Any]:
    if not text and not required:
        return {}
    value = jsontext.read(text)
    if not isinstance(value, dict):
        raise Malformed("The body must be a JSON object")
    return value


def segment(raw: str) -> str:
    """Return what a part of a path stands for.

    Raises:
        BadRequest: it is no text.
    """
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        raise Malformed("The path holds percent-encoded bytes that are no UTF-8") from None


def _queried(text: str) -> int | str:
    """Return a value of the query: short whole numbers as such, everything else as text.

    A number that is not written in the usual way, 007, may well be the name of something.
    """
    digits = text.removeprefix("-")
    whole = len(digits) < 16 and digits.isascii() and digits.isdigit()
    return int(text) if whole and str(int(text)) == text else text
