"""Looks at JSON text without building what it says: is it well formed, is it nested too deep."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

import msgspec
from msgspec import Raw

DEPTH: Final = 64  # objects and arrays inside each other that real peers read

_skim = msgspec.json.Decoder(Raw).decode

_BESIDE_BRACKETS = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_STEP = [1 if byte in b"[{" else -1 for byte in range(256)]


def well_formed(text: bytes) -> bool:
    """Whether these bytes are exactly one JSON value in UTF-8."""
    try:
        _skim(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return is_utf8(text)


def is_utf8(text: bytes) -> bool:
    """Whether these bytes are text."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def too_deep(text: bytes, depth: int = DEPTH) -> bool:
    """Whether well-formed JSON is nested deeper than ``depth``."""
    if len(text) <= 2 * depth or text.count(b"[") + text.count(b"{") <= depth:
        return False
    bare = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _BESIDE_BRACKETS)
    # Two quotes in a row end one string and begin the next, or are an empty one: without them the
    # same brackets are inside of strings. Of the rest, every second part is outside.
    brackets = b"".join(bare.replace(b'""', b"").split(b'"')[::2])
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > depth
