"""A small blocking client of the bunqueue wire that hides nothing.

One `Wire` is one connection and belongs to one thread. It can send a command and read its answer
later, many commands in one write, bytes that are no command at all, and nothing.
"""

from __future__ import annotations

import itertools
import select
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import msgpack

Answer = dict[str, Any]

UNDEFINED = msgpack.ExtType(0, b"\x00")
"""What a JavaScript peer writes for a field that is not set."""


class Lost(Exception):
    """The server closed or reset the connection."""


class NoAnswer(Exception):
    """Nothing fitting arrived in time."""


class Refused(Exception):
    """The server answered `ok: false`; the text is its error."""


def wire_form(value: Any) -> Any:
    """`value` with integers beyond 32 bits as floats, the way the official clients write them."""
    whole = [value]
    todo: list[Any] = [whole]  # no recursion: what is hostile is deep
    while todo:
        held = todo.pop()
        for key, item in held.items() if isinstance(held, dict) else enumerate(held):
            if isinstance(item, (Mapping, list)):
                held[key] = dict(item) if isinstance(item, Mapping) else list(item)
                todo.append(held[key])
            elif type(item) is int and not -(2**31) <= item < 2**31:
                held[key] = float(item)
    return whole[0]


def plain_form(value: Any) -> Any:
    """`value` without undefined fields, and with whole floats as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: plain_form(item) for key, item in value.items() if item != UNDEFINED}
    if isinstance(value, list):
        return [plain_form(item) for item in value]
    return value


def frame(payload: bytes) -> bytes:
    """`payload` behind its length."""
    return struct.pack(">I", len(payload)) + payload


def packed(command: Mapping[str, Any]) -> bytes:
    """One command as a frame."""
    return frame(msgpack.packb(wire_form(command), use_bin_type=True))


class Wire:
    """A connection to 127.0.0.1:`port`; `timeout` is how long an answer may take, in seconds."""

    def __init__(self, port: int, *, timeout: float = 20.0, receive_buffer: int = 0) -> None:
        self.timeout = timeout
        self.unreadable = 0
        """Frames so far that the official Python client would drop unread."""
        self._numbers = itertools.count(1)
        self._buffer = bytearray()
        self._answers: dict[Any, Answer] = {}
        self._frames: list[Any] = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._poll = select.poll()
        self._poll.register(self.socket, select.POLLIN)
        try:
            if receive_buffer:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.settimeout(timeout)
            self.socket.connect(("127.0.0.1", port))
        except BaseException as failure:
            self.socket.close()
            if isinstance(failure, OSError):
                raise Lost(f"cannot connect: {failure}") from failure
            raise

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Sending

    def send_raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        try:
            self.socket.sendall(data)
        except OSError as failure:
            raise Lost(str(failure)) from failure

    def number(self, command: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """A fresh request id, and `command` with it."""
        req_id = f"r{next(self._numbers)}"
        return req_id, {**command, "reqId": req_id}

    def send(self, cmd: str, **fields: Any) -> str:
        """Send a command without waiting; returns the request id to `receive` later."""
        return self.send_all([{"cmd": cmd, **fields}])[0]

    def send_all(self, commands: Iterable[Mapping[str, Any]]) -> list[str]:
        """Send many commands in one write; returns their request ids."""
        numbered = [self.number(command) for command in commands]
        self.send_raw(b"".join(packed(command) for _, command in numbered))
        return [req_id for req_id, _ in numbered]

    # Receiving

    def receive(self, req_id: Any, *, timeout: float | None = None) -> Answer:
        """The answer to `req_id`, whatever arrives before it."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while req_id not in self._answers:
            self._read(deadline)
        return self._answers.pop(req_id)

    def receive_all(self, req_ids: Iterable[str]) -> list[Answer]:
        return [self.receive(req_id) for req_id in req_ids]

    def next_frame(self, *, timeout: float | None = None) -> Any:
        """The next frame that answers no numbered request of this client."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while not self._frames:
            self._read(deadline)
        return self._frames.pop(0)

    def next_answer(self, *, timeout: float | None = None) -> Answer:
        """The next answer to anything, also one that names no request.

        A server that could not read a frame cannot repeat the id inside.
        """
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while not self._answers and not self._frames:
            self._read(deadline)
        return self._frames.pop(0) if self._frames else self._answers.popitem()[1]

    def answered(self, req_id: str) -> bool:
        """Whether the answer to `req_id` has arrived; reads what is there, waits for nothing."""
        try:
            while req_id not in self._answers:
                self._read(time.monotonic())
        except NoAnswer:
            return False
        return True

    def closed_within(self, seconds: float) -> bool:
        """Whether the server closes this connection in that time; swallows what it says before."""
        deadline = time.monotonic() + seconds
        try:
            while True:
                self._read(deadline)
        except Lost:
            return True
        except NoAnswer:
            return False

    def _read(self, deadline: float) -> None:
        """Read once and sort the complete frames."""
        left = max(0.0, deadline - time.monotonic())
        if not self._poll.poll(left * 1000):
            raise NoAnswer("nothing arrived")
        try:
            chunk = self.socket.recv(1 << 18)
        except OSError as failure:
            raise Lost(str(failure)) from failure
        if not chunk:
            raise Lost("closed by the server")
        self._buffer += chunk
        self._sort_frames()

    def _decoded(self, body: bytes) -> Any:
        """Read a frame as the official Python client does, and one that it cannot read anyhow."""
        try:
            return msgpack.unpackb(body, raw=False)
        except ValueError:
            self.unreadable += 1
            return msgpack.unpackb(
                body,
                raw=False,
                strict_map_key=False,
                unicode_errors="replace",
                object_pairs_hook=lambda pairs: {
                    key if isinstance(key, str) else repr(key): value for key, value in pairs
                },
            )

    def _sort_frames(self) -> None:
        start = 0
        while len(self._buffer) - start >= 4:
            (length,) = struct.unpack_from(">I", self._buffer, start)
            end = start + 4 + length
            if len(self._buffer) < end:
                break
            answer = plain_form(self._decoded(bytes(self._buffer[start + 4 : end])))
            req_id = answer.get("reqId") if isinstance(answer, dict) else None
            if isinstance(req_id, str):
                self._answers[req_id] = answer
            else:
                self._frames.append(answer)
            start = end
        del self._buffer[:start]

    # Both

    def ask(self, cmd: str, *, patience: float | None = None, **fields: Any) -> Answer:
        """Send a command and return its answer, whether ok or not.

        `patience` is how long the answer may take (`timeout` belongs to the command).
        """
        return self.receive(self.send(cmd, **fields), timeout=patience)

    def do(self, cmd: str, **fields: Any) -> Answer:
        """As `ask`, and raise Refused unless the answer is ok."""
        answer = self.ask(cmd, **fields)
        if answer.get("ok") is not True:
            raise Refused(f"{cmd}: {answer.get('error')}")
        return answer

    def do_all(self, commands: Iterable[Mapping[str, Any]], *, window: int = 40) -> list[Answer]:
        """Send all commands, at most `window` unanswered at a time, and return all answers."""
        answers: list[Answer] = []
        waiting: list[str] = []
        batch: list[Mapping[str, Any]] = []
        for command in commands:
            batch.append(command)
            if len(batch) == window:
                answers += self.receive_all(waiting)
                waiting = self.send_all(batch)
                batch = []
        answers += self.receive_all(waiting)
        answers += self.receive_all(self.send_all(batch) if batch else [])
        return answers

    # The few commands that every test needs

    def push(self, queue: str, data: Any = None, **options: Any) -> str:
        return str(self.do("PUSH", queue=queue, data=data, **options)["id"])

    def pull(self, queue: str, *, owner: str = "worker", **options: Any) -> Answer:
        """Take a job under a lease; the answer has `job` (None if there was none) and `token`."""
        return self.do("PULL", queue=queue, owner=owner, **options)

    def state(self, job_id: str) -> str:
        return str(self.do("GetState", id=job_id)["state"])

    def states(self, job_ids: Iterable[str]) -> list[str]:
        asked = ({"cmd": "GetState", "id": job_id} for job_id in job_ids)
        return [str(answer["state"]) for answer in self.do_all(asked)]

    def counts(self, queue: str) -> dict[str, int]:
        """Jobs by state, states without jobs left out."""
        counts = self.do("GetJobCounts", queue=queue)["counts"]
        return {state: count for state, count in counts.items() if count}

    def jobs(self, queue: str, state: str | None = None) -> list[dict[str, Any]]:
        """Every job of a queue, or every job in one state, however many pages that takes."""
        found: list[dict[str, Any]] = []
        while True:
            page = self.do(
                "GetJobs", queue=queue, state=state or UNDEFINED, offset=len(found), limit=1000
            )["jobs"]
            found += page
            if len(page) < 1000:
                return found

    def ping(self) -> bool:
        return bool(self.do("Ping")["data"]["pong"])

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Close without a goodbye: the peer sees a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
