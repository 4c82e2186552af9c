"""A frame that is refused leaves nothing behind: not its bytes, and not what was read of them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
from tests.hostile.commands import COMMANDS, Lease, given
from tests.server.offline import Peer, serving, turns
from tests.support.wire import frame

SIZE = 100_000  # bytes of what makes a frame large
TIMES = 3

LARGE: dict[str, Any] = {
    "bytes": b"\xff" * SIZE,
    "text": "x" * SIZE,
    "list": [b"\xff" * SIZE],
    "map": {"a": "x" * SIZE},
}
BAD_TEXT = b"\xdb" + SIZE.to_bytes(4, "big") + b"\xff" * SIZE


def with_raw(fields: dict[str, Any], name: str, raw: bytes) -> bytes:
    """The body of a request whose last field is spelled out in bytes."""
    known = b"".join(msgpack.packb(part) for pair in fields.items() for part in pair)
    return bytes((0x80 | len(fields) + 1,)) + known + msgpack.packb(name) + raw


def wrong_bodies(cmd: str) -> Iterator[bytes]:
    right = COMMANDS[cmd]("q", Lease("missing", "t"))
    for name in [*right, "surplus", "reqId"]:
        others = {k: v for k, v in given(right).items() if k != name}
        few = dict(list(others.items())[:10])
        for value in LARGE.values():
            yield with_raw({"cmd": cmd, **few}, name, msgpack.packb(value))
        yield with_raw({"cmd": cmd, **few}, name, BAD_TEXT)
        yield with_raw({"cmd": cmd, name: None}, "data", BAD_TEXT)
    yield with_raw({"cmd": cmd}, "results", msgpack.packb([1, "x" * SIZE]))


NO_COMMANDS = {
    "no command": with_raw({}, "data", BAD_TEXT),
    "unknown command": with_raw({"cmd": "Nope"}, "data", BAD_TEXT),
    "a text": BAD_TEXT,
    "a list": b"\x91" + BAD_TEXT,
    "cut off": BAD_TEXT[:-1],
    "left over": BAD_TEXT + b"\xc0",
    "reserved": b"\x91\xc1" + BAD_TEXT,
}

KEPT = {"PUSH", "PUSHB", "PUSHF", "Cron", "AddLog"}  # what is accepted stays


class Sender:
    """A peer that remembers no answers."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def refused(self, body: bytes) -> bool:
        """Send a frame; whether it was refused."""
        written = self.peer.transport.written
        self.peer.send_raw(frame(body))
        await turns(2)
        said = bytes(written[:64])
        written.clear()
        return b"\xa2ok\xc2" in said

    async def growth(self, body: bytes) -> int:
        """Bytes that stay when a frame is refused several times."""
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(TIMES):
            await self.refused(body)
        return tracemalloc.get_traced_memory()[0] - before


@pytest.fixture
def uncollected() -> Iterator[None]:
    """What goes round in a cycle stays: on a live server the collector comes once in hours."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("cmd", sorted(set(COMMANDS) - {"Auth", "RegisterWorker"}))
async def test_a_request_that_is_not_kept_stays_nowhere(cmd: str) -> None:
    async with serving() as runtime:
        sender, looked = Sender(Peer(runtime)), False
        for body in wrong_bodies(cmd):
            if await sender.refused(body) or cmd not in KEPT:
                looked = True
                assert await sender.growth(body) < SIZE, body[:200]
        sender.peer.leave()
        await turns()
    assert looked, "it refuses nothing"


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("name", sorted(NO_COMMANDS))
async def test_a_frame_that_is_no_command_stays_nowhere(name: str) -> None:
    async with serving() as runtime:
        sender = Sender(Peer(runtime))
        assert await sender.refused(NO_COMMANDS[name])
        assert await sender.growth(NO_COMMANDS[name]) < SIZE
        sender.peer.leave()
        await turns()


@pytest.mark.usefixtures("uncollected")
async def test_requests_in_the_same_read_as_a_refused_one_do_not_stay() -> None:
    large = with_raw({"cmd": "PUSH", "queue": ""}, "data", msgpack.packb("x" * SIZE))
    both = frame(b"\x81\xa3cmd\xa4Nope") + frame(large)
    async with serving() as runtime:
        sender = Sender(Peer(runtime))
        await sender.refused(large)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(TIMES):
            sender.peer.send_raw(both)
            await turns(2)
            sender.peer.transport.written.clear()
        assert tracemalloc.get_traced_memory()[0] - before < SIZE
        sender.peer.leave()
        await turns()
