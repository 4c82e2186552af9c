"""A runtime without sockets: transports that only remember, and stores that wait to be told."""

from __future__ import annotations

import asyncio
import itertools
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgpack
from tests.support.wire import frame, packed, plain_form

from tandemq.config import Settings
from tandemq.server.connections import Connection
from tandemq.server.runtime import Runtime
from tandemq.stores.base import Batch, Store, StoreFailed
from tandemq.stores.memory import MemoryStore

T = TypeVar("T")
Answer = dict[str, Any]
PATIENCE = 30.0  # s; nothing here takes long, but machines are sometimes busy


async def until(look: Callable[[], T], what: str) -> T:
    """Let the loop turn until something is true, and return that."""
    end = time.monotonic() + PATIENCE
    while not (value := look()):
        assert time.monotonic() < end, f"{what}: not within {PATIENCE:g} s, last seen {value!r}"
        await asyncio.sleep(0.001)
    return value


async def turns(count: int = 5) -> None:
    """Let everything happen that needs no waiting."""
    for _ in range(count):
        await asyncio.sleep(0)


class GatedStore(MemoryStore):
    """A store that survives its server, holds batches at a gate, and fails when told to."""

    persistent = True

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Batch] = []
        self.begun = 0  # batches that arrived at the gate
        self.failure: StoreFailed | None = None
        self.unreadable = False
        self._allowed: float = float("inf")
        self._gate = threading.Condition()

    def close_gate(self) -> None:
        with self._gate:
            self._allowed = 0

    def open_gate(self) -> None:
        with self._gate:
            self._allowed = float("inf")
            self._gate.notify_all()

    def let_one_pass(self) -> None:
        with self._gate:
            self._allowed += 1
            self._gate.notify_all()

    def fail(self, text: str = "disk full") -> None:
        self.failure = StoreFailed(text, disk_full=True)

    def recover(self) -> None:
        self.failure = None

    def commit(self, batch: Batch) -> None:
        with self._gate:
            self.begun += 1
            assert self._gate.wait_for(lambda: self._allowed > 0, PATIENCE), (
                "nobody opened the gate"
            )
            self._allowed -= 1
        if self.failure is not None:
            raise self.failure
        super().commit(batch)
        self.batches.append(batch)

    def fetch(self, seqs: Iterable[int]) -> list[Any]:
        if self.unreadable:
            raise StoreFailed("cannot be read")
        return super().fetch(seqs)

    @property
    def rows(self) -> list[Any]:
        return list(self.load())


class FakeTransport(asyncio.Transport):
    """What a connection writes is kept; a peer that does not read lets it pile up."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self.written = bytearray()
        self.unread = 0
        self.peer_reads = True
        self.reading = True
        self.closing = False
        self.aborted = False
        self._high = 1 << 16
        self._paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 1 << 16 if high is None else high

    def get_write_buffer_size(self) -> int:
        return self.unread

    def write(self, data: Any) -> None:
        assert not self.closing, "written after the end"
        self.written += data
        if not self.peer_reads:
            self.unread += len(data)
            if self.unread > self._high and not self._paused:
                self._paused = True
                self._protocol.pause_writing()

    def read_all(self) -> None:
        """The peer reads again."""
        self.peer_reads, self.unread = True, 0
        if self._paused:
            self._paused = False
            self._protocol.resume_writing()

    def pause_reading(self) -> None:
        assert self.reading, "paused twice"
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading, "resumed twice"
        self.reading = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.aborted = True
        self.close()


class Peer:
    """A client of one connection: sends without waiting, finds answers by their request id."""

    def __init__(self, runtime: Runtime) -> None:
        self.connection = Connection(runtime, runtime.next_id())
        self.transport = FakeTransport(self.connection)
        self._numbers = itertools.count(1)
        self._seen = 0
        self.answers: dict[Any, Answer] = {}
        self.order: list[Any] = []
        self.others: list[Answer] = []  # answers without a request id
        self.connection.connection_made(self.transport)

    def send_raw(self, data: bytes) -> None:
        if not self.transport.closing:
            self.connection.data_received(data)

    def send_all(self, commands: Iterable[dict[str, Any]]) -> list[str]:
        """Several commands in one read; their request ids."""
        numbered = [{**command, "reqId": f"r{next(self._numbers)}"} for command in commands]
        self.send_raw(b"".join(packed(command) for command in numbered))
        return [command["reqId"] for command in numbered]

    def send(self, cmd: str, **fields: Any) -> str:
        return self.send_all([{"cmd": cmd, **fields}])[0]

    def _read(self) -> None:
        written = self.transport.written
        while len(written) - self._seen >= 4:
            (size,) = struct.unpack_from(">I", written, self._seen)
            start = self._seen + 4
            body = bytes(written[start : start + size])
            answer = plain_form(msgpack.unpackb(body, strict_map_key=False))
            req = answer.pop("reqId", None)
            if req is None:
                self.others.append(answer)
            else:
                self.answers[req] = answer
                self.order.append(req)
            self._seen = start + size

    def has(self, req: str) -> bool:
        self._read()
        return req in self.answers

    async def answer(self, req: str) -> Answer:
        await until(lambda: self.has(req), f"the answer to {req}")
        return self.answers[req]

    async def ask(self, cmd: str, **fields: Any) -> Answer:
        return await self.answer(self.send(cmd, **fields))

    async def do(self, cmd: str, **fields: Any) -> Answer:
        answer = await self.ask(cmd, **fields)
        assert answer.pop("ok") is True, answer
        return answer

    async def push(self, queue: str = "q", **fields: Any) -> str:
        return str((await self.do("PUSH", queue=queue, data=1, **fields))["id"])

    async def pull(self, queue: str = "q", **fields: Any) -> Answer:
        return await self.do("PULL", queue=queue, **{"owner": "w", **fields})

    async def state(self, id: str) -> str:
        return str((await self.do("GetState", id=id))["state"])

    def read_others(self) -> list[Answer]:
        self._read()
        return self.others

    async def closed(self) -> None:
        await until(lambda: self.transport.closing, "the end of the connection")

    def leave(self) -> None:
        """The peer is gone."""
        self.transport.close()


@asynccontextmanager
async def serving(store: Store | None = None, **settings: Any) -> AsyncIterator[Runtime]:
    """A runtime on a store that keeps everything, or on the given one; it is stopped at the end."""
    kept = MemoryStore() if store is None else store
    given = {"data": "offline.db" if kept.persistent else "memory", **settings}
    runtime = Runtime(Settings(**given), kept)
    runtime.start()
    try:
        yield runtime
    finally:
        if isinstance(kept, GatedStore):
            kept.open_gate()
        await runtime.stop()
        await turns()


HTTP = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
MALFORMED = frame(b"\xc0")
