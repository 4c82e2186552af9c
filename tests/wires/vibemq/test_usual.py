"""The short way for Publish and Ack says what the long way says, or leaves it to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wires.vibemq import corpus
from tests.wires.vibemq.peers import framed, only, sent
from tests.wires.vibemq.test_session_fuzz import frames, mutants

from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq import json_codec, requests, usual
from tandemq.wires.vibemq.frames import Unreadable
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.levels import HIGH, NORMAL
from tandemq.wires.vibemq.requests import Ack, Publish, Refusal, Ticket
from tandemq.wires.vibemq.session import Session

ACK = Ack(messages=["m"], req_id=Ticket("m"))


def published(
    queue: str,
    payload: bytes = b"",
    headers: dict[str, str] | None = None,
    level: int = NORMAL,
) -> Publish:
    ticket = Ticket("m", Kind.PUBLISH_ACK, queue)
    return Publish(
        queue=queue, id="m", payload=payload, headers=headers, level=level, req_id=ticket
    )


def the_long_way(text: bytes) -> Any:
    try:
        return requests.read(json_codec.decode(text))
    except Unreadable:
        return None


def agrees(text: bytes) -> bool:
    """Whether the short way was taken; what it says must be what the long way says."""
    said = usual.look(text)
    if said is None:
        return False
    assert usual.request(said) == the_long_way(text)
    return True


USUAL = [
    ('{"id":"m","type":"Publish","queue":"q","payload":{"n":1}}', published("q", b'{"n":1}')),
    ('{"id":"m","type":"publish","queue":"q","payload":1.50}', published("q", b"1.50")),
    ('{"id":"m","type":"Publish","queue":"q","payload":null}', published("q")),
    ('{"id":"m","type":"Publish","queue":"q","headers":null}', published("q")),
    ('{"id":"m","type":"Publish","queue":"é","payload":"é"}', published("é", '"é"'.encode())),
    (
        '{"schemaVersion":"1.0","headers":{"priority":"High","x":""},"queue":"q","type":"Publish",'
        '"payload": [ ] ,"id":"m"}',
        published("q", b"[ ]", {"priority": "High", "x": ""}, HIGH),
    ),
    ('{"id":"m","type":"Ack"}', ACK),
    ('{"id":"m","type":"ack","queue":"q","schemaVersion":"1.0"}', ACK),
]


@pytest.mark.parametrize(("text", "wanted"), USUAL)
def test_what_real_clients_write_takes_the_short_way(text: str, wanted: Any) -> None:
    assert usual.request(usual.look(text.encode())) == wanted
    assert agrees(text.encode())


MANY = {str(number): "v" for number in range(51)}
UNUSUAL = [
    '{"id":"m","type":"Ping"}',
    '{"id":"m","type":"PUBLISH","queue":"q"}',
    '{"id":"m","type":20,"queue":"q"}',
    '{"type":"Publish","queue":"q"}',
    '{"id":"","type":"Publish","queue":"q"}',
    '{"id":null,"type":"Ack"}',
    '{"id":"m","type":"Publish"}',
    '{"id":"m","type":"Publish","queue":null}',
    '{"id":"m","type":"Publish","queue":"a b"}',
    '{"id":"m","type":"Publish","queue":""}',
    '{"id":"m","type":"Ack","queue":"a b"}',
    '{"id":"m","type":"Publish","queue":"%s"}' % ("q" * 257),
    '{"id":"m","type":"Publish","queue":"q","headers":{"":"v"}}',
    '{"id":"m","type":"Publish","queue":"q","headers":{"n":null}}',
    '{"id":"m","type":"Publish","queue":"q","headers":' + json.dumps(MANY) + "}",
    '{"id":"m","type":"Ack","headers":{"messageId":"x"}}',
    '{"id":"m","type":"Publish","queue":"q","errorCode":"x"}',
    '{"id":"m","type":"Publish","queue":"q","Queue":"x"}',
    '{"id":"m","type":"Publish","queue":"q","payload":' + "[" * 64 + "]" * 64 + "}",
    '{"id":"m","type":"Publish","queue":"q","payload":' + "[" * 5000 + "]" * 5000 + "}",
    '{"id":"m","type":"Publish","queue":"q","payload":"\\ud800"}',
    '{"id":"m","type":"Publish","queue":"q","payload":"%s"}' % ("x" * (1 << 20)),
    "hello",
    "",
]


@pytest.mark.parametrize("text", UNUSUAL, ids=lambda text: text[:60])
def test_whatever_else_there_is_takes_the_long_way(text: str) -> None:
    assert usual.look(text.encode()) is None


def test_text_that_is_no_utf8_takes_the_long_way() -> None:
    assert usual.look(b'{"id":"m","type":"Publish","queue":"q","payload":"\xff"}') is None


def test_both_ways_agree_on_golden_recorded_and_spoilt_frames() -> None:
    assert sum(agrees(data[4:]) for data in frames(Wire.JSON)) >= 3
    assert sum(agrees(data[4:]) for data in mutants(Wire.JSON, 5_000)) > 10


@corpus.needed
def test_what_recorded_clients_publish_and_acknowledge_takes_the_short_way() -> None:
    for header, events in corpus.sessions():
        for event in events:
            kind, refused = event["message"]["type"], "refusals" in header["session"]
            if "json" in header["wire"] and kind in ("Publish", "Ack") and not refused:
                assert event["dir"] == "s2c" or agrees(bytes.fromhex(event["hex"])[4:])


MEMBERS = {
    "id": st.sampled_from(["m", "", None, 5]),
    "type": st.sampled_from(["Publish", "publish", "Ack", "ack", "ACK", "Ping", 20, None]),
    "queue": st.sampled_from(["q", "", "a b", None, 7, "é"]),
    "payload": st.sampled_from([None, 1, "x", [], {"a": [1]}]),
    "headers": st.sampled_from([None, {}, {"priority": "low"}, {"": "v"}, {"messageId": "x"}, []]),
    "schemaVersion": st.sampled_from(["1.0", None, 1]),
    "errorCode": st.none(),
    "other": st.none(),
}


@given(st.fixed_dictionaries({}, optional=MEMBERS))
def test_both_ways_agree_on_any_members(members) -> None:
    agrees(json.dumps(members).encode())


def test_a_session_takes_the_short_way_from_its_second_frame_on() -> None:
    session, publish = Session(Wire.JSON), sent(Wire.JSON, Kind.PUBLISH, queue="q", payload=b"1")
    assert only(session, publish) == only(session, publish) == published("q", b"1")
    assert only(session, sent(Wire.JSON, Kind.ACK)) == ACK
    assert isinstance(only(session, framed(b'{"id":"m","type":"Publish"}')), Refusal)
    (lost,) = session.receive(framed(b"hello"))
    assert isinstance(lost, Refusal)
    assert lost.error.fatal
