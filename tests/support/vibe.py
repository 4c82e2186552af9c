"""A small blocking client of both VibeMQ wires that hides nothing.

Frames are shown as the JSON wire writes them: a dictionary with ``type``, ``id`` and whatever else
is there, the payload as the value that it stands for.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final

from tests.support.wire import Lost, NoAnswer

from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq import binary_codec, compression, json_codec
from tandemq.wires.vibemq.frames import Form, Frame
from tandemq.wires.vibemq.kinds import NAMES, number_of

Message = dict[str, Any]

BOTH: Final = (Wire.JSON, Wire.BINARY)
FORMS: Final[dict[Wire, Form]] = {
    Wire.JSON: json_codec.PASCAL,
    Wire.BINARY: binary_codec.form(),
    Wire.BINARY_1_0: binary_codec.form(flagged=False),
}
LARGEST: Final = 1 << 26  # bytes of a body that the client would inflate
ANY: Final = object()  # a member that may have any value, but has to be there


# -- frames as dictionaries ------------------------------------------------------------------------


def encoded(wire: Wire, type: str, id: str, form: Form | None = None, **members: Any) -> bytes:
    """A frame with these members; ``raw`` stands for a payload that is JSON text already."""
    kind = number_of(type)
    raw = members.pop("raw", None)
    if "payload" in members:
        raw = json.dumps(members.pop("payload"), ensure_ascii=False).encode()
    frame = Frame(type if kind is None else kind, id, payload=raw, **members)
    return (form or FORMS[wire]).write(frame)


def framed(wire: Wire, body: bytes, flag: int = 0) -> bytes:
    """A body of that wire behind its length."""
    return struct.pack(">I", len(body)) + (bytes((flag,)) if wire is Wire.BINARY else b"") + body


def shown(frame: Frame) -> Message:
    """What a frame says, members without a value left out."""
    found: Message = {"type": str(NAMES.get(frame.kind, frame.kind)), "id": frame.id}  # type: ignore[call-overload]
    payload = None if frame.payload is None else json.loads(frame.payload)
    more = {"queue": frame.queue, "headers": frame.headers or None}
    more |= {"errorCode": frame.code, "errorMessage": frame.text}
    found |= {name: value for name, value in more.items() if value is not None}
    return found if frame.payload is None else {**found, "payload": payload}


def fits(expected: Any, got: Any) -> bool:
    """Whether a frame is what was expected: "*" is any text, ``ANY`` anything that is there."""
    if expected is ANY or (expected == "*" and isinstance(got, str) and got):
        return True
    if isinstance(expected, dict) and isinstance(got, dict):
        same = expected.keys() == got.keys()
        return same and all(fits(value, got[name]) for name, value in expected.items())
    return bool(expected == got)


class Reader:
    """The frames in a stream of bytes from a server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._head = FORMS[wire].head
        self._decode = json_codec.decode if wire is Wire.JSON else binary_codec.decode
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """The frames that these bytes complete."""
        self._bytes += data
        while len(self._bytes) >= self._head:
            end = self._head + int.from_bytes(self._bytes[:4], "big")
            if len(self._bytes) < end:
                return
            flag, body = self._bytes[4], bytes(self._bytes[self._head : end])
            del self._bytes[:end]
            packed = self._wire is Wire.BINARY and flag
            yield shown(self._decode(compression.inflate(flag, body, LARGEST) if packed else body))


# -- the client ------------------------------------------------------------------------------------


class Vibe:
    """One connection, which belongs to one thread; ``timeout`` (s) is for whatever is awaited."""

    def __init__(
        self, port: int, wire: Wire, *, timeout: float = 20.0, receive_buffer: int = 0
    ) -> None:
        self.wire, self.timeout = wire, timeout
        self.unread: list[Message] = []
        self.closed = False
        self._reader = Reader(wire)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError as failure:
            self.socket.close()
            raise Lost(f"cannot connect: {failure}") from failure
        self._poll = select.poll()
        self._poll.register(self.socket, select.POLLIN)

    def __enter__(self) -> Vibe:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Go without a goodbye: the server sees a connection that broke."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # -- sending -----------------------------------------------------------------------------------

    def send(self, type: str, id: str = "r", **members: Any) -> None:
        self.send_raw(encoded(self.wire, type, id, **members))

    def send_raw(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError as failure:
            raise Lost(str(failure)) from failure

    def connect(self, **headers: str) -> Message:
        """Send a Connect and return what comes back."""
        return self.ask("Connect", "c", headers=headers or None)

    def ask(self, type: str, id: str = "r", **members: Any) -> Message:
        """Send a frame and return the next one of that id, deliveries left aside."""
        self.send(type, id, **members)
        return self.answer(id)

    def publish(self, queue: str, id: str, payload: Any = 1, **members: Any) -> None:
        """Publish a message that has to be accepted."""
        said = self.ask("Publish", id, queue=queue, payload=payload, **members)
        assert said == {"type": "PublishAck", "id": id, "queue": queue}, said

    def subscribe(self, queue: str) -> None:
        said = self.ask("Subscribe", "s", queue=queue)
        assert said["type"] == "SubscribeAck", said

    def ack(self, id: str) -> None:
        self.send("Ack", id)

    # -- receiving ---------------------------------------------------------------------------------

    def receive(self) -> Message:
        """The next frame.

        Raises:
            Lost, NoAnswer
        """
        self._wait_for(lambda: bool(self.unread))
        return self.unread.pop(0)

    def answer(self, id: str) -> Message:
        """The next frame that answers a request: of its id, or an Error without one."""

        def answers(frame: Message) -> bool:
            return frame["type"] != "Deliver" and frame["id"] == id

        self._wait_for(lambda: any(map(answers, self.unread)))
        found = next(frame for frame in self.unread if answers(frame))
        self.unread.remove(found)
        return found

    def expect(self, type: str, id: str = "*", **members: Any) -> Message:
        """The next frame, which has to be this one."""
        got = self.receive()
        assert fits({"type": type, "id": id, **members}, got), got
        return got

    def delivered(self, count: int) -> list[str]:
        """The ids of the next deliveries; they come one after the other, other frames between."""

        def ids() -> list[str]:
            return [frame["id"] for frame in self.unread if frame["type"] == "Deliver"]

        self._wait_for(lambda: len(ids()) >= count)
        found = ids()[:count]
        left = count
        for frame in list(self.unread):
            if left and frame["type"] == "Deliver":
                self.unread.remove(frame)
                left -= 1
        return found

    def quiet(self) -> None:
        """Nothing has come, and nothing comes before the answer to a Ping."""
        said = self.ask("Ping", "quiet?")
        assert said["type"] == "Pong", said
        assert self.unread == []

    def ended(self) -> None:
        """The server closes the connection; what it says before is in ``unread``."""
        self._wait_for(lambda: self.closed)

    def _wait_for(self, look: Any) -> None:
        end = time.monotonic() + self.timeout
        while not look():
            if self.closed:
                raise Lost(f"the server closed the connection; unread: {self.unread}")
            left = end - time.monotonic()
            if left <= 0:
                raise NoAnswer(f"nothing fitting came; unread: {self.unread}")
            self._read(left)

    def _read(self, seconds: float) -> None:
        """Read what is there, or comes within so many seconds."""
        if not self._poll.poll(seconds * 1000):
            return
        try:
            data = self.socket.recv(1 << 16)
        except OSError:
            data = b""
        self.closed = not data
        self.unread += self._reader.feed(data)


def joined(port: int, wire: Wire, **more: Any) -> Vibe:
    """A client whose Connect was accepted."""
    client = Vibe(port, wire, **more)
    said = client.connect()
    assert said["type"] == "ConnectAck", said
    return client
