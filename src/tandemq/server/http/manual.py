"""``GET /docs``: the OpenAPI document as a page, without scripts and without other sites."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tandemq.server.http.face import Face
from tandemq.server.http.openapi import document

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
STYLE: Final = """\
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: auto; padding: 1rem; }
h2 { margin-top: 2rem; }
details { border-top: 1px solid #8884; padding: .4rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
b { display: inline-block; min-width: 4.5rem; }
code, pre { font: 14px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; background: #8881; padding: .6rem; }
table { border-collapse: collapse; }
td { padding: 0 1rem 0 0; vertical-align: top; }
"""


def routes(face: Face) -> list[BaseRoute]:
    """Return the routes of the page and its style; everybody may read them."""

    async def page(_: Request) -> Response:
        return Response(rendered(), headers=HEADERS, media_type="text/html")

    async def style(_: Request) -> Response:
        return Response(STYLE, headers=HEADERS, media_type="text/css")

    return [
        Route("/docs", page, methods=["GET"]),
        Route("/docs.css", style, methods=["GET"]),
    ]


@cache
def rendered() -> str:
    """Return the page."""
    told = document()
    topics: dict[str, list[str]] = {}
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            shown = _operation(method.upper(), path, operation)
            topics.setdefault(operation["tags"][0], []).append(shown)
    parts = "".join(
        f"<h2>{escape(topic)}</h2>{''.join(shown)}" for topic, shown in sorted(topics.items())
    )
    info = told["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<title>{title}: HTTP</title><link rel="stylesheet" href="docs.css">'
        f"<h1>{title}</h1><p>{escape(info['description'])}</p>"
        f'<p><a href="openapi.json">openapi.json</a></p>{parts}</html>'
    )


def _operation(method: str, path: str, told: dict[str, Any]) -> str:
    head = f"<summary><b>{method}</b> <code>{escape(path)}</code></summary>"
    parts = [f"<p>{escape(told['summary'])} {escape(told.get('description', ''))}</p>"]
    rows = [
        (f"<code>{escape(p['name'])}</code>", p["in"], _kind(p["schema"]))
        for p in told["parameters"]
    ]
    body = told.get("requestBody")
    if body is not None:
        schema = body["content"]["application/json"]["schema"]
        rows += [
            (f"<code>{escape(name)}</code>", "body", _kind(said))
            for name, said in schema["properties"].items()
        ]
    parts.append(_table(rows))
    answers = [(status, escape(said["description"])) for status, said in told["responses"].items()]
    parts.append(_table(answers))
    return f"<details>{head}{''.join(parts)}</details>"


def _table(rows: list[Any]) -> str:
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>" if rows else ""


def _kind(schema: dict[str, Any]) -> str:
    """Return what a value may be, in a few words."""
    text = msgspec.json.encode(schema).decode() if schema else "anything"
    return f"<code>{escape(text if len(text) < 200 else schema.get('type', 'anything'))}</code>"
