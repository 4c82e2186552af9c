"""A server of the job wire that does what a test says, inside the test's own event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import msgpack

from tandemq.wires.framing import FrameDecoder, frame

Fields = dict[str, Any]
Answer = Callable[[Fields], "Fields | None"]


def welcome(fields: Fields) -> Fields | None:
    """Answer everything with ok; a PUSH with an id that says its data."""
    if fields["cmd"] == "PUSH":
        return {"ok": True, "id": f"id-{fields['data']}"}
    if fields["cmd"] == "PUSHB":
        return {"ok": True, "ids": [f"id-{job['data']}" for job in fields["jobs"]]}
    return {"ok": True}


def silent(*commands: str) -> Answer:
    """Answer everything but some commands; without a name, everything but Hello."""

    def answer(fields: Fields) -> Fields | None:
        quiet = fields["cmd"] in commands if commands else fields["cmd"] != "Hello"
        return None if quiet else welcome(fields)

    return answer


class Link(asyncio.Protocol):
    """One connection to the peer."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.reads: list[list[Fields]] = []  # the commands of each read
        self.transport: asyncio.Transport
        self._frames = FrameDecoder(64 << 20)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.peer.links.append(self)
        if self.peer.greeting:
            self.send_raw(self.peer.greeting)

    def data_received(self, data: bytes) -> None:
        read = [msgpack.unpackb(body) for body in self._frames.feed(data)]
        self.reads.append(read)
        for fields in read:
            answer = self.peer.answer(fields)
            if answer is not None:
                self.send({**answer, "reqId": fields["reqId"]})

    def connection_lost(self, error: Exception | None) -> None:
        self.peer.gone.append(self)

    def send(self, fields: Fields) -> None:
        self.send_raw(frame(msgpack.packb(fields)))

    def send_raw(self, data: bytes) -> None:
        self.transport.write(data)

    @property
    def commands(self) -> list[str]:
        return [fields["cmd"] for read in self.reads for fields in read]


class Peer:
    """Listens on `port` while it is entered; `answer` may be exchanged at any time."""

    def __init__(
        self, answer: Answer = welcome, *, greeting: bytes = b"", tls: ssl.SSLContext | None = None
    ) -> None:
        self.answer, self.greeting, self._tls = answer, greeting, tls
        self.links: list[Link] = []
        self.gone: list[Link] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def listen(self) -> None:
        """Accept connections, after the first time on the same port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Link(self), "127.0.0.1", self.port, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Break what stands, and accept nothing more."""
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Break every connection."""
        for link in self.links:
            link.transport.abort()

    @property
    def url(self) -> str:
        return f"tandemq://127.0.0.1:{self.port}"

    @property
    def commands(self) -> list[str]:
        return [command for link in self.links for command in link.commands]


async def until(look: Callable[[], object], what: str, within: float = 10.0) -> None:
    """Let the loop turn until something is true."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while not look():
        assert loop.time() < deadline, f"{what}: not within {within:g} s"
        await asyncio.sleep(0.005)
