"""What holds for every HTTP request, whatever answers it: pages of other origins, rates.

A page of any site can make its reader's browser send requests to a server that only this machine
reaches. It could not read the answers, but a request that pushes or takes a job has done its harm
by then. So what a page sends is refused unless it is the server's own or of an origin that is
allowed; programs send no such headers, and are not concerned.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandemq.model.errors import NotAuthorized, RateLimited, TandemqError
from tandemq.server.http.face import Face, refusal

PROBES = frozenset(("/health", "/healthz", "/live", "/ready", "/health/", "/gc", "/heapstats"))
PAGES = ("/ui", "/docs")  # may be linked to
METHODS = b"GET, POST, PUT, DELETE, OPTIONS"
FOREIGN = "Pages of this origin may not do that: allow it with --cors-origin"


class Door:
    """Stands before the application."""

    def __init__(self, app: ASGIApp, face: Face) -> None:
        self._app, self._face = app, face
        self._origins = frozenset(face.settings.cors_allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. Its path stays as it was sent, so that %2F separates nothing."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        scope["path"] = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        told = {name: value for name, value in scope["headers"] if name in TELLING}
        allowed = self._allowed(told.get(b"origin"))
        foreign = allowed is None and (_is_foreign(scope["path"], told) or self._borrowed(told))
        headers = list(self._face.headers)
        if allowed is not None:
            headers.append((b"access-control-allow-origin", allowed))
        if scope.get("method") == "OPTIONS":
            await _preflight(send, headers)
            return
        send = _with(headers, send)
        if (error := self._refused(scope, foreign=foreign)) is not None:
            await refusal(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refused(self, scope: Scope, *, foreign: bool) -> TandemqError | None:
        if foreign:
            return NotAuthorized(FOREIGN)
        counts = scope["path"] not in PROBES
        if counts and self._face.too_many(self._face.origins.of(scope)):
            return RateLimited()
        return None

    def _borrowed(self, told: dict[bytes, bytes]) -> bool:
        """Whether a page may stand under a stranger's name that was made to mean this machine.

        That counts where nothing else keeps strangers out, and no proxy has a name of its own.
        """
        settings = self._face.settings
        alone = settings.on_loopback and not settings.proxy_networks
        if b"origin" not in told or not alone or not self._face.runtime.accounts.open:
            return False
        return not _is_local(told.get(b"host", b"").decode("latin-1"))

    def _allowed(self, origin: bytes | None) -> bytes | None:
        """Return which origin may read the answer, None for no other than its own."""
        if "*" in self._origins:
            return b"*"
        known = origin is not None and origin.decode("latin-1") in self._origins
        return origin if known else None


TELLING = frozenset((b"origin", b"host", b"sec-fetch-site"))


def _is_local(host: str) -> bool:
    """Whether a host is an address, or a name that no stranger can have."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name.rpartition(".")[2] == "localhost" or bool(ip_address(name))
    except ValueError:
        return False


def _is_foreign(path: str, told: dict[bytes, bytes]) -> bool:
    """Whether a page of another site has sent this."""
    origin = told.get(b"origin")
    if origin is not None:
        return origin.partition(b"://")[2] != told.get(b"host")
    return told.get(b"sec-fetch-site") == b"cross-site" and not path.startswith(PAGES)


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
