"""``GET /openapi.json``: what there is over HTTP, as the table of commands has it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, get_type_hints

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tandemq import __version__
from tandemq.commands.all import COMMANDS
from tandemq.commands.call import Pushed, PushedMany
from tandemq.commands.table import Command, HttpRoute, Permission
from tandemq.server.http.face import Face, answer
from tandemq.server.http.forms import TAKEN
from tandemq.server.http.merge import BODILESS
from tandemq.server.http.schema import Schema, fields_of

VERSION: Final = "3.1.0"
ABOUT: Final = (
    "A job queue and message broker. Every command of the bunqueue wire is a route. Bodies are "
    "JSON whatever their content type says; an answer has `ok`, and with `ok: false` an `error`."
)
ANSWERS: Final = {
    400: "It cannot be understood, or is refused",
    401: "Who asks has not proved who it is",
    403: "Who asks may not do this",
    404: "It does not exist",
    413: "The body is too large",
    429: "Too many requests from one address",
    503: "Not now: the server stops, its store cannot be written, or it is at a limit",
}
DONE: Final = {101: "The connection is a WebSocket now", 307: "It stands in the header Location"}
ALWAYS: Final = (400, 401, 403, 404, 413, 429, 503)  # a path of this kind may be none: 404
TOPICS: Final = {"jobs": "Jobs", "queues": "Queues", "crons": "Schedules", "flows": "Flows"}
JSON, HTML = "application/json", "text/html"
QUEUE, MESSAGES = "/api/queues/{queue}", "/api/queues/{queue}/messages"
# Routes that are no commands: method, path, what they are for, the type of their answer, and its
# statuses; the good one is 200 if there is none among them.
OTHERS: Final[tuple[tuple[str, str, str, str, tuple[int, ...]], ...]] = (
    ("GET", "/health", "Tell how the server is, with figures.", "application/json", (503,)),
    ("GET", "/healthz", "Tell that the loop turns.", "text/plain", ()),
    ("GET", "/live", "Tell that the loop turns.", "text/plain", ()),
    ("GET", "/ready", "Tell whether requests can be served.", "application/json", (503,)),
    ("GET", "/stats", "Return counts, rates and memory.", "application/json", ALWAYS),
    ("GET", "/metrics", "Return the totals since the start.", "application/json", ALWAYS),
    ("GET", "/prometheus", "Return all figures as text exposition.", "text/plain", ALWAYS),
    ("GET", "/heapstats", "Return what memory is used for.", "application/json", ALWAYS),
    ("POST", "/gc", "Give unused memory back.", "application/json", ALWAYS),
    ("GET", "/queues/summary", "Return the counts of all queues.", "application/json", ALWAYS),
    (
        "GET",
        "/queues/{queue}/workers",
        "Return the active workers of a queue.",
        "application/json",
        ALWAYS,
    ),
    ("GET", "/events", "Stream the events of all queues.", "text/event-stream", ALWAYS),
    (
        "GET",
        "/events/queues/{queue}",
        "Stream the events of one queue.",
        "text/event-stream",
        ALWAYS,
    ),
    ("GET", "/ws", "Open a WebSocket for commands and events.", "", (101, *ALWAYS)),
    ("GET", "/ws/queues/{queue}", "Open one for the events of a queue.", "", (101, *ALWAYS)),
    ("GET", "/health/", "Tell how the broker is, with figures.", JSON, (503,)),
    ("GET", "/metrics/", "Return the figures of the broker.", JSON, ALWAYS),
    ("GET", "/ui", "Lead to the web page.", "", (307, 429)),
    ("GET", "/ui/", "Return the web page.", HTML, (429,)),
    ("GET", "/docs", "Return this document as a page.", HTML, (429,)),
    ("GET", "/openapi.json", "Return this document.", JSON, (429,)),
    ("GET", "/api/version", "Return the version of the server.", JSON, ALWAYS),
    ("GET", "/api/health", "Tell how the broker is.", JSON, ALWAYS),
    ("GET", "/api/metrics", "Return the figures of the broker.", JSON, ALWAYS),
    ("GET", "/api/queues", "Return the names of the queues.", JSON, ALWAYS),
    ("GET", QUEUE, "Return the facts of a queue.", JSON, ALWAYS),
    ("DELETE", QUEUE, "Delete a queue.", "", (204, *ALWAYS)),
    ("GET", MESSAGES, "Return a page of the messages that wait.", JSON, ALWAYS),
    ("DELETE", MESSAGES, "Take away the messages that wait.", "", (204, *ALWAYS)),
    ("GET", MESSAGES + "/{message}", "Return a message that waits.", JSON, ALWAYS),
    ("DELETE", MESSAGES + "/{message}", "Take a message away.", "", (204, *ALWAYS)),
)

_parameters = re.compile(r"{(\w+)}").findall


def routes(face: Face) -> list[BaseRoute]:
    """Return the route; everybody may read it, since it says nothing of this server."""

    async def serve(_: Request) -> Response:
        return answer(document())

    return [Route("/openapi.json", serve, methods=["GET"])]


@cache
def document() -> dict[str, Any]:
    """Return the whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for method, path, summary, kind, statuses in OTHERS:
        paths.setdefault(path, {})[method.lower()] = _other(method, path, summary, kind, statuses)
    for row in COMMANDS.values():
        for number, route in enumerate(row.http):
            operation = _operation(row, route, number)
            paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": VERSION,
        "info": {"title": "tandemq", "version": __version__, "description": ABOUT},
        "paths": dict(sorted(paths.items())),
        "security": [{}, {"token": []}, {"user": []}],
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "user": {"type": "http", "scheme": "basic"},
            },
            "schemas": {
                "Answer": _said({"type": "boolean"}, {}),
                "Refusal": _said({"const": False}, {"error": {"type": "string"}}),
            },
        },
    }


def _operation(row: Command, route: HttpRoute, number: int) -> dict[str, Any]:
    named = _parameters(route.path)
    fields = {name: said for name, said in _fields(row).items() if name not in named}
    told: dict[str, Any] = {
        "operationId": row.name + (str(number + 1) if number else ""),
        "summary": row.summary,
        "tags": [_topic(route.path)],
        "parameters": list(map(_in_path, named)),
    }
    if route.method in BODILESS:
        told["parameters"] += [_in_query(name, schema) for name, (schema, _) in fields.items()]
    elif fields:
        told["requestBody"] = {"required": route.body, "content": _json(_body(fields))}
    if row.permission is Permission.SUPERUSER:
        told["description"] = "Only superusers and tokens of the server may."
    told["responses"] = {"200": _answer("Done", _good(row)), **_refusals((*ALWAYS, route.refused))}
    if route.refused == 200:
        told["responses"]["200"] = _answer("Done, or refused: see `ok`", _ref("Answer"))
    return told


def _fields(row: Command) -> dict[str, tuple[Schema, bool]]:
    found = fields_of(row.request)
    taken = TAKEN.get(row.name, found)
    return {name: found.get(name, ({}, False)) for name in taken}


def _body(fields: dict[str, tuple[Schema, bool]]) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {name: said for name, (said, _) in fields.items()},
    }
    if required := [name for name, (_, needed) in fields.items() if needed]:
        schema["required"] = required
    return schema


def _good(row: Command) -> Schema:
    """Return what a good answer holds, as far as every answer of the command does."""
    kind = get_type_hints(row.run).get("return")
    kinds = getattr(kind, "__args__", (kind,))
    if Pushed in kinds:
        return _said({"const": True}, {"id": {"type": "string"}})
    if PushedMany in kinds:
        ids = {"type": "array", "items": {"type": "string"}}
        return _said({"const": True}, {"ids": ids})
    return _said({"const": True}, {})


def _said(ok: Schema, more: dict[str, Schema]) -> Schema:
    properties = {"ok": ok, **more}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _other(
    method: str, path: str, summary: str, kind: str, statuses: tuple[int, ...]
) -> dict[str, Any]:
    name = re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_")
    name += "_" * path.endswith("/")
    good = next((status for status in statuses if status < 400), 200)
    content: Schema = {"content": {kind: {"schema": {}}}} if kind else {}
    return {
        "operationId": name,
        "summary": summary,
        "tags": [_topic(path)],
        "parameters": list(map(_in_path, _parameters(path))),
        "responses": {
            str(good): {"description": DONE.get(good, "Done"), **content},
            **_refusals(tuple(status for status in statuses if status != good)),
        },
    }


def _refusals(statuses: tuple[int, ...]) -> dict[str, Any]:
    told = (status for status in dict.fromkeys(statuses) if status != 200)
    return {str(status): _answer(ANSWERS[status], {}) for status in told}


def _answer(text: str, schema: Schema) -> dict[str, Any]:
    return {"description": text, "content": _json(schema)}


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _in_path(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(name: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema}


def _topic(path: str) -> str:
    first = path.split("/")[1]
    return TOPICS.get(first, first.capitalize())
