"""What the real clients and servers said to each other: all of it is read, and written alike.

Every frame of every recorded session goes through the codecs, whether or not our server is to give
the same answers. What the real clients sent also goes through a session.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from tests.wires.vibemq import corpus
from tests.wires.vibemq.peers import ADMIN, FORMS, REQUESTS, connected, said

from tandemq.commands.greeting import Connect
from tandemq.model.errors import Malformed, UnknownCommand
from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq import binary_codec, json_codec
from tandemq.wires.vibemq.compression import AVAILABLE, FLAGS
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import NAMES
from tandemq.wires.vibemq.requests import Refusal, Ticket
from tandemq.wires.vibemq.session import THRESHOLD, Packed, Session

pytestmark = corpus.needed
NOT_YET = {NAMES[kind] for kind in ADMIN if kind not in REQUESTS}
EACH_SESSION = pytest.mark.parametrize(
    ("header", "events"),
    [pytest.param(*session, id=session[0]["session"]) for session in corpus.sessions()],
)


def wire_of(header: dict[str, Any]) -> Wire:
    return Wire(header["wire"].replace("vibemq-json-1.0", "vibemq-json"))


def plain(frame: Frame) -> dict[str, Any]:
    """A frame as the recordings show it."""
    shown = {
        "id": frame.id,
        "type": NAMES[int(frame.kind)],
        "queue": frame.queue,
        "payload": None if frame.payload is None else json.loads(frame.payload),
        "headers": frame.headers or None,
        "errorCode": frame.code,
        "errorMessage": frame.text,
    }
    return {name: value for name, value in shown.items() if value is not None}


@EACH_SESSION
def test_every_recorded_frame_is_read_as_it_was_shown(header, events) -> None:
    wire = wire_of(header)
    for event in events:
        data, wanted = bytes.fromhex(event["hex"]), dict(event["message"])
        wanted.pop("schemaVersion", None)
        flag = data[4] if wire is Wire.BINARY else 0
        assert flag == FLAGS.get(wanted.pop("compressed", ""), 0)
        headers = wanted.pop("headers", None) or {}
        if headers := {key: value for key, value in headers.items() if value}:
            wanted["headers"] = headers
        wanted = {name: value for name, value in wanted.items() if value is not None}
        assert plain(said(wire, data)) == wanted


@EACH_SESSION
def test_every_recorded_frame_is_written_as_its_peer_wrote_it(header, events) -> None:
    wire = wire_of(header)
    for event in events:
        data = bytes.fromhex(event["hex"])
        written = FORMS[wire].write(said(wire, data))
        if wire is Wire.JSON:  # which has many spellings
            wanted = json.loads(data[4:])
            if wanted.get("payload", ...) is None:
                del wanted["payload"]
            assert json.loads(written[4:]) == wanted
        elif not data[4] and not void_headers(data):  # compressed bytes depend on the encoder
            assert written == data


def void_headers(data: bytes) -> bool:
    """Whether there are headers with an empty half, which are read and not written."""
    frame = binary_codec.decode(data[5:])
    return frame.headers is not None and len(binary_codec.encode(frame)) != len(data) - 5


@EACH_SESSION
def test_every_frame_of_a_real_client_is_a_request_unless_the_real_server_refused_it(
    header, events
) -> None:
    wire, refused = wire_of(header), Counter(map(code_of, events))
    sessions: dict[int, Session] = {}
    for event in events:
        if event["dir"] != "c2s" or event["message"]["type"] in NOT_YET:
            continue
        session = sessions.setdefault(event["conn"], Session(wire))
        (item,) = session.receive(bytes.fromhex(event["hex"]))
        if isinstance(item, Packed):
            item = session.unpack(item)
        if isinstance(item, Connect):
            session.answer(None, item.req_id)
        if isinstance(item, Refusal):
            error = said(wire, session.refuse(item.error, item.req_id))
            assert error.id == event["message"]["id"]
            refused[error.code, error.text] -= 1
            assert refused[error.code, error.text] >= 0, event["message"]
        else:
            assert item.req_id.id == event["message"]["id"]


def code_of(event: dict[str, Any]) -> tuple[str | None, str | None]:
    return event["message"].get("errorCode"), event["message"].get("errorMessage")


@EACH_SESSION
def test_what_is_agreed_is_what_the_real_server_agreed_to(header, events) -> None:
    wire, settings = wire_of(header), header["server"]
    ours = settings.get("comp", ",".join(AVAILABLE)).lower().split(",")
    threshold = settings.get("threshold", THRESHOLD)
    offers: dict[int, Connect] = {}
    for event in events:
        data, conn = bytes.fromhex(event["hex"]), event["conn"]
        session = Session(wire, compressions=ours, threshold=threshold)
        if event["message"]["type"] == "Connect":
            (offers[conn],) = session.receive(data)  # type: ignore[assignment]
        elif event["message"]["type"] == "ConnectAck":
            answer = session.answer(None, offers[conn].req_id)
            assert said(wire, answer).headers == event["message"].get("headers")
            assert wire is not Wire.BINARY or answer[4] == data[4]


# -- literal frames of the scenarios -------------------------------------------------------------

SCENARIO_FRAMES = [
    pytest.param(line, id=f"{line['scenario']}-{line['step']}")
    for line in corpus.lines("scenario_frames.jsonl")
    if "json_hex" in line
]
WRONG_ON_PURPOSE = {"S-265": UnknownCommand, "S-271": Malformed}


@pytest.mark.parametrize("line", SCENARIO_FRAMES)
def test_a_literal_frame_says_the_same_on_both_wires(line) -> None:
    on_json = bytes.fromhex(line["json_hex"])
    if line["scenario"] in WRONG_ON_PURPOSE and line["dir"] == "send":
        (refusal,) = connected(Wire.JSON).receive(on_json)
        assert isinstance(refusal, Refusal)
        assert type(refusal.error) is WRONG_ON_PURPOSE[line["scenario"]]
        assert (refusal.req_id, refusal.error.fatal) == (Ticket(line["message"]["id"]), False)
        return
    wanted = {name: value for name, value in line["message"].items() if value is not None}
    on_binary = bytes.fromhex(line["binary_hex"])
    assert plain(json_codec.decode(on_json[4:])) == wanted
    frame = binary_codec.decode(on_binary[5:])
    assert plain(frame) == wanted
    assert FORMS[Wire.BINARY].write(frame) == on_binary
