"""What a peer of each wire sends and reads, for the tests of sessions."""

from __future__ import annotations

from typing import Any

import pytest

from tandemq.commands.table import BROKER
from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq import binary_codec, compression, json_codec
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import NAMES, Kind
from tandemq.wires.vibemq.requests import Ticket
from tandemq.wires.vibemq.session import Packed, Session

WIRES = [Wire.JSON, Wire.BINARY, Wire.BINARY_1_0]
EACH = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.value)
FORMS = {
    Wire.JSON: json_codec.PASCAL,
    Wire.BINARY: binary_codec.form(),
    Wire.BINARY_1_0: binary_codec.form(flagged=False),
}

REQUESTS: dict[int, type[Any]] = {
    kind: BROKER[name].request for kind, name in NAMES.items() if name in BROKER
}
ADMIN = [kind for kind in Kind if 50 <= kind <= 56]


def sent(wire: Wire, kind: int, id: str = "m", **fields: Any) -> bytes:
    """A frame of a client."""
    return FORMS[wire].write(Frame(kind, id, **fields))


def framed(body: bytes) -> bytes:
    """A body of the JSON wire, or of binary 1.0, with its length."""
    return len(body).to_bytes(4, "big") + body


def packed(flag: int, body: bytes) -> bytes:
    """A body of binary 1.1 with its flag."""
    return len(body).to_bytes(4, "big") + bytes((flag,)) + body


def said(wire: Wire, data: bytes) -> Frame:
    """What a peer reads in one whole frame."""
    size, head = int.from_bytes(data[:4], "big"), FORMS[wire].head
    assert len(data) == size + head
    body = data[head:]
    if wire is Wire.BINARY and data[4]:
        body = compression.inflate(data[4], body, 1 << 26)
    return (json_codec if wire is Wire.JSON else binary_codec).decode(body)


def only(session: Session, data: bytes) -> Any:
    """The one item that these bytes complete."""
    (item,) = session.receive(data)
    return session.unpack(item) if isinstance(item, Packed) else item


def connected(wire: Wire = Wire.BINARY, offer: str | None = None, **more: Any) -> Session:
    """A session that has accepted a Connect."""
    session = Session(wire, **more)
    session.answer(None, Ticket("c", Kind.CONNECT_ACK, compressions=offer))
    return session
