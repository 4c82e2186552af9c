"""Section 13 of the scenarios: what the binary wire compresses, and what only it can say."""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.room import ROOT, Guest, Room, grant, room
from tests.support.vibe import BOTH, LARGEST, encoded, framed
from tests.wires.vibemq.corpus import data, each, lines, needed

from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq import binary_codec, compression
from tandemq.wires.vibemq.frames import MAX_MESSAGE, Frame
from tandemq.wires.vibemq.kinds import Kind

BINARY = Wire.BINARY
FLAGS = compression.FLAGS
ALGORITHMS = [pytest.param(name, id=name) for name in compression.AVAILABLE]
COMPRESSIBLE = {"text": "x" * 2048}


async def offering(r: Room, offer: str) -> Guest:
    return await r.guest(BINARY, **{"supported-compression": offer})


def flags(guest: Guest) -> list[int]:
    """The flag bytes of all frames that were written to a guest."""
    found, written = [], bytes(guest.transport.written)
    while written:
        size = int.from_bytes(written[:4], "big")
        found.append(written[4])
        written = written[5 + size :]
    return found


@pytest.mark.parametrize(
    ("offer", "ours", "agreed"),
    [
        ("gzip,brotli", ("gzip", "brotli"), "gzip"),
        ("zstd, none", ("gzip", "brotli"), None),
        (" GZIP , brotli", ("gzip", "brotli"), "gzip"),
        ("brotli,gzip", ("gzip",), "gzip"),
        ("gzip", (), None),
        ("", ("gzip",), None),
    ],
)
async def test_s_181_to_184_the_first_that_both_know_is_agreed_on(offer, ours, agreed) -> None:
    async with room(BINARY, compression=ours, compression_threshold=1) as r:
        a = r.stranger()
        said = await a.connect(**({"supported-compression": offer} if offer else {}))
        expected = {"headers": {"negotiated-compression": agreed}} if agreed else {}
        assert said == {"type": "ConnectAck", "id": "c", **expected}
        await a.publish("q", "m", payload=COMPRESSIBLE)
        await a.subscribe("q")
        assert await a.delivered() == ["m"]
        assert set(flags(a)) == {FLAGS[agreed] if agreed else 0}


@pytest.mark.skipif("brotli" not in compression.AVAILABLE, reason="brotli is an extra")
async def test_s_183_brotli_however_it_is_written() -> None:
    async with room(BINARY) as r:
        said = await r.stranger().connect(**{"supported-compression": " BROTLI , gzip"})
        assert said["headers"] == {"negotiated-compression": "brotli"}


@pytest.mark.parametrize("name", ALGORITHMS)
async def test_s_185_bodies_are_compressed_from_the_threshold_on(name: str) -> None:
    async with room(BINARY) as r:
        a = await offering(r, name)
        await a.subscribe("q")
        for size, flag in ((1023, 0), (1024, FLAGS[name])):
            empty = binary_codec.encode(Frame(Kind.DELIVER, "m", "q", b'""'))
            await a.publish("q", "m", payload="x" * (size - len(empty)))
            await a.delivered()
            assert flags(a)[-2 if flags(a)[-1] == 0 and flag else -1] in (0, flag)
            assert sorted(set(flags(a))) == sorted({0, flag})


@pytest.mark.parametrize("name", ALGORITHMS)
async def test_s_186_peers_with_and_without_compression_understand_each_other(name: str) -> None:
    async with room(BINARY) as r:
        packing = await offering(r, name)
        plain = [await r.guest(each) for each in (*BOTH, Wire.BINARY_1_0)]
        form = binary_codec.form(True, name, 1024)
        for n, reader in enumerate(plain):
            await reader.subscribe(f"q{n}")
            frame = encoded(BINARY, "Publish", "m", form, queue=f"q{n}", payload=COMPRESSIBLE)
            assert frame[4] == FLAGS[name]
            packing.send_raw(frame)
            assert (await packing.answer("m"))["type"] == "PublishAck"
            await reader.expect("Deliver", "m", queue=f"q{n}", payload=COMPRESSIBLE)
        await packing.subscribe("back")
        await plain[0].publish("back", "m", payload=COMPRESSIBLE)
        await packing.expect("Deliver", "m", queue="back", payload=COMPRESSIBLE)


@pytest.mark.parametrize("name", ALGORITHMS)
async def test_s_187_a_flag_that_was_not_agreed_on_is_read_after_a_login_only(name: str) -> None:
    async with room(BINARY) as r:
        frame = encoded(BINARY, "Ping", "k", binary_codec.form(True, name, 1))
        a = await r.guest()
        a.send_raw(frame)
        await a.expect("Pong", "k")
        stranger = r.stranger()
        stranger.send("Ping", "k")
        await stranger.expect("Pong", "k")
        stranger.send_raw(frame)
        await stranger.closed()


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("size", [MAX_MESSAGE + 1, 1 << 24, LARGEST])
async def test_s_188_and_189_what_grows_beyond_the_limit_ends_its_connection(name, size) -> None:
    async with room(BINARY) as r:
        a, b = await r.many(2)
        bomb = compression.deflate(name, b"\0" * size)
        assert len(bomb) < MAX_MESSAGE
        a.send_raw(framed(BINARY, bomb, FLAGS[name]))
        await a.closed()
        assert a.unread[-1]["errorCode"] == "INVALID_MESSAGE"
        assert (await b.ask("Ping", "k"))["type"] == "Pong"


@pytest.mark.parametrize("flag", [1, 2])
@pytest.mark.parametrize("body", [b"", b"garbage", b"\x1f\x8b", b"\x1f\x8b\x08" + b"\0" * 50])
async def test_s_190_garbage_under_a_flag_ends_its_connection(flag: int, body: bytes) -> None:
    async with room(BINARY) as r:
        a, b = await r.many(2)
        a.send_raw(framed(BINARY, body, flag))
        await a.closed()
        assert (await b.ask("Ping", "k"))["type"] == "Pong"


@pytest.mark.parametrize("offer", ["", "gzip"])
async def test_s_191_no_frame_is_longer_than_what_real_clients_read(offer: str) -> None:
    async with room(BINARY) as r:
        a = await offering(r, offer)
        for n in range(10_000):
            name = f"{n:05}" + "x" * 251
            a.send_raw(encoded(BINARY, "CreateQueue", "q", queue=name))
            if n % 1_000 == 999:
                await r.settle()
                a.read().clear()
        seen = len(a.transport.written)
        said = await a.ask("ListQueues", "l")
        size = int.from_bytes(a.transport.written[seen : seen + 4], "big")
        assert size <= MAX_MESSAGE
        assert (said["type"] == "ListQueues") is bool(offer)
        if not offer:
            assert said["errorCode"] == "SERVER_ERROR"


async def test_s_192_users_are_administered_on_the_json_wire_too() -> None:
    async with room(Wire.JSON, **ROOT) as r:
        answers: list[list[Any]] = []
        for n, each_wire in enumerate(BOTH):
            s = await r.guest(each_wire, authUsername="admin", authPassword="admin-pass-1")
            name, told = f"user{n}", []
            for command, payload in [
                ("AdminCreateUser", {"username": name, "password": "x"}),
                ("AdminGrantPermission", grant(name, "q.*", "Publish")),
                ("AdminGetUserPermissions", {"username": name}),
                ("AdminChangePassword", {"username": name, "newPassword": "y"}),
                ("AdminRevokePermission", {"username": name, "queuePattern": "q.*"}),
                ("AdminGetUserPermissions", {"username": name}),
                ("AdminDeleteUser", {"username": name}),
            ]:
                said = await s.ask(command, payload=payload)
                assert said["type"] == command
                told.append(said.get("payload"))
            answers.append([str(each).replace(name, "NAME") for each in told])
            listed = (await s.ask("AdminListUsers"))["payload"]
            assert [(u["username"], u["isSuperuser"]) for u in listed] == [("admin", True)]
        assert answers[0] == answers[1]


@needed
@each(v for v in lines("vectors/binary_vectors.jsonl") if v["id"] in ("bin-122", "bin-238"))
async def test_golden_bombs(vector: dict[str, Any]) -> None:
    async with room(BINARY) as r:
        a, b = await r.many(2)
        a.send_raw(data(vector))
        await a.closed()
        assert (await b.ask("Ping", "k"))["type"] == "Pong"


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(
    ("kind", "members", "code"),
    [
        ("Publish", {"queue": "full", "payload": 1}, "QUEUE_FULL"),
        ("Publish", {"payload": 1}, "INVALID_QUEUE"),
        ("Publish", {"queue": "a b", "payload": 1}, "INVALID_MESSAGE"),
        ("CreateQueue", {"queue": "q", "payload": {"mode": 9}}, "INVALID_PAYLOAD"),
        ("AdminListUsers", {}, "UNKNOWN_COMMAND"),
        ("PublishAck", {}, "UNKNOWN_COMMAND"),
        ("Subscribe", {"queue": "missing"}, "QUEUE_NOT_FOUND"),
    ],
)
async def test_what_is_wrong_in_a_compressed_frame_is_told_as_if_it_were_plain(
    name: str, kind: str, members: dict[str, Any], code: str
) -> None:
    async with room(BINARY, auto_create=False) as r:
        a = await offering(r, name)
        await a.create("full", maxQueueSize=1, overflowStrategy=1)
        await a.publish("full", "m")
        packed = encoded(BINARY, kind, "wrong", binary_codec.form(True, name, 1), **members)
        assert packed[4] == FLAGS[name]
        a.send_raw(packed + encoded(BINARY, "Ping", "next"))
        said = await a.answer("wrong")
        assert (said["type"], said["errorCode"]) == ("Error", code)
        assert (await a.answer("next"))["type"] == "Pong"


@pytest.mark.parametrize("name", ALGORITHMS)
async def test_nothing_behind_a_frame_that_cannot_be_unpacked_is_run(name: str) -> None:
    async with room(BINARY) as r:
        a = await r.guest()
        broken = framed(BINARY, b"garbage", FLAGS[name])
        a.send_raw(broken + encoded(BINARY, "Publish", "m", queue="q", payload=1))
        await a.closed()
        assert [frame["type"] for frame in a.unread] == ["Error"]
        assert r.stored == 0
