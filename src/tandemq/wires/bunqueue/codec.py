"""MessagePack as clients of this wire can read it.

Integers beyond 32 bits travel as floats, because a JavaScript peer turns 64-bit ones into BigInt
(wire-commands 1). What is built often is joined from pieces that are encoded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Any

import msgspec
from msgspec import UNSET, Raw
from msgspec.msgpack import Ext

from tandemq.commands.table import UNDEFINED
from tandemq.wires.bunqueue.lenient import NeverUsed
from tandemq.wires.framing import PREFIX

encode = msgspec.msgpack.encode

NULL = b"\xc0"
TRUE = b"\xc3"
FALSE = b"\xc2"
WIDE = 0x7FFF_FFFF  # larger whole numbers are written as floats
USUAL = 36  # bytes that a value of an answer takes, about
DEEPEST = 100  # lists and maps inside each other that we write of a client's odd values
NOTHING = Ext(0, b"\0")  # JavaScript's undefined

_length = Layout(">I").pack
_put_length = Layout(">I").pack_into
_encode_into = msgspec.msgpack.Encoder().encode_into
_float = Layout(">Bd").pack
_text_head = [bytes((0xA0 | n,)) if n < 32 else bytes((0xD9, n)) for n in range(256)]
_short = [encode(n) for n in range(1024)]

OK_REQ = b"\x82\xa2ok\xc3\xa5reqId"  # {"ok": true, "reqId": ...
OK_ID = b"\x83\xa2ok\xc3\xa2id"  # {"ok": true, "id": ..., "reqId": ...
REQ = Raw(b"\xa5reqId")
NOT_OK = b"\x83\xa2ok\xc2\xa5error"


def framed(*parts: bytes) -> bytes:
    """Return one frame: four bytes of length, then the parts."""
    body = b"".join(parts)
    return _length(len(body)) + body


def spliced(values: Sequence[Any]) -> bytes:
    """Return one frame of values one behind the other; those that are ``Raw`` go as they are.

    They are encoded as one array of less than 65,536, which is the cheapest way by far; the length
    of the frame takes the place of its header.
    """
    size = len(values)
    frame = bytearray(USUAL * size)
    at = 1 if size > 15 else 3  # the header takes three bytes, or one
    try:
        _encode_into(values, frame, at)
    except UnicodeEncodeError:
        _encode_into(list(map(_as_it_came, values)), frame, at)
    _put_length(frame, 0, len(frame) - PREFIX)
    return frame  # type: ignore[return-value]  # from here on it is only written


def _as_it_came(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_as_it_came, value))
    return Raw(text(value)) if isinstance(value, str) else value


def moment(ms: int) -> bytes:
    """Encode a moment in ms, always as a float."""
    return _float(0xCB, ms)


def moment_or_null(ms: int) -> bytes:
    return _float(0xCB, ms) if ms else NULL


def number(value: float) -> bytes:
    """Encode a number: whole ones of up to 32 bits as integers, others as floats."""
    if value == (whole := int(value)) and -WIDE - 1 <= whole <= WIDE:
        return _short[whole] if 0 <= whole < 1024 else encode(whole)
    return _float(0xCB, value)


def text(value: str) -> bytes:
    """Encode a string."""
    try:
        raw = value.encode()
    except UnicodeEncodeError:  # a lone surrogate: the way it came is the way it goes
        raw = value.encode("utf-8", "surrogatepass")
    size = len(raw)
    if size < 256:
        return _text_head[size] + raw
    return (b"\xda" + size.to_bytes(2, "big") if size < 65536 else b"\xdb" + _length(size)) + raw


def array(size: int) -> bytes:
    """Return the header of an array."""
    if size < 16:
        return bytes((0x90 | size,))
    return b"\xdc" + size.to_bytes(2, "big") if size < 65536 else b"\xdd" + _length(size)


def narrow(value: Any, depth: int = DEEPEST) -> Any:
    """Return a value as the peers can read it: no whole number is too wide, nothing too deep.

    What only the tolerant reader knows is written as what a JavaScript peer would make of it.
    """
    if isinstance(value, int):
        if isinstance(value, bool) or (type(value) is int and -WIDE - 1 <= value <= WIDE):
            return value
        return int(value) if -WIDE - 1 <= value <= WIDE else float(value)
    if isinstance(value, (dict, list, tuple)):
        if not depth:
            return None
        if isinstance(value, dict):
            return {key: narrow(item, depth - 1) for key, item in value.items()}
        return [narrow(item, depth - 1) for item in value]
    if value is UNSET:
        return NOTHING
    return {} if isinstance(value, NeverUsed) else value


def fields(values: dict[str, Any], req: Raw) -> bytes:
    """Return the frame of a plain answer: ``ok``, its fields, the id of its request."""
    return framed(encode({"ok": True, **narrow(values), "reqId": req}))


def refusal(error: str, req: bytes) -> bytes:
    """Return the frame of a refusal."""
    return framed(NOT_OK, encode(error), REQ, req or UNDEFINED)
