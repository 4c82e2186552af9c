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
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.requests import NORMAL, Ticket, priority


class _Publish(
    Struct, tag_field="type", tag="Publish", rename="camel", forbid_unknown_fields=True, gc=False
):
    id: str
    queue: str
    payload: Raw = Raw()
    headers: dict[str, str] | None = None
    schema_version: str = ""


class _CamelPublish(_Publish, tag="publish"):
    pass


class _Ack(
    Struct, tag_field="type", tag="Ack", rename="camel", forbid_unknown_fields=True, gc=False
):
    id: str
    queue: str = "-"
    schema_version: str = ""


class _CamelAck(_Ack, tag="ack"):
    pass


_decode = msgspec.json.Decoder(_Publish | _Ack | _CamelPublish | _CamelAck).decode


def read(text: bytes) -> Publish | Ack | None:
    """Return the request, None where it takes a closer look."""
    if len(text) > HEADERS_LIMIT:
        return None
    try:
        said: Any = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not said.id or rules.broken_name(said.queue):
        return None
    if isinstance(said, _Ack):
        return Ack(message=said.id, req_id=Ticket(said.id))
    return _publish(said, text)


def _publish(said: _Publish, text: bytes) -> Publish | None:
    headers = said.headers
    if headers and rules.broken_headers(headers):
        return None
    if json_text.too_deep(text) or not json_text.is_utf8(text):
        return None
    payload = bytes(said.payload)
    return Publish(
        queue=said.queue,
        id=said.id,
        payload=b"" if payload == b"null" else payload,
        headers=headers,
        level=NORMAL if headers is None else priority(headers),
        req_id=Ticket(said.id, Kind.PUBLISH_ACK, said.queue),
    )
