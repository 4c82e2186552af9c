"""The binary wire: bodies to fields, fields to frames with or without a flag byte."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct as Layout
from typing import Final

from tandemq.wires.vibemq import compression, json_text
from tandemq.wires.vibemq.frames import MAX_MESSAGE, Form, Frame, Unreadable, Unsendable
from tandemq.wires.vibemq.kinds import Kind

VERSION: Final = 1
LONGEST_TEXT: Final = 0xFFFF  # bytes
LONGEST_PAYLOAD: Final = 0x7FFF_FFFF

_two = Layout(">H")
_four = Layout(">I")
_pack_two, _two_at = _two.pack, _two.unpack_from
_pack_four, _four_at = _four.pack, _four.unpack_from
_NOTHING = b"\0\0"
_head = [bytes((VERSION, kind)) for kind in range(256)]


# -- reading -------------------------------------------------------------------------------------


def decode(body: bytes) -> Frame:
    """Read a body; what follows its last field is ignored.

    Raises:
        Unreadable: a field runs past the end, or the payload is no JSON.
    """
    if len(body) < 2:
        raise Unreadable("Body too small for a valid protocol message.", lost=True)
    frame = Frame(body[1], "", version=body[0])
    try:
        _fill(frame, body, 2)
    except _Short as short:
        raise Unreadable(str(short), frame.id or None, lost=True) from None
    payload = frame.payload
    if payload is not None:
        if not json_text.well_formed(payload):
            raise Unreadable("Payload is not valid JSON.", frame.id)
        if json_text.too_deep(payload):
            raise Unreadable(f"Payload is nested deeper than {json_text.DEPTH}.", frame.id)
    return frame


class _Short(Exception):
    """A field is not there as a whole."""


def _fill(frame: Frame, body: bytes, at: int) -> None:
    id, at = _text(body, at)
    if id is None:
        raise _Short("Message id cannot be null.")
    frame.id = id
    frame.queue, at = _text(body, at)
    if len(body) < at + 4:
        raise _Short("Insufficient data to read payload length.")
    (size,) = _four_at(body, at)
    at += 4
    if size:
        if size > LONGEST_PAYLOAD:
            raise _Short(f"Payload length ({size}) exceeds maximum allowed size.")
        if len(body) < at + size:
            raise _Short(f"Insufficient data to read payload of length {size}.")
        frame.payload = body[at : at + size]
        at += size
    if len(body) < at + 2:
        raise _Short("Insufficient data to read headers count.")
    (count,) = _two_at(body, at)
    at += 2
    if count:
        frame.headers, at = _headers(body, at, count)
    if frame.kind == Kind.ERROR:
        frame.code, at = _text(body, at)
        frame.text, at = _text(body, at)


def _headers(body: bytes, at: int, count: int) -> tuple[dict[str, str], int]:
    """Read pairs; one with an empty half is void, of equal keys the last counts."""
    headers = {}
    for _ in range(count):
        key, at = _text(body, at)
        value, at = _text(body, at)
        if key is not None and value is not None:
            headers[key] = value
    return headers, at


def _text(body: bytes, at: int) -> tuple[str | None, int]:
    """Read a text, and where it ends; what is no UTF-8 in it is replaced."""
    end = at + 2
    if len(body) < end:
        raise _Short("Insufficient data to read string length.")
    (size,) = _two_at(body, at)
    if not size:
        return None, end
    start, end = end, end + size
    if len(body) < end:
        raise _Short(f"Insufficient data to read string of length {size}.")
    raw = body[start:end]
    try:
        return raw.decode(), end
    except UnicodeDecodeError:
        return _replaced(raw), end


def _replaced(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    if len(text.encode()) > LONGEST_TEXT:  # three bytes for each bad one: we could not say it again
        raise _Short("String is not UTF-8.")
    return text


# -- writing -------------------------------------------------------------------------------------


def encode(frame: Frame) -> bytes:
    """Return a body.

    Raises:
        Unsendable: a text is longer than this wire can say.
    """
    kind = frame.kind
    assert isinstance(kind, int), "a type without a number cannot be written"
    head = _head[kind] if frame.version == VERSION else bytes((frame.version, kind))
    payload = frame.payload or b""
    parts = [head, _said(frame.id), _said(frame.queue), _pack_four(len(payload)), payload]
    parts.append(_said_headers(frame.headers) if frame.headers else _NOTHING)
    if kind == Kind.ERROR:
        parts += (_said(frame.code), _said(frame.text))
    return b"".join(parts)


def _said(text: str | None) -> bytes:
    if not text:
        return _NOTHING
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise Unsendable("a text holds half of a surrogate pair") from None
    if len(raw) > LONGEST_TEXT:
        raise Unsendable(f"a text of {len(raw)} bytes is longer than {LONGEST_TEXT}")
    return _pack_two(len(raw)) + raw


def _said_headers(headers: dict[str, str]) -> bytes:
    pairs = [_said(key) + _said(value) for key, value in headers.items() if key and value]
    if len(pairs) > LONGEST_TEXT:
        raise Unsendable(f"{len(pairs)} headers are more than {LONGEST_TEXT}")
    return _pack_two(len(pairs)) + b"".join(pairs)


class BinaryForm(Form):
    """How frames are written to a peer of this wire: with a flag or not, compressed from where on.

    Ask ``form`` for one: equal ones are the same object.
    """

    depth = json_text.DEPTH

    def __init__(self, flagged: bool, algorithm: str | None = None, threshold: int = 0) -> None:
        self.algorithm = algorithm
        self.head = 5 if flagged else 4
        self._plain = b"\0" if flagged else b""
        self._threshold = threshold

    def write(self, frame: Frame) -> bytes:
        body = encode(frame)
        if self.algorithm is not None and len(body) >= self._threshold:
            packed = compression.deflate(self.algorithm, body)
            if len(packed) <= MAX_MESSAGE:
                flag = compression.FLAGS[self.algorithm]
                return _pack_four(len(packed)) + bytes((flag,)) + packed
        return _pack_four(len(body)) + self._plain + body


@lru_cache(maxsize=64)
def form(flagged: bool = True, algorithm: str | None = None, threshold: int = 0) -> BinaryForm:
    """Return the one form of that kind."""
    return BinaryForm(flagged, algorithm, threshold)
