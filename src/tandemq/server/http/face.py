"""What every route has: the runtime behind it, who asks, and how an answer becomes JSON.

A request in JSON takes the way of the bunqueue wire: it becomes a frame of that wire, which is read
and judged like any other, and the frame that answers becomes JSON. So both have the same fields,
checks and words.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response

from tandemq.commands.all import COMMANDS
from tandemq.commands.call import Call
from tandemq.commands.table import ABSENT, Command, Permission
from tandemq.model import errors as e
from tandemq.model.errors import TandemqError, Unauthenticated
from tandemq.server.guests import Guest
from tandemq.server.http import forms, jsontext
from tandemq.server.http.origin import Origins
from tandemq.server.meter import now_ms
from tandemq.server.runtime import Runtime
from tandemq.wires.bunqueue.session import Refusal, Session, read
from tandemq.wires.framing import PREFIX
from tandemq.wires.wording import in_bunqueue

JSON: Final = "application/json"
REFUSED: Final = 400  # where a route says nothing else
STATUS: Final[dict[type[TandemqError], int]] = {
    e.BadCredentials: 401,
    e.Unauthenticated: 401,
    e.Malformed: 400,
    e.NotAuthorized: 403,
    e.Forbidden: 403,
    e.FrameTooLarge: 413,
    e.RateLimited: 429,
    e.Busy: 503,
    e.Overloaded: 503,
    e.ShuttingDown: 503,
    e.StorageFailed: 503,
    e.MemoryFull: 503,
}

_wire = Session()


class Caller(Guest):
    """Who sent a request: it may do what it has proved to be allowed to."""


class Face:
    """The server, as routes see it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.settings = runtime.settings
        self.origins = Origins(runtime.settings)
        self._limited = runtime.settings.requests_per_minute > 0
        self.headers = [(b"x-content-type-options", b"nosniff")]
        if runtime.settings.cors_allowed:
            self.headers.append((b"vary", b"Origin"))
        self.common = b""  # headers as they stand in every answer of the short way
        self.good = b""  # what stands before the length of a good one
        self.commands: Any = None  # finds the command of a path, once all routes are known

    # -- who asks ------------------------------------------------------------------------------

    async def caller(
        self, request: HTTPConnection, permission: Permission, *, lasting: bool = False
    ) -> Caller:
        """Return who asks; one that has to be proved stands in the header Authorization.

        Whether a user may do something with a queue is looked at when it is asked to be done; here
        only what is no matter of queues.

        Raises:
            Unauthenticated: nothing proves who it is.
            BadCredentials: what is to prove it does not.
            NotAuthorized: only superusers may.
            Busy: too many passwords are being checked.
        """
        accounts = self.runtime.accounts
        peer = request.client
        origin = self.origins.of(request.scope)
        line = request.scope.get("state", {}).get("line")
        caller = Caller(
            self.runtime,
            f"{peer.host}:{peer.port}" if peer else "an HTTP client",
            trusted=accounts.open,
            origin=origin,
            transport=None if line is None else line.transport,
            lasting=lasting,
        )
        if line is not None:
            line.answers(caller)
        if accounts.open or permission is Permission.ANYBODY:
            if lasting:
                caller.enter()
            return caller
        await self._prove(caller, request.headers.get("authorization"))
        if lasting:
            caller.enter()
        if permission is Permission.SUPERUSER and not caller.trusted:
            raise e.NotAuthorized("Superuser access required.")
        return caller

    async def _prove(self, caller: Caller, given: str | None) -> None:
        """Let a caller be whom its credentials stand for: a token, or name and password."""
        if not given:
            raise Unauthenticated
        accounts = self.runtime.accounts
        basic = given[:6].lower() == "basic "
        proof = _basic(given[6:]) if basic else given.removeprefix("Bearer ")
        caller.identity = identity = await accounts.proven(caller.origin, proof)
        caller.trusted = accounts.may_everything(identity)

    async def nowhere(self, request: HTTPConnection) -> Response:
        """Return what is said where there is nothing; without a token not even that."""
        try:
            await self.caller(request, Permission.OPEN)
        except TandemqError as error:
            return refusal(error)
        return answer({"ok": False, "error": "Not found"}, 404)

    # -- what is asked -------------------------------------------------------------------------

    async def ask(self, request: HTTPConnection, command: str, fields: dict[str, Any]) -> Any:
        """Run a command for whoever sent a request, and return its answer, ready for JSON.

        Raises:
            TandemqError: it was refused.
        """
        row = COMMANDS[command]
        caller = await self.caller(request, row.permission)
        return await self.asked(caller, row, fields)

    async def asked(self, caller: Caller, row: Command, fields: dict[str, Any]) -> Any:
        """Run a command for a caller; the same otherwise."""
        return shown(await caller.ask(self.read(row, fields)))

    def read(self, row: Command, fields: dict[str, Any]) -> Any:
        """Return the request of a command that these fields make.

        Raises:
            TandemqError: they make none.
        """
        fields["cmd"] = row.name
        fields.pop("reqId", None)
        frame = jsontext.packed(fields)
        if len(frame) > self.settings.max_frame_bytes:
            raise e.FrameTooLarge(len(frame), self.settings.max_frame_bytes)
        found = read(frame)
        if isinstance(found, Refusal):
            raise found.error
        return found

    def before(self, row: Command) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
        """Return what makes the fields of a command of those that HTTP has, if they differ."""
        return forms.BEFORE.get(row.name)

    def after(
        self, row: Command
    ) -> Callable[[dict[str, Any], dict[str, Any], Call], dict[str, Any]] | None:
        """Return what makes the answer of HTTP of that of the command, if they differ."""
        return forms.AFTER.get(row.name)

    def too_many(self, origin: str) -> bool:
        """Count a request of an address; whether it is one too many."""
        return self._limited and not self.origins.admit(origin, now_ms())


# -- answers -------------------------------------------------------------------------------------


def shown(reply: Any) -> dict[str, Any]:
    """Return what a command has returned, as JSON has it."""
    frame = _wire.answer(reply, ABSENT)
    told: dict[str, Any] = jsontext.unpacked(memoryview(frame)[PREFIX:])
    return told


def answer(value: Any, status: int = 200) -> Response:
    """Return a value as the answer to a request."""
    return Response(jsontext.written(value), status, media_type=JSON)


def refusal(error: BaseException, status: int = REFUSED) -> Response:
    """Return the answer that tells of an error; ``status`` is that of the route for most."""
    told = answer({"ok": False, "error": in_http(error)}, status_of(error, status))
    if told.status_code == 401:
        told.headers["www-authenticate"] = "Bearer"
    return told


def in_http(error: BaseException) -> str:
    """Return what to say of an error."""
    if isinstance(error, ConnectionError):
        return in_bunqueue(e.ShuttingDown())
    if isinstance(error, (e.Unauthenticated, e.BadCredentials)):
        return "Unauthorized"
    return in_bunqueue(error)


def status_of(error: BaseException, status: int = REFUSED) -> int:
    """Return the status that tells of an error."""
    if isinstance(error, ConnectionError):
        return 503
    if not isinstance(error, TandemqError):
        return 500
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return status


async def body_of(request: Request, most: int) -> bytes:
    """Return the body of a request.

    Raises:
        FrameTooLarge: it is longer than ``most`` bytes.
        ConnectionError: the client has hung up.
    """
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > most:
        raise e.FrameTooLarge(int(announced), most)
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise e.FrameTooLarge(size, most)
            parts.append(part)
    except ClientDisconnect:
        raise ConnectionError("the client has hung up") from None
    return b"".join(parts)


def _basic(encoded: str) -> tuple[str, str]:
    try:
        name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise e.BadPassword from None
    if not colon:
        raise e.BadPassword
    return name, password
