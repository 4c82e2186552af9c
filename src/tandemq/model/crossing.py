"""Data that crosses wires: jobs carry MessagePack, letters JSON.

Each stays the bytes it came as, until a subscriber asks for a job or a worker for a letter.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

import msgspec

from tandemq.model.message import Message

NIL: Final = b"\xc0"
_ABSENT: Final = (b"", NIL, b"\xd4\x00\x00")  # no data, nil, JavaScript's undefined
WHOLE: Final = range(
    -(2**31), 2**32
)  # integers that stay integers; others are doubles to JavaScript


class Uncarriable(ValueError):
    """JSON has no word for something in the data; the text says for what."""


def to_json(packed: bytes) -> bytes:
    """Return the data of a job as JSON, b"" where it has none.

    Raises:
        Uncarriable: it holds binary, a timestamp, a number that is none, or a key that is no text.
    """
    if packed in _ABSENT:
        return b""
    try:
        value = msgspec.msgpack.decode(packed, ext_hook=_extension)
        _check(value)
        return msgspec.json.encode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as exc:
        raise Uncarriable(f"data that cannot be read: {exc}") from exc


def to_msgpack(text: bytes) -> bytes:
    """Return the payload of a letter as the data of a job, nil where it has none."""
    if not text:
        return NIL
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:  # a number beyond all doubles, which to JavaScript is infinite
        value = json.loads(text, parse_int=_whole)
    return msgspec.msgpack.encode(_doubles(value))


def _extension(code: int, data: memoryview) -> Any:
    if code == 0:
        return None  # undefined
    raise Uncarriable(f"an extension of type {code}")


def _check(value: Any) -> None:
    """Refuse what msgspec would put into JSON in some other form, without a word."""
    look = [value]
    while look:
        item = look.pop()
        if isinstance(item, dict):
            odd = next((key for key in item if not isinstance(key, str)), None)
            if odd is not None:
                raise Uncarriable(f"the key {odd!r:.40}, which is no text")
            look += item.values()
        elif isinstance(item, list):
            look += item
        elif isinstance(item, float):
            if not math.isfinite(item):
                raise Uncarriable(f"the number {item}")
        elif item is not None and not isinstance(item, (bool, int, str)):
            raise Uncarriable("binary data" if isinstance(item, bytes) else "a timestamp")


def _doubles(value: Any) -> Any:
    """Write wide integers as the peers do: as doubles, whatever the width."""
    if type(value) is int:
        return value if value in WHOLE else _double(value)
    if isinstance(value, list):
        return [_doubles(item) for item in value]
    if isinstance(value, dict):
        return {key: _doubles(item) for key, item in value.items()}
    return value


def _whole(digits: str) -> float:
    return float(digits) if len(digits) > 20 else int(digits)


def _double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def name_of(m: Message) -> str:
    """Return the name under which subscribers know a message."""
    return m.id if m.letter is None else m.letter.id


def payload_of(m: Message) -> bytes:
    """Return the body of a message as JSON, b"" for none.

    Raises:
        Uncarriable: it is a job whose data JSON cannot say.
    """
    return to_json(m.body) if m.letter is None else m.body


def data_of(m: Message) -> bytes:
    """Return the body of a message as MessagePack, as workers know it."""
    return m.body if m.letter is None else to_msgpack(m.body)


def body_for(m: Message, data: bytes) -> bytes:
    """Return what a worker's wire calls data as the body that a message would have.

    Raises:
        Uncarriable: it is a letter, and JSON cannot say this.
    """
    return data if m.letter is None else to_json(data)
