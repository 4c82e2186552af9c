"""The two requests that come all the time on the JSON wire, Publish and Ack, read in one go.

A frame as a real client writes it decodes straight into what is asked. Whatever is unusual about
one, wrong or not, is left to the codec and the rules behind it, which find the right words.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from tandemq.commands.broker import Ack, Publish
from tandemq.wires.vibemq import json_text, rules
from tandemq.wires.vibemq.json_codec import HEADERS_LIMIT
from tandemq.wires.vibemq.json_text import DEPTH
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.levels import NORMAL, priority
from tandemq.wires.vibemq.requests import Ticket
from tandemq.wires.vibemq.rules import GOOD, LONGEST_HEADER_VALUE, MOST_HEADERS


class _UsualPublish(
    Struct, tag_field="type", tag="Publish", rename="camel", forbid_unknown_fields=True, gc=False
):
    id: str
    queue: str
    payload: Raw = Raw()
    headers: dict[str, str] | None = None
    schema_version: str = ""


class _CamelPublish(_UsualPublish, tag="publish"):
    pass


class UsualAck(
    Struct, tag_field="type", tag="Ack", rename="camel", forbid_unknown_fields=True, gc=False
):
    id: str
    queue: str = "-"
    schema_version: str = ""


class _CamelAck(UsualAck, tag="ack"):
    pass


_PUBLISH_ACK = Kind.PUBLISH_ACK
_decode = msgspec.json.Decoder(_UsualPublish | UsualAck | _CamelPublish | _CamelAck).decode


def look(text: bytes) -> Any:
    """Return a frame as it is read here, None where it takes a closer look."""
    size = len(text)
    if size > HEADERS_LIMIT:
        return None
    try:
        said: Any = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not said.id or (said.queue not in GOOD and rules.broken_name(said.queue)):
        return None
    if isinstance(said, UsualAck):
        return said
    headers = said.headers
    odd = headers and (size > LONGEST_HEADER_VALUE or "" in headers or len(headers) > MOST_HEADERS)
    if odd and rules.broken_headers(headers):
        return None
    if text.count(b"{") + text.count(b"[") > DEPTH and json_text.too_deep(text):
        return None
    return said if text.isascii() or json_text.is_utf8(text) else None


def request(said: Any) -> Publish | Ack:
    """Return what such a frame asks for."""
    id, queue = said.id, said.queue
    if isinstance(said, UsualAck):
        return Ack(messages=[id], req_id=Ticket(id))
    payload, headers = bytes(said.payload), said.headers
    return Publish(
        queue=queue,
        id=id,
        payload=b"" if payload == b"null" else payload,
        headers=headers,
        level=NORMAL if headers is None else priority(headers),
        req_id=Ticket(id, _PUBLISH_ACK, queue),
    )
