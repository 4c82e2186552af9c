"""The web page: files that are served as they stand in this folder, without a build step.

The page is modules of its own (``app/``) and libraries (``vendor/``). It speaks to the server with
the routes that everybody else has, so there is nothing in here but files. They hold no secrets,
which is why nobody has to prove anything to load them.
"""

from __future__ import annotations

from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tandemq.server.http.face import Face, answer

TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # asked for again each time, and answered with 304
}


class File(NamedTuple):
    """One file of the page."""

    body: bytes
    type: str
    tag: str  # ETag: another one for other content


def files() -> dict[str, File]:
    """Return the files of the page by their path in it; the empty one is the page itself."""
    found = dict(_files(resources.files(__package__), ""))
    return {**found, "": found["index.html"]}


def _files(folder: Traversable, prefix: str) -> list[tuple[str, File]]:
    found: list[tuple[str, File]] = []
    for entry in folder.iterdir():
        kind = TYPES.get(entry.name.rpartition(".")[2])
        if entry.is_dir():
            found += _files(entry, f"{prefix}{entry.name}/")
        elif kind is not None:
            body = entry.read_bytes()
            tag = f'"{sha256(body).hexdigest()[:20]}"'
            found.append((prefix + entry.name, File(body, kind, tag)))
    return found


def routes(face: Face) -> list[BaseRoute]:
    """Return the routes; a path leads to what was there when the server started, or nowhere."""
    known = files()

    async def door(request: Request) -> Response:
        # Relative, so that it holds behind a proxy that puts a path in front.
        return Response(status_code=307, headers={"Location": "ui/", **HEADERS})

    async def file(request: Request) -> Response:
        found = known.get(request.path_params["path"])
        if found is None:
            return answer({"ok": False, "error": "Not found"}, 404)
        headers = {"ETag": found.tag, **HEADERS}
        if found.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(found.body, headers=headers, media_type=found.type)

    return [
        Route("/ui", door, methods=["GET"]),
        Route("/ui/{path:path}", file, methods=["GET"]),
    ]
