"""The recorded sessions from the client's side: the recorded server speaks to our client.

What our client sends has to be what the recorded one sent, frame by frame, ids aside. That it
offers to give messages back is the one header that it has beside those, unless it is told not to.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from tests.wires.vibemq.corpus import lines, needed, sessions

from tandemq.broker import DeliveryMode, OverflowStrategy, QueueOptions
from tandemq.client.broker import Broker, Message, OnConflict, QueueDeclaration
from tandemq.client.errors import TandemqError
from tandemq.wires.vibemq import binary_codec, compression, json_codec
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import Kind

pytestmark = [needed, pytest.mark.timeout(60)]

# Left out: the clock of the recording, not the call, decides what is sent, or what fails.
OF_TIME: Final = {
    "b16-shutdown-reconnect",
    "b17-refusals",
    "b18-rate-limit",
    "b21-handler-fails",
    "b26-sqlite-restart",
    "j16-shutdown-reconnect",
    "j17-refusals",
}
PLAYED: Final = [header for header, _ in sessions() if header["session"] not in OF_TIME]
COUNT: Final = 25

MODES = {"".join(map(str.capitalize, m.name.split("_"))): m for m in DeliveryMode}
STRATEGIES = {"".join(map(str.capitalize, s.name.split("_"))): s for s in OverflowStrategy}
OPTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "mode": ("mode", MODES.__getitem__),
    "maxQueueSize": ("max_queue_size", int),
    "ttlMs": ("message_ttl", lambda ms: ms / 1000),
    "dlq": ("enable_dead_letter_queue", bool),
    "dlqName": ("dead_letter_queue_name", str),
    "overflow": ("overflow_strategy", STRATEGIES.__getitem__),
    "maxRetry": ("max_retry_attempts", int),
}


def options(said: dict[str, Any]) -> QueueOptions:
    """What a call of the recorded client gave a queue."""
    return QueueOptions(**{OPTIONS[k][0]: OPTIONS[k][1](value) for k, value in said.items()})


# -- the server of the recording -------------------------------------------------------------------


class Connection:
    """One that our client has opened."""

    def __init__(self, wire: str, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]):
        self.reader, self.writer = streams
        self.binary = "binary" in wire

    async def read(self) -> tuple[Frame, int]:
        """The next frame, and how it is compressed."""
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        flag = (await self.reader.readexactly(1))[0] if self.binary else 0
        body = await self.reader.readexactly(size)
        return parsed(self.binary, flag, body), flag


def parsed(binary: bool, flag: int, body: bytes) -> Frame:
    if not binary:
        found = json_codec.decode(body)
        if b'"payload":null' in body:
            found.payload = b"null"  # which the reader takes for none
        return found
    return binary_codec.decode(compression.inflate(flag, body, 1 << 24) if flag else body)


def recorded(binary: bool, event: dict[str, Any]) -> tuple[Frame, int]:
    data = bytes.fromhex(event["hex"])
    flag = data[4] if binary else 0
    return parsed(binary, flag, data[5 if binary else 4 :]), flag


def useful(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without connections that were opened for nothing: ours sees before that options are wrong."""
    began = {e["conn"] for e in events if e.get("message", {}).get("type") == "Connect"}
    return [event for event in events if event["conn"] in began]


class Player:
    """Says what the recorded server said, when it said it, and compares what our client says."""

    def __init__(self, header: dict[str, Any], events: list[dict[str, Any]], offers: bool) -> None:
        self._wire, self._events, self._offers = header["wire"], events, offers
        self._binary = "binary" in self._wire
        self._coming: asyncio.Queue[Connection] = asyncio.Queue()
        self._connections: dict[int, Connection] = {}
        self._ids: dict[str, str] = {}  # of the recording, as ours
        self._welcomed: set[int] = set()
        self.compared = 0
        self.wants: Any = None  # what the next call has to cause

    async def accept(self, *streams: Any) -> None:
        self._coming.put_nowait(Connection(self._wire, streams))  # type: ignore[arg-type]

    async def play(self) -> None:
        for event in self._events:
            number = event["conn"]
            if event.get("event") == "open":
                self.wants = "open"
                self._connections[number] = await self._coming.get()
            elif event.get("dir") == "c2s":
                await self._hear(number, event)
            elif event.get("dir") == "s2c":
                self._say(number, event)
        self.wants = "nothing"

    async def _hear(self, number: int, event: dict[str, Any]) -> None:
        expected, flag = recorded(self._binary, event)
        self.wants = expected.kind
        try:
            got, got_flag = await self._connections[number].read()
        except asyncio.IncompleteReadError:
            refused = number not in self._welcomed and expected.kind == Kind.DISCONNECT
            assert refused, f"closed instead of {event['message']}"
            return
        self._compare(expected, got)
        assert got_flag == flag
        self.compared += 1

    def _compare(self, expected: Frame, got: Frame) -> None:
        expected.id = self._ids.setdefault(expected.id, got.id)
        if expected.kind == Kind.CONNECT and self._offers:
            expected.headers = {**(expected.headers or {}), "supported-extensions": "nack"}
        payloads = [f.payload and json.loads(f.payload) for f in (expected, got)]
        assert payloads[0] == payloads[1]
        assert (expected.payload is None) == (got.payload is None)
        got.payload = expected.payload
        expected.headers, got.headers = expected.headers or None, got.headers or None
        assert got == expected

    def _say(self, number: int, event: dict[str, Any]) -> None:
        frame, flag = recorded(self._binary, event)
        if frame.kind == Kind.CONNECT_ACK:
            self._welcomed.add(number)
        frame.id = self._ids.get(frame.id, frame.id)
        algorithm = next((name for name, n in compression.FLAGS.items() if n == flag), None)
        form = binary_codec.form(True, algorithm, 0) if self._binary else json_codec.PASCAL
        self._connections[number].writer.write(form.write(frame))

    def close(self) -> None:
        for connection in self._connections.values():
            connection.writer.transport.abort()


# -- the calls of the recording --------------------------------------------------------------------

CAUSES: Final = {
    "connect": "open",
    "subscribe": Kind.SUBSCRIBE,
    "unsubscribe": Kind.UNSUBSCRIBE,
    "publish": Kind.PUBLISH,
    "disconnect": Kind.DISCONNECT,
    "createQueue": Kind.CREATE_QUEUE,
    "deleteQueue": Kind.DELETE_QUEUE,
    "queueInfo": Kind.QUEUE_INFO,
    "listQueues": Kind.LIST_QUEUES,
    "createUser": Kind.ADMIN_CREATE_USER,
    "deleteUser": Kind.ADMIN_DELETE_USER,
    "changePassword": Kind.ADMIN_CHANGE_PASSWORD,
    "grant": Kind.ADMIN_GRANT_PERMISSION,
    "revoke": Kind.ADMIN_REVOKE_PERMISSION,
    "permissions": Kind.ADMIN_GET_USER_PERMISSIONS,
    "listUsers": Kind.ADMIN_LIST_USERS,
}


class Program:
    """What the recorded client's program did, with ours."""

    def __init__(self, header: dict[str, Any], port: int, player: Player, offers: bool) -> None:
        self._binary = "binary" in header["wire"]
        self._port, self._player, self._offers = port, player, offers
        self._brokers: dict[str, Broker] = {}
        self.all: list[Broker] = []

    async def run(self, calls: list[dict[str, Any]]) -> None:
        for call in calls:
            outcome = call["outcome"]
            if isinstance(outcome, dict) and "error" in outcome:
                with pytest.raises(TandemqError) as caught:
                    await self._do(call)
                said = outcome["message"].partition(": ")[2]
                assert outcome["error"] == "QueueConflictException" or said in str(caught.value)
            else:
                self._check(call, await self._do(call))

    async def _do(self, call: dict[str, Any]) -> Any:
        if call["op"] == "connect":
            return await self._connect(call)
        await self._turn(CAUSES[call["op"]])
        broker, queue = self._brokers[call["as"]], call.get("queue", "")
        users, user = broker.users, call.get("user", "")
        does: dict[str, Callable[[], Awaitable[Any]]] = {
            "subscribe": lambda: broker.attach(self._handler(call), queue),
            "unsubscribe": lambda: broker.unsubscribe(queue),
            "publish": lambda: broker.publish(
                queue, call.get("payload"), headers=call.get("headers")
            ),
            "disconnect": lambda: broker.disconnect(grace=0.0),
            "createQueue": lambda: broker.create_queue(
                queue, options(call["options"]) if "options" in call else None
            ),
            "deleteQueue": lambda: broker.delete_queue(queue),
            "queueInfo": lambda: broker.queue_info(queue),
            "listQueues": broker.list_queues,
            "createUser": lambda: users.create(user, call["password"]),
            "deleteUser": lambda: users.delete(user),
            "changePassword": lambda: users.change_password(user, call["password"]),
            "grant": lambda: users.grant(user, call["pattern"], call["ops"]),
            "revoke": lambda: users.revoke(user, call["pattern"]),
            "permissions": lambda: users.permissions(user),
            "listUsers": users.all,
        }
        return await does[call["op"]]()

    async def _connect(self, call: dict[str, Any]) -> None:
        more: dict[str, Any] = {"compression_threshold": call.get("threshold", 1024)}
        if "comp" in call:
            more["preferred_compressions"] = tuple(name.lower() for name in call["comp"])
        if "keepAliveMs" in call:
            more["keep_alive_interval"] = call["keepAliveMs"] / 1000
        declared = {
            each["queue"]: QueueDeclaration(
                options=options(each.get("options", {})),
                on_conflict=OnConflict(each.get("onConflict", "Ignore").lower()),
            )
            for each in call.get("declare", ())
        }
        broker = Broker(
            f"vibemq://127.0.0.1:{self._port}",
            binary=self._binary,
            give_back=self._offers,
            username=call.get("user"),
            password=call.get("password"),
            auth_token=call.get("token"),
            queue_declarations=declared,
            **more,
        )
        self.all.append(broker)
        await self._turn("open")
        self._brokers[call["as"]] = await broker.connect()

    async def _turn(self, cause: Any) -> None:
        """Wait until the recording wants what the next call causes."""
        async with asyncio.timeout(20):
            while self._player.wants != cause:
                await asyncio.sleep(0.001)

    @staticmethod
    def _handler(call: dict[str, Any]) -> Callable[[Message], Awaitable[None]]:
        async def handle(message: Message) -> None:
            if "handlerMs" in call:
                await asyncio.sleep(3600)  # longer than the session

        return handle

    @staticmethod
    def _check(call: dict[str, Any], result: Any) -> None:
        expected = call["outcome"]["result"] if isinstance(call["outcome"], dict) else None
        if call["op"] == "listQueues":
            assert result == expected
        elif call["op"] == "queueInfo" and expected is not None:
            assert (result.name, result.message_count) == (
                expected["Name"],
                expected["MessageCount"],
            )
            assert (result.delivery_mode, result.max_size, result.created_at.year) == (
                expected["DeliveryMode"],
                expected["MaxSize"],
                2026,
            )


def test_the_sessions_are_there() -> None:
    assert len(PLAYED) == COUNT


@pytest.mark.parametrize("offers", [False, True], ids=["as recorded", "offers to give back"])
@pytest.mark.parametrize("header", PLAYED, ids=lambda header: header["session"])
async def test_our_client_says_what_the_recorded_one_said(
    header: dict[str, Any], offers: bool
) -> None:
    events = useful(lines(f"recorded/{header['session']}.jsonl")[1:])
    player = Player(header, events, offers)
    server = await asyncio.start_server(player.accept, "127.0.0.1", 0)
    program = Program(header, server.sockets[0].getsockname()[1], player, offers)
    playing = asyncio.create_task(player.play())
    running = asyncio.create_task(program.run(header["calls"]))
    try:
        await asyncio.gather(playing, running)
        assert player.compared > 1
    finally:
        playing.cancel()
        running.cancel()
        server.close()
        for broker in program.all:
            await broker.disconnect(grace=0.0)
        player.close()
        await asyncio.gather(playing, running, return_exceptions=True)
        await asyncio.sleep(0)
