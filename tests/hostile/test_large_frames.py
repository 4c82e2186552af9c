"""A frame as large as a frame may be, full of what is dear to build, costs little more than itself.

Such frames once took four gigabytes and twenty seconds, in which nobody else was served. Time is
not measured here: it grows with the values that are built, and these are seen in the memory.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import msgpack
import pytest
from tests.support.server import Server, figure, is_own, room
from tests.support.wire import Wire, frame

LARGEST = (64 << 20) - 1_000
FRAME = figure("TANDEMQ_TEST_FRAME", short=8 << 20, long=LARGEST)  # bytes
SMALL = (1 << 20) - 1_000

pytestmark = pytest.mark.skipif(not is_own(), reason="the reference has no such bounds")


def many(member: bytes) -> Callable[[int], bytes]:
    def made(size: int) -> bytes:
        count = size // len(member)
        return b"\xdd" + count.to_bytes(4, "big") + member * count

    return made


def one(first: bytes, letter: bytes) -> Callable[[int], bytes]:
    return lambda size: first + size.to_bytes(4, "big") + letter * size


def entries(key: bytes, count_per_entry: int = 6) -> Callable[[int], bytes]:
    def made(size: int) -> bytes:
        count = size // count_per_entry
        pairs = b"".join(key % (n & 0xFFFF) + b"\x01" for n in range(count))
        return b"\xdf" + count.to_bytes(4, "big") + pairs

    return made


DEAR: dict[str, Callable[[int], bytes]] = {
    "empty lists": many(b"\x90"),
    "empty maps": many(b"\x80"),
    "lists of a list": many(b"\x91\x90"),
    "small maps": many(b"\x81\xa0\x01"),
    "short texts": many(b"\xa2ab"),
    "numbers": many(b"\x01"),
    "undefined": many(b"\xd4\0\0"),
    "odd maps": many(b"\x81\x05\x01"),
    "a map": entries(b"\xa4%04x"),
    "bad text": one(b"\xdb", b"\xff"),
    "binary": one(b"\xc6", b"\xff"),
    "texts with long heads": many(b"\xd9\x00"),
}

# Nothing of this is accepted, so nothing of it is kept.
FIELDS: dict[str, tuple[dict[str, object], str | bytes]] = {
    "PUSH.data": ({"cmd": "PUSH", "queue": "q", "priority": "high"}, "data"),
    "PUSH.tags": ({"cmd": "PUSH", "queue": "q"}, "tags"),
    "PUSH.dependsOn": ({"cmd": "PUSH", "queue": "q"}, "dependsOn"),
    "PUSH.surplus": ({"cmd": "PUSH", "queue": ""}, "surplus"),
    "PUSH.reqId": ({"cmd": "PUSH", "queue": ""}, "reqId"),
    "PUSHB.jobs": ({"cmd": "PUSHB", "queue": "q"}, "jobs"),
    "PUSHF.jobs": ({"cmd": "PUSHF"}, "jobs"),
    "ACK.result": ({"cmd": "ACK", "id": "missing"}, "result"),
    "ACKB.ids": ({"cmd": "ACKB"}, "ids"),
    "ACKB.results": ({"cmd": "ACKB", "ids": ["missing"]}, "results"),
    "FAIL.error": ({"cmd": "FAIL", "id": "missing"}, "error"),
    "FAIL.stack": ({"cmd": "FAIL", "id": "missing"}, "stack"),
    "Update.data": ({"cmd": "Update", "id": "missing"}, "data"),
    "Update.id": ({"cmd": "Update", "data": 1}, "id"),
    "Cron.data": (
        {"cmd": "Cron", "name": "n", "queue": "q", "repeatEvery": 9**9, "priority": "high"},
        "data",
    ),
    "Cron.jobOptions": ({"cmd": "Cron", "name": "n", "queue": "q"}, "jobOptions"),
    "RetryDlq.data": ({"cmd": "RetryDlq", "queue": "q", "jobId": "missing"}, "data"),
    "RetryDlq.filter": ({"cmd": "RetryDlq", "queue": "q"}, "filter"),
    "unknown command": ({"cmd": "Nope"}, "data"),
    "no command": ({}, "cmd"),
    "odd names": ({"cmd": "PUSH", "queue": ""}, b"\x05"),
}


def body(fields: dict[str, object], name: str | bytes, raw: bytes) -> bytes:
    known = b"".join(msgpack.packb(part) for pair in fields.items() for part in pair)
    key = name if isinstance(name, bytes) else msgpack.packb(name)
    return bytes((0x81 + len(fields),)) + known + key + raw


def peak(server: Server, wire: Wire, data: bytes) -> int:
    """Bytes by which the server grew while it read and answered a frame."""
    assert wire.ping()
    server.forget_peak()
    before = server.memory()
    wire.send_raw(data)
    skip_answer(wire)
    assert wire.ping()
    return server.peak_memory() - before


def skip_answer(wire: Wire) -> None:
    """Read an answer that may repeat what nobody can read."""
    wire.socket.settimeout(60)
    left = int.from_bytes(wire.socket.recv(4, socket.MSG_WAITALL), "big")
    while left:
        left -= len(wire.socket.recv(min(left, 1 << 16)))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", DEAR)
def test_a_large_frame_takes_five_times_its_size_at_most(own_server: Server, kind: str) -> None:
    raw = DEAR[kind](FRAME)
    with own_server.connect(timeout=60) as wire:
        for field, (fields, name) in FIELDS.items():
            data = frame(body(fields, name, raw))
            assert peak(own_server, wire, data) < 5 * len(data) + room(128), field
        once = own_server.memory()
        for fields, name in FIELDS.values():
            peak(own_server, wire, frame(body(fields, name, raw)))
        assert own_server.memory() < once + room(48)


@pytest.mark.parametrize("kind", sorted(set(DEAR) - {"a map"}))
@pytest.mark.parametrize("field", ["id", "reqId", "surplus"])
def test_a_small_frame_takes_little(server: Server, kind: str, field: str) -> None:
    data = frame(body({"cmd": "GetState"}, field, DEAR[kind](SMALL)))
    with server.connect() as wire:
        assert peak(server, wire, data) < room(24)


BATCHES: dict[str, bytes] = {
    "jobs of nothing": many(b"\x80")(1 << 20),
    "jobs of dependencies": many(b"\x81\xa9dependsOn" + many(b"\xa2ab")(100_000))(FRAME),
    "jobs of tags": many(b"\x81\xa4tags" + many(b"\xa2ab")(10_000))(FRAME),
    "jobs of lists": many(b"\x81\xa4data" + many(b"\x90")(50_000))(FRAME),
    "jobs of bad text": many(b"\x81\xa4data" + many(b"\xa1\xff")(50_000))(FRAME),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BATCHES)
def test_a_large_batch_takes_little_beside_its_jobs(own_server: Server, kind: str) -> None:
    data = frame(body({"cmd": "PUSHB", "queue": "q"}, "jobs", BATCHES[kind]))
    with own_server.connect(timeout=60) as wire:
        assert peak(own_server, wire, data) < 5 * len(data) + room(128)


def test_a_connection_may_send_such_frames_again_and_again(server: Server) -> None:
    raw = DEAR["bad text"](2 << 20)
    frames = [frame(body(fields, name, raw)) for fields, name in FIELDS.values()]
    with server.connect() as wire:
        sizes = []
        for _ in range(3):
            for data in frames:
                wire.send_raw(data)
                skip_answer(wire)
            sizes.append(server.memory())
        assert wire.ping()
    assert sizes[2] < sizes[0] + room(16)
