"""A server in this process whose clock the test moves, and its guests.

Everything that a server does by itself happens when the room lets time pass: the wall clock, the
monotonic clock and the timers of the loop go on together. Guests speak a real wire to it, over
transports that only remember.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from tests.server.offline import FakeTransport, Peer, serving, turns, until
from tests.support.vibe import Message, Reader, encoded, fits

from tandemq.engine import clock
from tandemq.server import accounts, alarm, effects, intake, meter, prometheus, runtime, undo
from tandemq.server.connections import Connection
from tandemq.server.runtime import Runtime
from tandemq.stores.base import Store
from tandemq.wires.sniff import Wire

READS_THE_CLOCK: Final = (accounts, alarm, effects, intake, meter, prometheus, runtime, undo)
FAST: Final = {"password_hash_bytes": 8192, "password_hash_rounds": 1}
ROOT: Final = {"superuser": "admin", "superuser_password": "admin-pass-1", **FAST}
MOMENT: Final = 0.01  # s; longer than whatever the server puts off for a moment only


class Clock:
    """Stands still unless it is moved; the loop's goes on, since the loop would stop with it."""

    def __init__(self) -> None:
        self.start = meter.now_ms()
        self.now = self.start  # ms
        self._loop = asyncio.get_running_loop()
        self._loop_time = self._loop.time
        self._ahead = 0.0  # s by which the loop's clock is

    @contextmanager
    def installed(self) -> Iterator[None]:
        """The server's clock is this one."""
        kept = [(module, "now_ms", module.now_ms) for module in READS_THE_CLOCK]  # type: ignore[attr-defined]
        kept.append((meter, "_monotonic", meter._monotonic))
        for module, name, _ in kept:
            setattr(module, name, lambda: self.now)
        self._loop.time = lambda: self._loop_time() + self._ahead  # type: ignore[method-assign]
        try:
            yield
        finally:
            for module, name, real in kept:
                setattr(module, name, real)
            self._loop.time = self._loop_time  # type: ignore[method-assign]

    @property
    def seconds(self) -> float:
        """Since the room was opened."""
        return (self.now - self.start) / 1000

    def move(self, ms: int) -> None:
        self.now += ms
        self._ahead += ms / 1000

    def move_loop(self, seconds: float) -> None:
        """Let pass what is too short to matter to the server's clock."""
        self._ahead += seconds


class Guest:
    """A client of one connection."""

    def __init__(
        self, room: Room, wire: Wire, address: str = "10.0.0.1", *, greets: bool = False
    ) -> None:
        """``greets`` puts it on a port for VibeMQ clients only."""
        self.room, self.wire = room, wire
        server = room.server
        self.connection = Connection(server, server.next_id(), greets=greets)
        self.transport = FakeTransport(self.connection)
        self.transport._extra["peername"] = (address, 1)
        self.unread: list[Message] = []
        self.times: list[tuple[float, str]] = []  # when each delivery came (s), and its id
        self._reader = Reader(wire)
        self._seen = 0
        room.guests.append(self)
        self.connection.connection_made(self.transport)

    # -- sending -----------------------------------------------------------------------------------

    def send(self, type: str, id: str = "r", **members: Any) -> None:
        self.send_raw(encoded(self.wire, type, id, **members))

    def send_raw(self, data: bytes) -> None:
        if not self.transport.closing:
            self.connection.data_received(data)

    async def connect(self, **headers: str) -> Message:
        return await self.ask("Connect", "c", headers=headers or None)

    async def ask(self, type: str, id: str = "r", **members: Any) -> Message:
        """Send a frame and return the next one of that id, deliveries left aside."""
        self.send(type, id, **members)
        return await self.answer(id)

    async def refused(self, type: str, id: str = "r", **members: Any) -> tuple[str, str]:
        """Ask for something that must be refused; code and text of the Error."""
        said = await self.ask(type, id, **members)
        assert said["type"] == "Error", said
        return said["errorCode"], said["errorMessage"]

    async def publish(self, queue: str, *ids: str, **members: Any) -> None:
        """Publish messages, one by one; each has to be accepted."""
        for id in ids:
            said = await self.ask("Publish", id, queue=queue, **{"payload": 1, **members})
            assert said == {"type": "PublishAck", "id": id, "queue": queue}, said

    async def subscribe(self, *queues: str) -> None:
        for queue in queues:
            said = await self.ask("Subscribe", "s", queue=queue)
            assert said == {"type": "SubscribeAck", "id": "s", "queue": queue}, said

    async def create(self, queue: str, **options: Any) -> None:
        said = await self.ask("CreateQueue", "q", queue=queue, payload=options)
        assert said == {"type": "CreateQueue", "id": "q", "queue": queue}, said

    async def info(self, queue: str) -> dict[str, Any] | None:
        said = await self.ask("QueueInfo", "i", queue=queue)
        assert said["type"] == "QueueInfo", said
        found: dict[str, Any] | None = said.get("payload")
        return found

    async def waiting(self, queue: str) -> int:
        """How many messages wait in a queue."""
        found = await self.info(queue)
        return found["messageCount"] if found else 0

    def ack(self, *ids: str) -> None:
        for id in ids:
            self.send("Ack", id)

    async def break_off(self) -> None:
        """The connection is gone, without a word."""
        self.transport.close()
        await turns(2)

    # -- receiving ---------------------------------------------------------------------------------

    def read(self) -> list[Message]:
        """Look at what was written meanwhile; all that was not read yet."""
        data = bytes(self.transport.written[self._seen :])
        self._seen += len(data)
        for frame in self._reader.feed(data):
            self.unread.append(frame)
            if frame["type"] == "Deliver":
                self.times.append((self.room.clock.seconds, frame["id"]))
        return self.unread

    async def _wait_for(self, look: Callable[[Message], bool]) -> Message:
        def found() -> Message | None:
            self.room.moment()
            frame = next(filter(look, self.read()), None)
            assert frame or self.alive, f"the connection was closed; unread {self.unread}"
            return frame

        await turns(2)
        frame = await until(found, f"a frame for {self.wire.value}, unread {self.unread}")
        assert frame is not None
        self.unread.remove(frame)
        return frame

    async def answer(self, id: str) -> Message:
        """The next frame of an id that is no delivery; for a Connect, that which answers it."""
        return await self._wait_for(lambda frame: frame["type"] != "Deliver" and frame["id"] == id)

    async def expect(self, type: str, id: str = "*", **members: Any) -> Message:
        """The next frame, which has to be this one."""
        got = await self._wait_for(lambda _: True)
        assert fits({"type": type, "id": id, **members}, got), got
        return got

    async def delivered(self) -> list[str]:
        """The ids of all that was delivered and not looked at yet."""
        await self.room.settle()
        found = [frame["id"] for frame in self.read() if frame["type"] == "Deliver"]
        self.unread = [frame for frame in self.unread if frame["type"] != "Deliver"]
        return found

    async def silence(self) -> None:
        """Nothing came."""
        await self.room.settle()
        assert self.read() == []

    @property
    def alive(self) -> bool:
        return not self.transport.closing

    async def closed(self) -> None:
        await until(lambda: self.transport.closing, "the end of the connection")
        self.read()


class Room:
    """The server, its clock and everybody who speaks to it."""

    def __init__(self, server: Runtime, clock: Clock, wire: Wire) -> None:
        self.server, self.clock, self.wire = server, clock, wire
        self.engine, self.counters = server.engine, server.engine.counters
        self.guests: list[Guest] = []

    def stranger(self, wire: Wire | None = None, address: str = "10.0.0.1") -> Guest:
        """Somebody who has not said anything yet."""
        return Guest(self, wire or self.wire, address)

    async def guest(self, wire: Wire | None = None, **headers: str) -> Guest:
        """Somebody whose Connect was accepted."""
        guest = self.stranger(wire)
        said = await guest.connect(**headers)
        assert said["type"] == "ConnectAck", said
        return guest

    async def many(self, count: int) -> list[Guest]:
        return [await self.guest() for _ in range(count)]

    async def user(self, name: str, **granted: Iterable[str]) -> Guest:
        """A user whose password is its name, logged in; what is granted, by pattern."""
        admin = await self.admin()
        said = await admin.ask("AdminCreateUser", payload={"username": name, "password": name})
        assert said["type"] == "AdminCreateUser", said
        for pattern, held in granted.items():
            await admin.ask("AdminGrantPermission", payload=grant(name, pattern, *held))
        return await self.guest(authUsername=name, authPassword=name)

    async def admin(self) -> Guest:
        return await self.guest(authUsername="admin", authPassword="admin-pass-1")

    def worker(self) -> Peer:
        """A client of the job queue's wire."""
        return Peer(self.server)

    @property
    def in_flight(self) -> int:
        """Deliveries that are not settled, each copy of a fan-out counted."""
        return sum(sum(1 for _ in who.everything()) for who in self.engine.subscribers.values())

    @property
    def stored(self) -> int:
        """Messages that the server has."""
        return len(self.engine.messages)

    # -- time --------------------------------------------------------------------------------------

    def moment(self) -> None:
        self.clock.move_loop(MOMENT)

    async def settle(self) -> None:
        """Let everything happen that happens at once, or in a moment."""
        for _ in range(3):
            self.moment()
            await turns(4)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and the server do everything in it that is due, at its moment."""
        await self.settle()
        self._read()
        end = self.clock.now + round(seconds * 1000)
        while self.clock.now < end:
            wake = clock.next_wake(self.engine) or end
            self.clock.move(min(max(wake - self.clock.now, 1), end - self.clock.now, 1000))
            self.server.begin()
            await turns(4)
            self._read()
        await self.settle()
        self._read()

    def _read(self) -> None:
        for guest in self.guests:
            guest.read()


@asynccontextmanager
async def room(wire: Wire, store: Store | None = None, **settings: Any) -> AsyncIterator[Room]:
    """A server for guests of that wire, who may be silent for ever unless it is told otherwise."""
    now = Clock()
    with now.installed():
        async with serving(store, **{"idle_timeout": 0, **settings}) as server:
            yield Room(server, now, wire)


def grant(name: str, pattern: str, *operations: str) -> dict[str, Any]:
    """What AdminGrantPermission needs."""
    return {"username": name, "queuePattern": pattern, "operations": list(operations)}
