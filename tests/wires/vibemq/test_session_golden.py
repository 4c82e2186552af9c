"""The golden frames as a session takes them: a request, a refusal, or half a frame."""

from __future__ import annotations

from typing import Any

from tests.wires.vibemq import corpus
from tests.wires.vibemq.peers import ADMIN, REQUESTS, connected, only, said

from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq.frames import MAX_MESSAGE
from tandemq.wires.vibemq.requests import Refusal
from tandemq.wires.vibemq.session import Packed, Session

SENT_BY_CLIENTS = ("c2s", "both", "any")
NOT_YET = set(ADMIN) - set(REQUESTS)


def replied(wire: Wire, vector: dict[str, Any]) -> Any:
    session = connected(wire, limit=vector.get("maxMessageSize", 4 << 20))
    items = session.receive(corpus.data(vector))
    if not items:
        assert session.mid_frame or vector["error"]["kind"] == "end-of-stream"
        return None
    (item,) = items
    return session.unpack(item) if isinstance(item, Packed) else item


@corpus.each(
    vector
    for name in ("binary", "json")
    for vector in corpus.valid(name)
    if vector["direction"] in SENT_BY_CLIENTS and vector["message"]["type"] not in NOT_YET
)
def test_a_golden_frame_of_a_client_is_a_request_or_refused_as_recorded(vector) -> None:
    wire = Wire.JSON if "json" in vector["wire"] else Wire.BINARY
    item, wanted = replied(wire, vector), vector.get("server", {})
    if wanted.get("reply") == "Error":
        error = said(wire, Session(wire).refuse(item.error, item.req_id))
        assert error.code == wanted["errorCode"]
        assert error.text == wanted.get("errorMessage", error.text)
        assert error.id == (vector["message"]["id"] or error.id)
    else:
        assert type(item) is REQUESTS[vector["message"]["type"]]
    if "recommended" in wanted and vector["message"]["typeName"] == "Ack":
        assert item.messages == [vector["message"]["headers"]["messageId"]]
    if "recommended" in wanted and "storedPriority" in wanted:
        assert item.level == wanted["recommended"]


def is_too_large(vector: dict[str, Any]) -> bool:
    return "maxMessageSize" in str(vector.get("server", {}).get("recommended"))


@corpus.each(vector for name in ("binary", "json") for vector in corpus.malformed(name))
def test_a_malformed_golden_frame_is_refused_or_waits_for_its_rest(vector) -> None:
    item = replied(Wire.JSON if "json" in vector["wire"] else Wire.BINARY, vector)
    if vector["endOfStreamAfter"]:
        assert item is None
        return
    assert isinstance(item, Refusal)
    if vector["error"]["stage"] in ("frame", "decompress", "codec"):
        assert item.error.fatal


@corpus.each(vector for vector in corpus.valid("binary") if is_too_large(vector))
def test_the_limit_holds_for_what_a_golden_frame_is_compressed_from(vector) -> None:
    assert only(connected(limit=MAX_MESSAGE), corpus.data(vector)).error.fatal
