"""Nothing that arrives makes a session raise, and nothing makes it hold more than it was sent.

The frames to be spoilt come from the recorded scenarios where they are at hand (TANDEMQ_SHARED,
or ``shared`` beside the repository), else from a few of each kind written down here. The mutants
are the same in every run; TANDEMQ_MUTANTS asks for another number of them.
"""

from __future__ import annotations

import gc
import json
import math
import os
import random
import tracemalloc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgpack
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.commands.desk import Desk
from tests.hostile.commands import COMMANDS, JOB, WRONG_VALUES, Lease
from tests.support.wire import UNDEFINED, frame, wire_form

from tandemq.commands.all import COMMANDS as KNOWN
from tandemq.commands.table import Request
from tandemq.wires.bunqueue.session import Refusal, Session

SHARED = Path(os.environ.get("TANDEMQ_SHARED") or Path(__file__).parents[4] / "shared")
RECORDED = SHARED / "corpus" / "bunqueue" / "open"
MUTANTS = int(os.environ.get("TANDEMQ_MUTANTS") or 200_000)
LONGEST = 4_096  # bytes of a recorded frame that is worth spoiling
SEED = 20_240_229

# -- frames to be spoilt -------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A recorded value with something in the place of each placeholder."""
    if isinstance(value, dict):
        if len(value) == 1:
            (key, inner), *_ = value.items()
            match key:
                case "$repeat":
                    return str(inner[0]) * min(50, int(inner[1]))
                case "$fill":
                    return [plain(inner[0])] * min(50, int(inner[1]))
                case "$int64":
                    return 2**40 + int(inner) % 2**20
                case "$now":
                    return 1_700_000_000_000.0
                case "$nan" | "$inf":
                    return math.nan if key == "$nan" else math.inf
                case "$bytes":
                    return bytes.fromhex(inner)
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return UNDEFINED if value == "$undef" else value


def bodies(step: dict[str, Any]) -> Iterator[bytes]:
    for command in [step.get("send"), *step.get("burst", [])]:
        if isinstance(command, dict):
            yield msgpack.packb(wire_form(plain({"reqId": "r", **command})))
    for key in ("rawFrame", "raw"):
        if isinstance(step.get(key), str):
            try:
                yield bytes.fromhex(step[key])
            except ValueError:
                continue


def written_down() -> Iterator[bytes]:
    for cmd in KNOWN:
        yield msgpack.packb({"cmd": cmd, "reqId": 1, "queue": "q", "id": "x", "groupId": "g"})
    lease = Lease("00000000-0000-7000-8000-000000000000", "token")
    for cmd, fields in COMMANDS.items():
        yield msgpack.packb(wire_form({"cmd": cmd, "reqId": 1, **fields("q", lease)}))
    for value in WRONG_VALUES.values():
        yield msgpack.packb({"cmd": "PUSHB", "queue": "q", "jobs": [{**JOB, "data": value}, value]})


@cache
def frames() -> list[bytes]:
    """Different bodies of frames, short ones first."""
    found = set(written_down())
    for file in sorted(RECORDED.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            for step in json.loads(line)["steps"]:
                found.update(bodies(step))
    return sorted((body for body in found if len(body) <= LONGEST), key=lambda b: (len(b), b))


def test_there_are_frames_of_every_command() -> None:
    seen = {
        name
        for name in KNOWN
        for body in frames()
        if msgpack.packb("cmd") + msgpack.packb(name) in body
    }
    assert seen == set(KNOWN)


# -- mutants -------------------------------------------------------------------------------------

FORMS = bytes([0xC0, 0xC1, 0xC4, 0xC7, 0xCA, 0xCB, 0xCF, 0xD3, 0xD4, 0xD9, 0xDC, 0xDD, 0xDE, 0xDF])


def spoil(body: bytearray, other: bytes, luck: random.Random) -> None:
    """One change of one kind."""
    at = luck.randrange(len(body) + 1)
    match luck.randrange(8):
        case 0 if body:  # a bit turns over
            body[at - 1] ^= 1 << luck.randrange(8)
        case 1:  # a piece is missing
            del body[at : at + luck.randrange(1, 9)]
        case 2:  # something came in between
            body[at:at] = luck.randbytes(luck.randrange(1, 9))
        case 3:  # a piece of another frame
            start = luck.randrange(len(other) + 1)
            body[at : at + luck.randrange(9)] = other[start : start + luck.randrange(40)]
        case 4 if body:  # another kind of value, and so another length
            body[at - 1] = luck.choice(FORMS)
        case 5:  # a length that lies
            body[at : at + 5] = luck.choice(FORMS[-9:]).to_bytes(1, "big") + luck.randbytes(4)
        case 6:  # cut off
            del body[at:]
        case _:  # twice the same
            body[at:at] = body[max(0, at - 12) : at]


def mutants(count: int) -> Iterator[bytes]:
    luck, stock = random.Random(SEED), frames()
    for _ in range(count):
        body = bytearray(luck.choice(stock))
        for _ in range(luck.choice((1, 1, 1, 2, 3, 5))):
            spoil(body, luck.choice(stock), luck)
        yield bytes(body)


def check(items: list[Any]) -> None:
    """Whatever was found can be answered."""
    for item in items:
        assert isinstance(item, (Request, Refusal))
        if isinstance(item, Refusal):
            said = Session().refuse(item.error, item.req)
            assert b"Internal server error" not in said, item
            assert b"object at 0x" not in said, item
        else:
            said = Session().answer(None, item.req_id)
        assert len(said) > 4


def test_spoilt_frames_are_read_or_refused_and_nothing_piles_up() -> None:
    stock = frames()
    for body in stock:
        check(Session().receive(frame(body)))
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for body in mutants(MUTANTS // 50):
            check(Session().receive(frame(body)))
        gc.collect()
        after, peak = tracemalloc.get_traced_memory()
        assert after - before < 2_000_000
        assert peak - before < 20_000_000
    finally:
        tracemalloc.stop()
    for body in mutants(MUTANTS):
        check(Session().receive(frame(body)))


def test_a_stream_of_spoilt_frames_stays_in_step() -> None:
    luck, session, expected, found = random.Random(SEED), Session(), 0, 0
    for body in mutants(2_000):
        data = frame(body)
        at = luck.randrange(len(data))
        items = session.receive(data[:at]) + session.receive(data[at:])
        expected, found = expected + 1, found + len(items)
    assert found == expected
    assert not session.mid_frame


def test_length_prefixes_that_lie_hold_no_more_than_was_sent() -> None:
    luck = random.Random(SEED)
    for body in list(mutants(3_000)):
        session, sent = Session(), 0
        for _ in range(3):
            data = luck.choice((luck.randbytes(4), frame(body)[:4], b"\0\0")) + body
            session.receive(data)
            sent += len(data)
            assert session._frames.pending_bytes <= sent


def test_spoilt_requests_that_can_be_read_can_be_run() -> None:
    """Not only the session: no command has a bug to offer to them either."""
    desk = Desk()
    for n, body in enumerate(mutants(15_000)):
        if n % 1_000 == 0:
            desk = Desk()
        desk.hand_in(body)
        list(desk.told())


# -- random bytes --------------------------------------------------------------------------------


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 300))
@example(b"\xff\xff\xff\xff", 2)
@example(b"\0\0\0\0" * 10, 3)
def test_random_bytes_are_read_or_refused(data: bytes, cut: int) -> None:
    session = Session()
    check(session.receive(data[:cut]))
    check(session.receive(data[cut:]))


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_inside_a_frame_are_read_or_refused(body: bytes) -> None:
    items = Session().receive(frame(body))
    assert len(items) == 1
    check(items)


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(sorted(KNOWN)), st.lists(st.tuples(st.text(max_size=8), st.binary(max_size=20)))
)
def test_random_bytes_in_the_fields_of_a_command_are_read_or_refused(
    cmd: str, fields: list[tuple[str, bytes]]
) -> None:
    parts = [msgpack.packb(name) + value for name, value in fields]
    head = msgpack.Packer().pack_map_header(len(parts) + 1)
    check(Session().receive(frame(head + b"\xa3cmd" + msgpack.packb(cmd) + b"".join(parts))))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_random_bytes_in_a_known_field_can_be_run(data: st.DataObject) -> None:
    cmd = data.draw(st.sampled_from(sorted(COMMANDS)))
    fields = COMMANDS[cmd]("q", Lease("x", "y"))
    name = data.draw(st.sampled_from(sorted(fields) or ["reqId"]))
    value = data.draw(
        st.sampled_from([b"\xc1", b"\x91\xd4\0\0", b"\xcf" + b"\xff" * 8, b"\x91" * 400 + b"\xc0"])
        | st.floats().map(msgpack.packb)
        | st.integers(-(2**63), 2**64 - 1).map(msgpack.packb)
        | st.binary(min_size=1, max_size=8)
    )
    body = msgpack.packb({"cmd": cmd, name: None})
    Desk().hand_in(body.removesuffix(b"\xc0") + value)
