"""JSON in and out, as the values of the bunqueue wire.

That wire knows the numbers of JavaScript. A whole number that such a number cannot hold is refused
on the way in, so that it is never changed without a word; on the way out whole numbers have no
point.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.msgpack import Ext

from tandemq.model.errors import BadRequest, Malformed

INVALID: Final = "Invalid JSON body"
NARROW: Final = range(-(2**31), 2**32)  # what stays a whole number on that wire
DEPTH: Final = 400  # of lists and objects inside each other; the reader of the wire allows more

_decode = msgspec.json.decode
_encode = msgspec.json.encode
_holds_wide = re.compile(rb"\d{10}").search
_unpack = msgspec.msgpack.Decoder(ext_hook=lambda code, data: _extension(code, data)).decode


def read(text: bytes) -> Any:
    """Return the value of a JSON text, with its wide numbers as JavaScript has them.

    Raises:
        Malformed: it is not JSON, or nested too deeply.
        BadRequest: it holds a number that would change.
    """
    try:
        value = _decode(text)
        return value if _holds_wide(text) is None else _narrowed(value)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Malformed(INVALID) from None


def _narrowed(value: Any) -> Any:
    if type(value) is int and value not in NARROW:
        return _double(value)
    if isinstance(value, list):
        return [_narrowed(item) for item in value]
    if isinstance(value, dict):
        return {key: _narrowed(item) for key, item in value.items()}
    return value


def _double(value: int) -> float:
    try:
        double = float(value)
    except OverflowError:
        double = 0.0
    if double != value:
        shown = str(value) if abs(value) < 10**40 else "a whole number of many digits"
        raise BadRequest(
            f"{shown} is no number that JSON readers agree on (2^53 and its multiples by powers of "
            "2 at most); send it as text"
        )
    return double


def written(value: Any) -> bytes:
    """Return a value as JSON text; what is undefined is left out."""
    return _encode(value)


def unpacked(packed: bytes | memoryview) -> Any:
    """Return a value of the bunqueue wire as one that ``written`` takes."""
    return _plain(_unpack(packed))


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) <= 2**53 else value
    if kind is dict:
        return {_name(key): _plain(item) for key, item in value.items() if item is not UNSET}
    if kind is list:
        return [None if item is UNSET else _plain(item) for item in value]
    return value


def _name(key: Any) -> Any:
    return key if isinstance(key, str) else str(key)


def _extension(code: int, data: memoryview) -> Ext | UnsetType:
    return UNSET if code == 0 else Ext(code, bytes(data))
