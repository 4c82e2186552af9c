"""A peer of the broker's commands before their wire: requests are objects, answers are JSON."""

from __future__ import annotations

import itertools
import json
from typing import Any

from tests.server.offline import FakeTransport, until

from tandemq.commands.greeting import Connect
from tandemq.commands.table import BY_REQUEST
from tandemq.model.outcome import Late, Reply
from tandemq.server.connections import Connection
from tandemq.server.runtime import Runtime

FAST = {"password_hash_bytes": 8192, "password_hash_rounds": 1}
ROOT = {"superuser": "root", "superuser_password": "root-pass", **FAST}
"""Settings of a server with a superuser, whose hashes are cheap."""


def enter(headers: dict[str, str] | None = None) -> Connect:
    """The Connect of a client that sends these headers."""
    said = (headers or {}).get
    return Connect(
        token=said("authToken") or None,
        username=said("authUsername") or None,
        password=said("authPassword") or None,
    )


class Session:
    """Answers as lines of JSON: the id of the request, then what it came to."""

    mid_frame = False

    def answer(self, reply: Any, req: Any) -> bytes:
        reply = "welcome" if reply is True else reply
        shown = reply if isinstance(reply, (dict, list, str)) else None
        return json.dumps([req, "ok", shown]).encode() + b"\n"

    def refuse(self, error: BaseException, req: Any = None) -> bytes:
        return json.dumps([req, type(error).__name__, str(error)]).encode() + b"\n"

    def late(self, effect: Reply | Late) -> tuple[bytes, Any]:
        assert isinstance(effect, Late)
        refused = isinstance(effect.reply, Exception)
        return (self.refuse if refused else self.answer)(effect.reply, effect.req), effect.req


class Clerk:
    """A connection that sends requests as they are, each with an id of its own."""

    def __init__(self, runtime: Runtime, address: str = "10.0.0.1") -> None:
        self.runtime = runtime
        self.connection = Connection(runtime, runtime.next_id())
        self.connection.session = Session()  # type: ignore[assignment]
        self.transport = FakeTransport(self.connection)
        self.transport._extra["peername"] = (address, 1)
        self.connection.connection_made(self.transport)
        self._numbers = itertools.count(1)

    def send(self, *requests: Any) -> list[str]:
        """Send requests in one read; their ids."""
        for request in requests:
            request.req_id = f"r{next(self._numbers)}"  # type: ignore[assignment]
        self.runtime.received(self.connection, list(requests))
        return [str(request.req_id) for request in requests]

    @property
    def answers(self) -> dict[str, tuple[str, Any]]:
        """What was told so far, in order, by the id of the request."""
        lines = self.transport.written.decode().splitlines()
        return {req: (kind, told) for req, kind, told in map(json.loads, lines)}

    async def answer(self, req: str) -> tuple[str, Any]:
        await until(lambda: req in self.answers, f"the answer to {req}")
        return self.answers[req]

    async def ask(self, request: Any) -> tuple[str, Any]:
        (req,) = self.send(request)
        return await self.answer(req)

    async def do(self, request: Any) -> Any:
        kind, told = await self.ask(request)
        assert kind == "ok", (kind, told)
        return told

    async def refused(self, request: Any) -> str:
        kind, told = await self.ask(request)
        assert kind != "ok", told
        return f"{kind}: {told}"

    async def enter(self, user: str, password: str) -> tuple[str, Any]:
        return await self.ask(enter({"authUsername": user, "authPassword": password}))

    async def administer(self, name: str, **payload: Any) -> Any:
        """Ask for something of ``Admin...`` that must succeed."""
        row = next(row for row in BY_REQUEST.values() if row.name == f"Admin{name}")
        return await self.do(row.request(payload=payload))  # type: ignore[call-arg]

    @property
    def alive(self) -> bool:
        return not self.transport.closing


async def clerk(runtime: Runtime, user: str, password: str, address: str = "10.0.0.1") -> Clerk:
    """A connection that is that user."""
    found = Clerk(runtime, address)
    assert await found.enter(user, password) == ("ok", "welcome")
    return found


async def with_user(runtime: Runtime, name: str = "bob", **granted: list[str]) -> Clerk:
    """The superuser's connection, after it has made a user whose password is its name."""
    root = await clerk(runtime, "root", "root-pass")
    await root.administer("CreateUser", username=name, password=name)
    for pattern, held in granted.items():
        payload = {"username": name, "queuePattern": pattern, "operations": held}
        await root.administer("GrantPermission", **payload)
    return root
