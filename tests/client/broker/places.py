"""Brokers for a client to connect to: the real server in this loop, and one that does as told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import pytest
from tests.support.vibe import FORMS, Message, Reader, encoded

from tandemq.broker import BrokerBuilder, BrokerServer, ReconnectPolicy
from tandemq.client.broker import Broker
from tandemq.wires.sniff import Wire

BOTH = pytest.mark.parametrize("wire", [Wire.JSON, Wire.BINARY], ids=lambda wire: wire.value)
QUICK = ReconnectPolicy(initial_delay=0.01, max_delay=0.01)
FAST = {"password_hash_bytes": 8192, "password_hash_rounds": 1}


def builder() -> BrokerBuilder:
    return BrokerBuilder.create().use_port(0).use_memory()


def client(port: int, wire: Wire = Wire.JSON, **options: Any) -> Broker:
    """A client that is not connected yet."""
    return Broker(f"tandemq://127.0.0.1:{port}", binary=wire is Wire.BINARY, **options)


@asynccontextmanager
async def place(
    wire: Wire = Wire.JSON, **options: Any
) -> AsyncIterator[tuple[BrokerServer, Broker]]:
    """A server, and a client that is connected to it."""
    async with builder().build() as server, client(server.port, wire, **options) as broker:
        yield server, broker


async def until(look: Callable[[], Any], what: str = "it", seconds: float = 20.0) -> Any:
    """Wait for something to become true."""
    end = asyncio.get_running_loop().time() + seconds
    while not (found := look()):
        assert asyncio.get_running_loop().time() < end, f"{what} did not happen"
        await asyncio.sleep(0.001)
    return found


class Clock:
    """The loop's clock, which the test moves; it goes on by itself, too."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        real, self._ahead = loop.time, 0.0
        patch.setattr(loop, "time", lambda: real() + self._ahead)

    async def move(self, seconds: float) -> None:
        """Let so much time pass, and let happen what is due then."""
        self._ahead += seconds
        await turns()


async def turns(count: int = 10) -> None:
    """Let the loop turn."""
    for _ in range(count):
        await asyncio.sleep(0)


class Visitor:
    """One connection that a scripted broker has accepted."""

    def __init__(
        self, wire: Wire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.wire, self.frames = wire, Reader(wire)
        self._reader, self.writer = reader, writer
        self.unread: list[Message] = []

    async def read(self) -> Message:
        """The next frame of the client.

        Raises:
            ConnectionError: there is none.
        """
        while not self.unread:
            data = await self._reader.read(1 << 16)
            if not data:
                raise ConnectionError("the client has closed")
            self.unread += self.frames.feed(data)
        return self.unread.pop(0)

    async def expect(self, type: str) -> Message:
        """The next frame, which has to be of this type."""
        found = await self.read()
        assert found["type"] == type, found
        return found

    def send(self, type: str, id: str, **members: Any) -> None:
        self.writer.write(encoded(self.wire, type, id, FORMS[self.wire], **members))

    async def welcome(self, **headers: str) -> Message:
        """Accept the client's Connect."""
        asked = await self.expect("Connect")
        self.send("ConnectAck", "any", headers=headers or None)
        return asked

    async def answer(self, type: str, **members: Any) -> Message:
        """Answer the next frame, which has to be of this type, as the reference does."""
        asked = await self.expect(type)
        own = {"Publish": "PublishAck", "Subscribe": "SubscribeAck", "Ping": "Pong"}
        kind = own.get(type, "UnsubscribeAck" if type == "Unsubscribe" else type)
        queue = {"queue": asked["queue"]} if "queue" in asked else {}
        self.send(kind, asked["id"], **queue, **members)
        return asked

    def break_off(self) -> None:
        self.writer.transport.abort()


class Script:
    """A broker that says what the test says, one visitor after the other."""

    def __init__(self, wire: Wire = Wire.JSON) -> None:
        self.wire = wire
        self.came: list[float] = []  # when somebody came, on the loop's clock
        self.port = 0
        self._visitors: asyncio.Queue[Visitor] = asyncio.Queue()
        self._all: list[Visitor] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for visitor in self._all:
            visitor.break_off()
        await self._server.wait_closed()
        await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came.append(asyncio.get_running_loop().time())
        visitor = Visitor(self.wire, reader, writer)
        self._all.append(visitor)
        self._visitors.put_nowait(visitor)

    async def next(self) -> Visitor:
        """The next one who comes."""
        async with asyncio.timeout(20):
            return await self._visitors.get()

    @asynccontextmanager
    async def joined(self, **options: Any) -> AsyncIterator[tuple[Broker, Visitor]]:
        """A client that was welcomed, and its connection as this side has it."""
        broker = client(self.port, self.wire, **options)
        coming = asyncio.create_task(broker.connect())
        visitor = await self.next()
        await visitor.welcome()
        await coming
        try:
            yield broker, visitor
        finally:
            await broker.disconnect()
