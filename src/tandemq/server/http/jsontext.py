"""JSON in and out, as the values of the bunqueue wire.

That wire knows the numbers of JavaScript. A whole number that such a number cannot hold is refused
on the way in, so that it is never changed without a word; on the way out whole numbers have no
point.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.msgpack import Ext

from tandemq.model.body import wide_integers
from tandemq.model.errors import BadRequest, Malformed

INVALID: Final = "Invalid JSON body"
NARROWEST, WIDEST = -(2**31), 2**32 - 1  # what that wire has as whole numbers
LARGE: Final = 64 << 10  # bytes from which on nothing is looked at value by value
EXACT: Final = 2**53  # up to here a double holds every whole number
AS_TEXT: Final = "is more than a number of JSON holds everywhere (2^53): send it as text"

_decode = msgspec.json.decode
_encode = msgspec.json.encode
_encode_packed = msgspec.msgpack.encode
_put_double = Struct(">Bd").pack_into
_natural, _signed = Struct(">Q").unpack_from, Struct(">q").unpack_from
_unpack = msgspec.msgpack.Decoder(ext_hook=lambda code, data: _extension(code, data)).decode


def read(text: bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        Malformed: it is not JSON, or nested too deeply.
    """
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Malformed(INVALID) from None


def packed(value: Any) -> bytes:
    """Return a value as the bunqueue wire has it, with its wide numbers as JavaScript has them.

    The value itself may be changed.

    Raises:
        Malformed: it holds text that is no text.
        BadRequest: it holds a number that would change.
    """
    frame = _pack(value)
    if 0xCF not in frame and 0xD3 not in frame:
        return frame
    if len(frame) > LARGE:
        return rewritten(frame)
    narrow(value)
    return _pack(value)


def _pack(value: Any) -> bytes:
    try:
        return _encode_packed(value)
    except OverflowError:
        raise BadRequest(f"A whole number of more than 64 bits {AS_TEXT}") from None
    except (UnicodeEncodeError, RecursionError, msgspec.MsgspecError):
        raise Malformed(INVALID) from None


def narrow(value: Any) -> None:
    """Put doubles in the place of the wide numbers in a list or an object, however deep.

    Raises:
        BadRequest: one would change.
    """
    todo = [value]
    while todo:
        held = todo.pop()
        for key, item in held.items() if type(held) is dict else enumerate(held):
            kind = type(item)
            if kind is dict or kind is list:
                todo.append(item)
            elif kind is int and not NARROWEST <= item <= WIDEST:
                held[key] = float(item) if -EXACT <= item <= EXACT else _double(item)


def _double(whole: int) -> float:
    if not -EXACT <= whole <= EXACT and float(whole) != whole:
        raise BadRequest(f"{whole} {AS_TEXT}")
    return float(whole)


def rewritten(frame: bytes) -> bytes:
    """Do the same in the packed form, which costs less where much is packed.

    Both forms of a wide number take nine bytes, so one is written over the other.
    """
    narrowed = bytearray(frame)
    for at in wide_integers(frame):
        (whole,) = (_natural if frame[at] == 0xCF else _signed)(frame, at + 1)
        _put_double(narrowed, at, 0xCB, _double(whole))
    return bytes(narrowed)


def written(value: Any) -> bytes:
    """Return a value as JSON text; what is undefined is left out."""
    return _encode(value)


def unpacked(packed: bytes | memoryview) -> Any:
    """Return a value of the bunqueue wire as one that ``written`` takes."""
    return _plain(_unpack(packed))


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) <= EXACT else value
    if kind is dict:
        return {_name(key): _plain(item) for key, item in value.items() if item is not UNSET}
    if kind is list:
        return [None if item is UNSET else _plain(item) for item in value]
    return value


def _name(key: Any) -> Any:
    return key if isinstance(key, str) else str(key)


def _extension(code: int, data: memoryview) -> Ext | UnsetType:
    return UNSET if code == 0 else Ext(code, bytes(data))
