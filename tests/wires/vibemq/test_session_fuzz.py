"""Nothing that arrives makes a session raise, and nothing makes it hold more than it was sent.

The frames to be spoilt are the golden and the recorded ones where they are at hand, and a few of
each command. The mutants are the same in every run; TANDEMQ_MUTANTS asks for another number.
"""

from __future__ import annotations

import gc
import os
import random
import tracemalloc
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wires.vibemq import corpus
from tests.wires.vibemq.peers import EACH, FORMS, REQUESTS, connected, only, packed, said, sent

from tandemq.commands.broker import Nack
from tandemq.commands.table import BrokerRequest
from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq.compression import FLAGS, deflate
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.requests import Refusal
from tandemq.wires.vibemq.session import Packed, Session

MUTANTS = int(os.environ.get("TANDEMQ_MUTANTS") or 20_000)  # on each wire
LONGEST = 2_048  # bytes of a frame that is worth spoiling
SEED = 20_240_229
MEANINGFUL = [b'"', b"\\", b"{", b"]", b"\\ud800", b"\xff\xff", b"\0"]
MIB = 1 << 20


# -- frames to be spoilt -------------------------------------------------------------------------


def written_down(wire: Wire) -> Iterator[bytes]:
    payload = b'{"username":"bob","password":"p","mode":1,"messageTtl":"00:00:01","x":[{"y":null}]}'
    for kind in Kind:
        yield sent(wire, kind, queue="q", payload=payload, headers={"priority": "high", "n": ""})
    yield sent(wire, Kind.ACK)
    yield sent(wire, Kind.PUBLISH, queue="q", payload=payload)
    if wire is Wire.BINARY:
        body = sent(wire, Kind.PUBLISH, queue="q", payload=payload)[5:]
        yield from (packed(flag, deflate(name, body)) for name, flag in FLAGS.items())


@cache
def frames(wire: Wire) -> list[bytes]:
    """Different frames, short ones first."""
    found = set(written_down(wire))
    name = "json" if wire is Wire.JSON else "binary"
    for vector in corpus.valid(name) + corpus.malformed(name):
        if "hex" in vector:
            found.add(corpus.data(vector))
    for header, events in corpus.sessions():
        if name in header["wire"]:
            found |= {bytes.fromhex(event["hex"]) for event in events}
    if wire is Wire.BINARY_1_0:
        found = {data[:4] + data[5:] for data in found if data[4:5] == b"\0"} | found
    return sorted((data for data in found if 4 < len(data) <= LONGEST), key=lambda d: (len(d), d))


def spoil(data: bytearray, other: bytes, luck: random.Random) -> None:
    """One change of one kind behind the length."""
    at = luck.randrange(len(data) + 1)
    match luck.randrange(7):
        case 0 if data:  # a bit turns over
            data[at - 1] ^= 1 << luck.randrange(8)
        case 1:  # a piece is missing
            del data[at : at + luck.randrange(1, 9)]
        case 2:  # something came in between
            data[at:at] = luck.randbytes(luck.randrange(1, 9))
        case 3:  # a piece of another frame
            start = luck.randrange(len(other) + 1)
            data[at : at + luck.randrange(9)] = other[start : start + luck.randrange(40)]
        case 4:  # what means something to one of the codecs
            data[at : at + 1] = luck.choice(MEANINGFUL)
        case 5:  # cut off
            del data[at:]
        case _:  # twice the same
            data[at:at] = data[max(0, at - 12) : at]


def mutants(wire: Wire, count: int) -> Iterator[bytes]:
    luck, stock = random.Random(SEED), frames(wire)
    for _ in range(count):
        body = bytearray(luck.choice(stock)[4:])
        for _ in range(luck.choice((1, 1, 1, 2, 3, 5))):
            spoil(body, luck.choice(stock)[4:], luck)
        size = len(body) - (wire is Wire.BINARY)
        yield max(size, 0).to_bytes(4, "big") + body


def check(wire: Wire, session: Session, data: bytes) -> None:
    """Whatever was found can be answered; after what is fatal nothing more is found."""
    items: list[Any] = session.receive(data)
    for item in items:
        if isinstance(item, Packed):
            item = session.unpack(item)
        assert isinstance(item, (BrokerRequest, Refusal))
        if isinstance(item, Refusal):
            error = said(wire, session.refuse(item.error, item.req_id))
            assert (error.kind, error.code == "SERVER_ERROR") == (Kind.ERROR, False)
            assert error.text
            assert "object at 0x" not in error.text
            if item.error.fatal:
                assert item is items[-1] or isinstance(items[-1], (Packed, BrokerRequest, Refusal))
                assert session.receive(data) == []
                return
        elif (ticket := item.req_id).reply is not None:
            answer = said(wire, session.answer(None, ticket))
            assert (answer.kind, answer.id) == (ticket.reply, ticket.id)


@EACH
def test_there_are_frames_of_every_type(wire: Wire) -> None:
    seen = set()
    for data in frames(wire):
        for item in connected(wire, limit=MIB).receive(data):
            if isinstance(item, BrokerRequest):
                seen.add(type(item))
    assert seen == set(REQUESTS.values()) - {Nack}  # which this peer did not offer


@EACH
def test_spoilt_frames_are_read_or_refused_and_nothing_piles_up(wire: Wire) -> None:
    for data in frames(wire):
        check(wire, connected(wire), data)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for data in mutants(wire, MUTANTS // 20):
            check(wire, connected(wire), data)
        gc.collect()
        after, peak = tracemalloc.get_traced_memory()
        assert after - before < MIB
        assert peak - before < 8 * MIB
    finally:
        tracemalloc.stop()
    for data in mutants(wire, MUTANTS):
        check(wire, connected(wire), data)


@EACH
def test_cuts_make_no_difference_to_spoilt_frames(wire: Wire) -> None:
    luck = random.Random(SEED)
    for data in mutants(wire, 2_000):
        at = luck.randrange(len(data))
        whole, parts = connected(wire), connected(wire)
        found = [shape(item) for item in whole.receive(data)]
        assert [shape(i) for i in parts.receive(data[:at]) + parts.receive(data[at:])] == found
        assert whole.mid_frame == parts.mid_frame


def shape(item: Any) -> Any:
    """An item without what is made up for it."""
    if isinstance(item, Refusal):
        return type(item.error), str(item.error), item.formed
    return type(item)


@EACH
@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=300), cut=st.integers(0, 300))
def test_random_bytes_are_read_or_refused(wire: Wire, data: bytes, cut: int) -> None:
    for session in (Session(wire), connected(wire)):
        check(wire, session, data[:cut])
        check(wire, session, data[cut:])


@EACH
@settings(max_examples=300, deadline=None)
@given(body=st.binary(min_size=2, max_size=200))
def test_random_bytes_inside_a_frame_are_read_or_refused(wire: Wire, body: bytes) -> None:
    flag = b"\0" if wire is Wire.BINARY else b""
    session = connected(wire)
    check(wire, session, len(body).to_bytes(4, "big") + flag + body)
    assert not session.mid_frame


# -- memory --------------------------------------------------------------------------------------

PICKED = (Kind.CREATE_QUEUE, Kind.ADMIN_GRANT_PERMISSION, Kind.CONNECT)
READERS = [kind for kind in PICKED if kind in REQUESTS]


def peak_of(act) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@EACH
def test_an_announced_length_alone_reserves_nothing(wire: Wire) -> None:
    session = Session(wire, limit=64 * MIB)
    assert peak_of(lambda: session.receive((64 * MIB).to_bytes(4, "big") + b"\0{")) < 10_000
    assert session.mid_frame


@pytest.mark.parametrize("name", FLAGS)
def test_a_thousand_bombs_in_a_row_take_no_more_than_they_were_sent(name: str) -> None:
    bomb = packed(FLAGS[name], deflate(name, bytes(MIB - 64)))
    stream = bomb * 1000
    session = connected()
    found: list[Any] = []
    assert peak_of(lambda: found.extend(session.receive(stream))) < 2 * len(stream) + MIB
    assert len(found) == 1000
    assert peak_of(lambda: session.unpack(found[0])) < 5 * MIB


@EACH
@pytest.mark.parametrize("kind", READERS, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    ("head", "part", "tail"),
    [
        (b'{"mode":[', b"[],", b"1]}"),
        (b'{"username":[', b'"",', b"1]}"),
        (b'{"username":"u","queuePattern":"q","operations":[', b'"",', b'"x"]}'),
        (b'{"username":"u","queuePattern":"q","operations":[', b"[],", b"1]}"),
        (b"{", b'"a":1,', b'"mode":1}'),
        (b"[", b"{},", b"1]"),
    ],
    ids=lambda part: str(part)[-12:],
)
def test_a_hostile_payload_takes_a_few_times_its_memory(wire, kind, head, part, tail) -> None:
    payload = head + part * ((MIB - 400) // len(part)) + tail
    data = sent(wire, kind, queue="q", payload=payload)
    session = Session(wire)
    assert peak_of(lambda: only(session, data)) < 24 * MIB


def test_the_forms_of_peers_are_few() -> None:
    """Deliveries to many are written once for each form, so equal peers share one."""
    peers = [(wire, offer) for wire in FORMS for offer in (None, "gzip", "brotli")] * 2
    assert len({connected(wire, offer).form for wire, offer in peers}) == 5
