"""The JSON wire: texts to fields, fields to frames in either spelling of ``type``."""

from __future__ import annotations

import json
import re
from struct import Struct as Layout
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from tandemq.model.body import well_formed
from tandemq.wires.vibemq import json_text
from tandemq.wires.vibemq.frames import Form, Frame, Unreadable, Unsendable, fresh_id
from tandemq.wires.vibemq.kinds import NAMES, number_of

WHY_LIMIT: Final = 1 << 16  # bytes of a bad text that is read again to find out what is wrong
RESTS: Final = 4096  # plain answers of which everything but the id is kept
VERSION: Final = "1.0"
HEADERS_LIMIT: Final = 1 << 20  # bytes of the text of headers; as objects they are many times that

_length = Layout(">I").pack


# -- reading -------------------------------------------------------------------------------------


class _Envelope(Struct, gc=False, rename="camel"):
    type: str | int
    id: str | UnsetType | None = UNSET
    queue: str | None = None
    payload: Raw = Raw()
    headers: dict[str, str | None] | None = None
    schema_version: str | None = None
    error_code: str | None = None
    error_message: str | None = None


class _Loose(Struct, gc=False):
    """A few members, not looked into."""

    id: Raw = Raw()
    type: Raw = Raw()
    headers: Raw = Raw()


_decode = msgspec.json.Decoder(_Envelope).decode
_decode_loosely = msgspec.json.Decoder(_Loose).decode
_decode_text = msgspec.json.Decoder(str).decode


def decode(text: bytes) -> Frame:
    """Read one JSON object.

    Raises:
        Unreadable: it is none, or a member has a wrong type.
    """
    if len(text) > HEADERS_LIMIT:
        _check_headers(text)
    try:
        said = _decode(text)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise _why(text, str(exc)) from None
    id = fresh_id() if said.id is UNSET else said.id or ""
    if json_text.too_deep(text):
        raise Unreadable(f"Message is nested deeper than {json_text.DEPTH}.", id)
    if not json_text.is_utf8(text):
        raise Unreadable("Message is not UTF-8.", id)
    if said.headers and None in said.headers.values():
        raise Unreadable("Header values cannot be null.", id)
    kind = said.type
    if isinstance(kind, str) and (number := number_of(kind)) is not None:
        kind = number
    payload = bytes(said.payload)
    return Frame(
        kind,
        id,
        said.queue,
        None if payload == b"null" else payload or None,
        cast("dict[str, str] | None", said.headers),
        said.error_code,
        said.error_message,
    )


def is_camel(text: bytes) -> bool:
    """Whether the type of a frame begins with a small letter."""
    said = _loosely(text)
    kind = b"" if said is None else bytes(said.type)
    return kind.startswith(b'"') and kind[1:2].islower()


def _loosely(text: bytes) -> _Loose | None:
    """Read what can be read of any JSON object; None when it is none."""
    try:
        return _decode_loosely(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _check_headers(text: bytes) -> None:
    """Refuse headers whose objects would take many times the memory of a large text."""
    said = _loosely(text)
    if said is not None and len(memoryview(said.headers)) > HEADERS_LIMIT:
        raise Unreadable("Headers are too large.", _id_of(said))


def _why(text: bytes, problem: str) -> Unreadable:
    """Return what is wrong with a text that does not fit, and whom to tell."""
    if (said := _loosely(text)) is not None:
        return Unreadable(f"Invalid message: {problem}", _id_of(said))
    if isinstance(lenient := _half_characters(text), dict):
        id = lenient.get("id")
        known = isinstance(id, str) and well_formed(id) == id
        return Unreadable(f"Invalid message: {problem}", id if known else None)
    return Unreadable(f"Message is not a JSON object: {problem}", _first_id(text), lost=True)


def _id_of(said: _Loose) -> str | None:
    try:
        return _decode_text(said.id)
    except msgspec.DecodeError:
        return None


def _half_characters(text: bytes) -> Any:
    """Read a text that may hold halves of surrogate pairs, as cutting a text in two leaves them.

    They are the only thing that the standard library takes for JSON and msgspec does not.
    """
    if len(text) > WHY_LIMIT or b"\\ud" not in text.lower():
        return None
    try:
        return json.loads(text.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_id_first = re.compile(rb'\s*\{\s*"id"\s*:\s*"([^"\\]{1,256})"').match


def _first_id(text: bytes) -> str | None:
    """Return the id of a bad text where it stands first, as all real clients write it."""
    found = _id_first(text)
    return found[1].decode("utf-8", "replace") if found else None


# -- writing -------------------------------------------------------------------------------------


class _Said(Struct, gc=False, rename="camel", omit_defaults=True):
    """A frame, its members in the reference's order."""

    id: str
    type: str
    queue: str | None = None
    payload: Raw | None = None
    headers: dict[str, str] | None = None
    schema_version: str = ""
    error_code: str | None = None
    error_message: str | None = None


_encode = msgspec.json.Encoder().encode
_OPEN = b'{"id":'
_EMPTY = _length(0) + _OPEN + b'""'


class JsonForm(Form):
    """How frames are written to a peer of this wire: types begin with small or capital letters."""

    head = 4
    depth = json_text.DEPTH - 1  # the frame around it counts

    def __init__(self, camel: bool) -> None:
        self._types: dict[int | str, str] = {
            number: name[0].lower() + name[1:] if camel else name for number, name in NAMES.items()
        }
        self._rests: dict[tuple[int, str | None], bytes] = {}  # of plain answers, behind their id

    def accept(self, kind: int, id: str, queue: str | None) -> bytes:
        rest = self._rests.get((kind, queue))
        if rest is None:
            if len(self._rests) >= RESTS:
                self._rests.clear()
            rest = self._rests[kind, queue] = self.write(Frame(kind, "", queue))[len(_EMPTY) :]
        name = _encode(id)
        return _length(len(_OPEN) + len(name) + len(rest)) + _OPEN + name + rest

    def write(self, frame: Frame) -> bytes:
        payload = frame.payload
        said = _Said(
            frame.id,
            self._types[frame.kind],
            frame.queue,
            None if payload is None else Raw(payload),
            frame.headers,
            VERSION,
            frame.code,
            frame.text,
        )
        try:
            body = _encode(said)
        except UnicodeEncodeError:
            raise Unsendable("a text holds half of a surrogate pair") from None
        return _length(len(body)) + body


PASCAL: Final = JsonForm(camel=False)
CAMEL: Final = JsonForm(camel=True)
