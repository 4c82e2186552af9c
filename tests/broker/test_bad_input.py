"""Section 19 of the scenarios, and hostile input of every kind: nothing hurts anybody else."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.broker.room import Guest, room
from tests.support.vibe import FORMS, encoded, fits, framed
from tests.wires.vibemq.corpus import data, each, malformed, needed, valid

from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq.frames import MAX_MESSAGE
from tandemq.wires.vibemq.json_text import DEPTH
from tandemq.wires.vibemq.rules import LONGEST_HEADER_VALUE as LONGEST

INVALID = "INVALID_MESSAGE"
LONG_ID = "i" * 65_535
PREFIXES = 10_000


async def served(guest: Guest) -> None:
    """A guest is answered as ever."""
    assert (await guest.ask("Ping", "still?"))["type"] == "Pong"


# -- lengths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, MAX_MESSAGE + 1, 1 << 31, (1 << 32) - 1])
async def test_s_260_and_261_a_length_out_of_bounds_ends_the_connection(wire, size) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        errors = r.counters.errors
        a.send_raw(size.to_bytes(4, "big"))
        await a.closed()
        (told,) = a.unread
        assert (told["type"], told["errorCode"]) == ("Error", INVALID)
        assert r.counters.errors == errors + 1
        await served(b)


async def test_the_largest_frame_is_read(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await b.subscribe("q")
        empty = len(encoded(wire, "Publish", "m", queue="q", payload="")) - FORMS[wire].head
        text = "x" * (MAX_MESSAGE - empty)
        frame = encoded(wire, "Publish", "m", queue="q", payload=text)
        assert len(frame) - FORMS[wire].head == MAX_MESSAGE
        a.send_raw(frame)
        assert (await a.answer("m"))["type"] == "PublishAck"
        await r.settle()
        # What a delivery adds may be too much for its reader: then it is dead, not stuck.
        assert len(await b.delivered()) + r.counters.dropped == 1
        await served(b)


async def test_an_announced_length_is_not_believed(wire: Wire) -> None:
    async with room(wire, half_frame_timeout=60.0) as r:
        a, b = await r.many(2)
        a.send_raw(MAX_MESSAGE.to_bytes(4, "big") + b"{")
        assert a.connection.kept_bytes < 1_000
        await r.pass_time(59)
        assert a.alive
        await r.pass_time(2)
        assert not a.alive
        await served(b)


async def test_a_longer_limit_can_be_set(wire: Wire) -> None:
    async with room(wire, max_message_size=4 * MAX_MESSAGE) as r:
        a = await r.guest()
        await a.publish("q", "m", payload="x" * (3 * MAX_MESSAGE))


# -- types -----------------------------------------------------------------------------------------


async def test_s_265_a_type_that_is_none_is_told(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        if wire is Wire.JSON:
            a.send_raw(framed(wire, b'{"id":"t1","type":"teleport"}'))
        else:
            a.send_raw(encoded(wire, "Ping", "t1").replace(b"\x01\x0a", b"\x01\x4d", 1))
        told = await a.answer("t1")
        assert told["errorCode"] == "UNKNOWN_COMMAND"
        await served(a)


@pytest.mark.parametrize(
    "body", [b'{"id":"t2"}', b'{"id":"t2","type":null}', b'{"id":"t2","type":[]}']
)
async def test_s_265_a_type_that_is_missing_is_told(body: bytes) -> None:
    async with room(Wire.JSON) as r:
        a = await r.guest()
        a.send_raw(framed(Wire.JSON, body))
        told = await a.answer("t2")
        assert told["errorCode"] in (INVALID, "UNKNOWN_COMMAND")
        await served(a)


@pytest.mark.parametrize(
    "kind",
    ["PublishAck", "SubscribeAck", "UnsubscribeAck", "ConnectAck", "Pong", "Deliver", "Error"],
)
async def test_s_267_what_only_servers_say_is_no_command(wire: Wire, kind: str) -> None:
    async with room(wire) as r:
        a = await r.guest()
        assert await a.refused(kind, "t3", queue="q") == (
            "UNKNOWN_COMMAND",
            f"Unknown command type: {kind}",
        )
        await served(a)


async def test_nack_is_unknown_to_who_did_not_ask_for_it(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        code, _ = await a.refused("Nack", "m")
        assert code == "UNKNOWN_COMMAND"


# -- headers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "text"), [(50, None), (51, "Too many headers (51). Maximum: 50.")]
)
async def test_s_270_fifty_headers_are_enough(wire: Wire, count: int, text: str | None) -> None:
    async with room(wire) as r:
        a = await r.guest()
        headers = {f"h{n}": str(n) for n in range(count)}
        said = await a.ask("Publish", "m", queue="q", payload=1, headers=headers)
        assert (said["type"], said.get("errorMessage")) == ("Error" if text else "PublishAck", text)
        if not text:
            await a.subscribe("q")
            await a.expect("Deliver", "m", queue="q", payload=1, headers=headers)


@pytest.mark.parametrize(
    ("value", "fine"),
    [
        ("x" * LONGEST, True),
        ("x" * (LONGEST + 1), False),
        ("é" * LONGEST, True),
        ("\U0001f600" * (LONGEST // 2), True),
        ("\U0001f600" * (LONGEST // 2 + 1), False),
    ],
    ids=lambda value: str(len(value)) if isinstance(value, str) else "",
)
async def test_s_270_a_header_has_4096_units(wire: Wire, value: str, fine: bool) -> None:
    async with room(wire) as r:
        a = await r.guest()
        said = await a.ask("Publish", "m", queue="q", headers={"h": value})
        assert said["type"] == ("PublishAck" if fine else "Error")


async def test_s_270_an_empty_header_name() -> None:
    for wire in (Wire.JSON, Wire.BINARY):
        async with room(wire) as r:
            a = await r.guest()
            if wire is Wire.JSON:
                code, text = await a.refused("Ping", "p", headers={"": "v"})
                assert (code, text) == (INVALID, "Header key cannot be empty.")
            else:
                frame = encoded(wire, "Ping", "p", headers={"k": "v"})
                frame = frame.replace(b"\0\x01k", b"\0\0", 1)
                a.send_raw((len(frame) - 5).to_bytes(4, "big") + frame[4:])
                assert (await a.answer("p"))["type"] == "Pong"


async def test_s_271_a_header_of_null_is_told() -> None:
    async with room(Wire.JSON) as r:
        a = await r.guest()
        a.send_raw(framed(Wire.JSON, b'{"id":"t5","type":"Ping","headers":{"n":null}}'))
        assert (await a.answer("t5"))["errorCode"] == INVALID
        await served(a)


# -- ids -------------------------------------------------------------------------------------------


async def test_an_id_of_64_kib_is_carried_and_acknowledged(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        await a.subscribe("q")
        await a.publish("q", LONG_ID)
        assert await a.delivered() == [LONG_ID]
        a.ack(LONG_ID)
        await a.silence()
        assert r.stored == 0


async def test_an_id_that_the_other_wire_cannot_say_is_a_dead_letter() -> None:
    async with room(Wire.JSON) as r:
        p, a = await r.guest(), await r.guest(Wire.BINARY)
        await p.create("q", enableDeadLetterQueue=True)
        await a.subscribe("q")
        await p.publish("q", "i" * 65_536)
        await a.silence()
        assert await p.waiting("q.dlq") == 1
        await p.publish("q", "m")
        assert await a.delivered() == ["m"]


@pytest.mark.parametrize("id", ["", None])
async def test_an_id_is_needed(id: str | None) -> None:
    async with room(Wire.JSON) as r:
        a = await r.guest()
        a.send_raw(
            framed(Wire.JSON, b'{"id":%s,"type":"Ping"}' % (b"null" if id is None else b'""'))
        )
        await a.expect("Error", errorCode=INVALID, errorMessage="Message ID is required.")
        await served(a)


# -- acknowledgments -------------------------------------------------------------------------------


async def test_acknowledgments_of_all_that_is_not_held_change_nothing(wire: Wire) -> None:
    async with room(wire) as r:
        p, a, b = await r.many(3)
        await a.subscribe("q")
        await p.publish("q", "done", "held")
        a.ack("done", "done", "nobody's", LONG_ID)
        b.ack("held", "done")
        p.ack("held")
        await b.silence()
        assert (r.counters.acknowledged, r.in_flight, r.stored) == (1, 1, 1)
        a.send("Unsubscribe", queue="q")
        a.ack("held")  # it went back
        await r.settle()
        assert r.stored == 1


# -- payloads --------------------------------------------------------------------------------------


NO_JSON = [b"{", b"nul", b"'a'", b"[1,]", b"01", b"NaN", b'"\xff"', b'"\\ud800"', b"1 2", b"\0"]


@pytest.mark.parametrize("payload", NO_JSON, ids=repr)
async def test_a_payload_that_is_no_json_is_refused_and_nothing_ends(payload: bytes) -> None:
    async with room(Wire.BINARY) as r:
        a = await r.guest()
        code, _ = await a.refused("Publish", "m", queue="q", raw=payload)
        assert code == INVALID
        assert r.stored == 0
        await served(a)


def nested(depth: int, opening: bytes, closing: bytes) -> bytes:
    return opening * depth + b"1" + closing * depth


OBJECTS_AND_LISTS = pytest.mark.parametrize(
    ("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"]
)


@OBJECTS_AND_LISTS
async def test_a_payload_nested_too_deep_is_refused(wire, opening, closing) -> None:
    async with room(wire) as r:
        a = await r.guest()
        await a.subscribe("q")
        for depth, fine in ((DEPTH - 1, True), (DEPTH + 1, False), (DEPTH + 100, False)):
            a.send("Publish", "m", queue="q", raw=nested(depth, opening, closing))
            told = await a.answer("m")
            assert told.get("errorCode") == (None if fine else INVALID)
        assert await a.delivered() == ["m"]
        await served(a)


@OBJECTS_AND_LISTS
@pytest.mark.parametrize("depth", [1_000, 100_000])
async def test_a_payload_nested_beyond_reason_hurts_nobody(wire, depth, opening, closing) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        a.send("Publish", "m", queue="q", raw=nested(depth, opening, closing))
        assert (await a.answer("m"))["errorCode"] == INVALID
        assert r.stored == 0
        await served(b)


# -- vectors ---------------------------------------------------------------------------------------


@needed
@each(malformed("json"))
async def test_s_264_a_malformed_json_frame_hurts_nobody(vector: dict[str, Any]) -> None:
    await _survives(Wire.JSON, vector)


@needed
@each(malformed("binary"))
async def test_a_malformed_binary_frame_hurts_nobody(vector: dict[str, Any]) -> None:
    await _survives(Wire.BINARY, vector)


async def _survives(wire: Wire, vector: dict[str, Any]) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        a.send_raw(data(vector))
        await r.settle()
        for frame in a.read():
            assert fits("Error", frame["type"])
        if a.alive and not a.connection.session.mid_frame:
            a.unread.clear()
            await served(a)
        assert r.stored == 0
        await served(b)


@needed
@each(valid("json") + valid("binary"))
async def test_a_golden_frame_is_taken_as_a_whole_and_byte_by_byte(vector: dict[str, Any]) -> None:
    wire = Wire.JSON if vector["id"].startswith("json") else Wire.BINARY
    told = []
    for pieces in (False, True):
        async with room(wire) as r:
            a, b = await r.many(2)
            frame = data(vector)
            if len(frame) > 1 << 17:
                return
            for piece in [frame[n : n + 1] for n in range(len(frame))] if pieces else [frame]:
                a.send_raw(piece)
            await r.settle()
            told.append([(f["type"], f.get("errorCode")) for f in a.read()])
            await served(b)
    assert told[0] == told[1]


# -- streams ---------------------------------------------------------------------------------------


async def test_s_273_a_whole_session_may_come_byte_by_byte(wire: Wire) -> None:
    async with room(wire) as r:
        a = r.stranger()
        frames = [
            encoded(wire, "Connect", "c"),
            encoded(wire, "Subscribe", "s", queue="q"),
            encoded(wire, "Publish", "m", queue="q", payload={"a": 1}),
            encoded(wire, "Ack", "m"),
            encoded(wire, "Ping", "k"),
        ]
        for byte in b"".join(frames):
            a.send_raw(bytes((byte,)))
        await r.settle()
        types = [frame["type"] for frame in a.read()]
        assert sorted(types) == ["ConnectAck", "Deliver", "Pong", "PublishAck", "SubscribeAck"]
        assert types[:2] == ["ConnectAck", "SubscribeAck"]


async def test_s_274_a_thousand_frames_of_one_write_are_answered_in_order(wire: Wire) -> None:
    async with room(wire) as r:
        a = await r.guest()
        a.send_raw(b"".join(encoded(wire, "Ping", f"k{n}") for n in range(1_000)))
        while len(a.read()) < 1_000:
            await r.settle()
        assert [frame["id"] for frame in a.unread] == [f"k{n}" for n in range(1_000)]


async def test_s_275_random_bytes_leave_nothing_behind(wire: Wire) -> None:
    chance = random.Random(4711)
    start = encoded(wire, "Connect", "c") + encoded(wire, "Publish", "m", queue="q", payload=[1])
    async with room(wire) as r:
        b = await r.guest()
        for n in range(PREFIXES):
            guest = r.worker() if n % 2 else r.stranger()
            if n % 4 < 2:
                noise = chance.randbytes(chance.randrange(1, 40))
            else:
                spoilt = bytearray(start[: chance.randrange(1, len(start))])
                for _ in range(chance.randrange(1, 4)):
                    spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
                noise = bytes(spoilt)
            guest.send_raw(noise)
            guest.transport.close()
            if n % 500 == 499:
                await r.settle()
                r.guests[:] = [b]
        assert len(r.server.connections) == 1
        await served(b)
