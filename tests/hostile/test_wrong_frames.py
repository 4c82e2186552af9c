"""Bytes that are no commands are answered as agreed, or close their own connection only."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable

import msgpack
import pytest
from tests.hostile.commands import COMMANDS, Lease, given
from tests.support.server import Server, figure, is_own, room
from tests.support.wire import Lost, NoAnswer, Wire, frame, packed

LARGEST = 64 << 20
MUTANTS = figure("TANDEMQ_TEST_MUTANTS", short=3_000, long=100_000)

NOT_A_COMMAND = {
    "nothing at all": b"",
    "nil": b"\xc0",
    "false": b"\xc2",
    "empty text": b"\xa0",
    "text cut off": b"\xa5abc",
    "map cut off": b"\x82\xa3cmd\xa4Ping",
    "bytes left over": msgpack.packb({"cmd": "Ping"}) + b"\x00",
    "two commands": msgpack.packb({"cmd": "Ping"}) * 2,
    "number": b"\x05",
    "true": b"\xc3",
    "text": b"\xa4Ping",
    "list": b"\x91\xa4Ping",
    "empty map": b"\x80",
    "no cmd": msgpack.packb({"queue": "q"}),
    "cmd is nil": msgpack.packb({"cmd": None}),
    "cmd is empty": msgpack.packb({"cmd": ""}),
    "reserved byte": b"\xc1",
}

LIES = {
    "list of four billion": b"\xdd\xff\xff\xff\xff",
    "map of four billion": b"\xdf\xff\xff\xff\xff",
    "text of four billion": b"\xdb\xff\xff\xff\xffabc",
    "bytes of four billion": b"\xc6\xff\xff\xff\xffabc",
    "extension of four billion": b"\xc9\xff\xff\xff\xff\x05abc",
    "lists of lists of four billion": b"\xdd\xff\xff\xff\xff" * 1_000,
    "maps of maps": b"\xdf\xff\xff\xff\xff\xa1a" * 1_000,
    "deep lists": b"\x91" * 200_000 + b"\xc0",
    "deep maps": b"\x81\xa1a" * 100_000 + b"\xc0",
    "deep lists cut off": b"\x91" * 500_000,
    "many empty maps": b"\xdd\x00\x01\x00\x00" + b"\x80" * 65_536,
    "lists as keys": b"\x81\x91\x01\x02",
    "maps as keys": b"\x81\x80\x02",
    "same key twice": b"\x82\xa3cmd\xa3abc\xa3cmd\xa4Nope",
    "text that is not UTF-8": b"\x81\xa3cmd\xa4\xff\xfe\xfd\xfc",
    "key that is not UTF-8": b"\x82\xa2\xff\xfe\x01\xa3cmd\xa4Nope",
    "half of a surrogate pair": b"\x81\xa3cmd\xa3\xed\xa0\x80",
}


@pytest.mark.parametrize("name", sorted(NOT_A_COMMAND))
def test_a_frame_that_is_no_command_is_refused_and_the_connection_goes_on(
    wire: Wire, name: str
) -> None:
    for _ in range(3):
        wire.send_raw(frame(NOT_A_COMMAND[name]))
        answer = wire.next_frame()
        assert answer["ok"] is False
        assert answer["error"] in ("Invalid command", "Invalid command format")
    assert wire.ping()


@pytest.mark.parametrize("name", sorted(LIES))
def test_a_frame_that_lies_about_its_content_costs_nothing(
    server: Server, wire: Wire, name: str
) -> None:
    server.forget_peak()
    before = server.memory()
    with server.connect() as liar:
        liar.send_raw(frame(LIES[name]))
        try:
            assert liar.next_frame()["ok"] is False
            assert liar.ping()
        except Lost:
            pass
    assert wire.ping()
    assert server.peak_memory() < before + room(48)


@pytest.mark.parametrize("depth", [50, 100])
def test_nested_data_comes_back_as_deep_as_it_was(wire: Wire, queue: str, depth: int) -> None:
    data: object = "bottom"
    for n in range(depth):
        data = [data] if n % 2 else {"d": data}
    wire.push(queue, data)
    assert wire.pull(queue)["job"]["data"] == data


@pytest.mark.parametrize("bottom", [b"\xc0", b"\xa1\xff"], ids=["plain", "odd"])
@pytest.mark.parametrize("depth", [480, 490, 500, 512, 513, 1_000, 20_000, 500_000])
def test_data_nested_beyond_reason_is_answered(
    server: Server, wire: Wire, queue: str, depth: int, bottom: bytes
) -> None:
    head = b"\x84" + b"".join(msgpack.packb(x) for x in ("cmd", "PUSH", "queue", queue))
    head += msgpack.packb("reqId") + msgpack.packb("deep") + msgpack.packb("data")
    with server.connect() as digger:
        digger.send_raw(frame(head + b"\x91" * depth + bottom))
        try:
            accepted = digger.next_answer()["ok"]
            assert wire.counts(queue) == ({"waiting": 1} if accepted else {})
            assert digger.ping()
        except Lost:
            assert not is_own(), "well-framed data need not close a connection"
    with server.connect() as taker:
        taker.send_raw(packed({"cmd": "PULL", "queue": queue, "reqId": "r"}))
        assert receive_undecoded(taker), "answered or closed"
    assert wire.ping()


def receive_undecoded(wire: Wire) -> bool:
    """Read one whole frame without looking inside; also true when the connection is closed."""
    wire.socket.settimeout(20)
    try:
        head = wire.socket.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            return True
        left = int.from_bytes(head, "big")
        while left and (chunk := wire.socket.recv(min(left, 1 << 16))):
            left -= len(chunk)
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("size", [LARGEST + 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_frame_announced_too_large_is_refused_and_closes_its_connection(
    server: Server, wire: Wire, size: int
) -> None:
    with server.connect() as bad:
        bad.send_raw(struct.pack(">I", size))
        answer = bad.next_frame()
        assert answer["ok"] is False
        assert answer["error"] == f"Frame too large: {size} bytes exceeds maximum {LARGEST}"
        assert bad.closed_within(5)
    assert wire.ping()


@pytest.mark.slow
def test_a_frame_of_the_largest_size_is_read(server: Server, wire: Wire) -> None:
    with server.connect(timeout=60) as big:
        big.send_raw(frame(b"\xc0" + bytes(LARGEST - 1)))
        assert big.next_frame()["error"] == "Invalid command format"
        assert big.ping()
    assert wire.ping()


@pytest.mark.parametrize(
    "greeting",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /jobs HTTP/1.1\r\nHost: x\r\n\r\n{}",
        bytes.fromhex("160301006c010000680303") + bytes(100),
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\xff" * 64,
    ],
    ids=["http get", "http post", "tls", "ssh", "ones"],
)
def test_a_client_of_another_protocol_is_told_to_go(
    server: Server, wire: Wire, greeting: bytes
) -> None:
    """It may be answered in its own words or in ours, but not left waiting."""
    with server.connect() as stranger:
        stranger.send_raw(greeting)
        stranger.socket.settimeout(30)
        try:
            while stranger.socket.recv(65_536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            pytest.fail("neither answered nor closed")
    assert wire.ping()


def test_ten_thousand_empty_frames_are_answered_one_by_one(server: Server, wire: Wire) -> None:
    with server.connect() as empty:
        for _ in range(100):
            empty.send_raw(frame(b"") * 100)
            for _ in range(100):
                assert empty.next_frame()["error"] == "Invalid command format"
    assert wire.ping()


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 10, 20])
def test_a_frame_that_breaks_off_leaves_nothing_behind(
    server: Server, wire: Wire, queue: str, cut: int
) -> None:
    whole = packed({"cmd": "PUSH", "queue": queue, "data": "x" * 100, "reqId": "r"})
    for close in ("close", "reset"):
        broken = server.connect()
        broken.send_raw(whole[:cut])
        getattr(broken, close)()
    assert wire.ping()
    assert wire.counts(queue) == {}


def test_frames_cut_anywhere_and_glued_together_are_understood(
    server: Server, wire: Wire, queue: str
) -> None:
    dice = random.Random(8)
    push = {"cmd": "PUSH", "queue": queue}
    numbered = [wire.number({**push, "data": "x" * dice.randrange(300)}) for _ in range(300)]
    stream = b"".join(packed(command) for _, command in numbered)
    while stream:
        size = dice.choice([1, 2, 3, 5, 50, 500])
        wire.send_raw(stream[:size])
        stream = stream[size:]
    assert all(wire.receive(req_id)["ok"] for req_id, _ in numbered)
    assert wire.counts(queue) == {"waiting": 300}


def test_random_frames_are_answered_or_close_their_connection(server: Server, wire: Wire) -> None:
    dice = random.Random(20_250_101)
    before = server.memory()

    def rubbish() -> bytes:
        return dice.randbytes(dice.randrange(1, 200))

    send_in_groups(server, wire, rubbish, MUTANTS)
    assert server.memory() < before + room(48)


def test_commands_with_a_few_wrong_bytes_are_answered_or_close_their_connection(
    server: Server, wire: Wire, queue: str
) -> None:
    dice = random.Random(20_250_102)
    lease = Lease("j", "t")
    whole = [
        msgpack.packb({"cmd": cmd, **given(fields(queue, lease)), "reqId": "r"})
        for cmd, fields in COMMANDS.items()
        if cmd not in ("PULL", "PULLB")  # a mutant may ask to wait for a minute
    ]
    before = server.memory()

    def mutant() -> bytes:
        body = bytearray(dice.choice(whole))
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(body))
            match dice.randrange(4):
                case 0:
                    body[at] = dice.randrange(256)
                case 1:
                    del body[at : at + dice.randrange(1, 5)]
                case 2:
                    body[at:at] = dice.randbytes(dice.randrange(1, 5))
                case _:
                    body[at:at] = body[dice.randrange(len(body)) :][:20]
            body = body or bytearray(b"\xc0")
        return bytes(body)

    send_in_groups(server, wire, mutant, MUTANTS)
    assert server.memory() < before + room(64)


def send_in_groups(server: Server, witness: Wire, make: Callable[[], bytes], count: int) -> None:
    """Send frames in groups, each on a fresh connection that must answer a ping or be closed.

    Its first frame is good, so that it is known what it speaks.
    """
    for _ in range(0, count, 50):
        bodies = [make() for _ in range(50)]
        with server.connect(timeout=15) as sender:
            assert sender.ping()
            try:
                sender.send_raw(b"".join(frame(body) for body in bodies))
                assert sender.ping()
            except Lost:
                assert not is_own(), "well-framed rubbish need not close a connection"
            except NoAnswer:
                shown = [body.hex() for body in bodies]
                pytest.fail(f"neither answered nor closed after {shown}")
        assert witness.ping()
