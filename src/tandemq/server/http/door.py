"""What holds for every HTTP request, whatever answers it: preflights, origins of pages, rates."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandemq.model.errors import RateLimited
from tandemq.server.http.face import Face, refusal

PROBES = ("/health", "/healthz", "/live", "/ready", "/health/", "/gc", "/heapstats")
METHODS = b"GET, POST, PUT, DELETE, OPTIONS"


class Door:
    """Stands before the application."""

    def __init__(self, app: ASGIApp, face: Face) -> None:
        self._app, self._face = app, face
        self._origins = frozenset(face.settings.cors_allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. Its path stays as it was sent, so that %2F separates nothing."""
        scope["path"] = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        if scope["type"] == "http":
            allowed = self._allowed(scope)
            headers = list(self._face.headers)
            if allowed is not None:
                headers.append((b"access-control-allow-origin", allowed))
            if scope["method"] == "OPTIONS":
                await _preflight(send, headers)
                return
            send = _with(headers, send)
            if scope["path"] not in PROBES and self._face.too_many(self._face.origins.of(scope)):
                await refusal(RateLimited())(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _allowed(self, scope: Scope) -> bytes | None:
        """Return which origin may read the answer, None for no other than its own."""
        if "*" in self._origins:
            return b"*"
        for name, value in scope["headers"]:
            if name == b"origin":
                return value if value.decode("latin-1") in self._origins else None
        return None


async def _preflight(send: Send, headers: list[tuple[bytes, bytes]]) -> None:
    headers += [
        (b"access-control-allow-methods", METHODS),
        (b"access-control-allow-headers", b"Content-Type, Authorization"),
        (b"access-control-max-age", b"86400"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _with(headers: list[tuple[bytes, bytes]], send: Send) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            given: Any = message.get("headers", ())
            message["headers"] = [*given, *headers]
        await send(message)

    return told
