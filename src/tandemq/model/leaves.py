"""Large data, looked over some thousands of values at a time and never built as a whole.

Built by the decoder, an empty list takes seventy times its byte. What is asked of data is asked of
its leaves, the texts and numbers; they can be handed over in lists, wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from tandemq.model.body import (
    BINARIES,
    LENGTH_FORM,
    MAX_DEPTH,
    TEXTS,
    WHOLE_SIZE,
    Malformed,
    TooMany,
    body_span,
    container,
    is_list,
    is_map,
)

AT_ONCE: Final = 64 << 20  # bytes that may be built of one value
CONTAINER: Final = 100  # bytes that a list or map takes beside its members
TEXT: Final = 50  # bytes that a text takes beside its letters
MEMBER: Final = 8  # bytes that a list needs for each member
ALWAYS_LIGHT: Final = AT_ONCE // (CONTAINER + MEMBER)  # bytes of a value, whatever it holds

_CONTAINERS: Final = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))
_TEXTS: Final = bytes(TEXTS)


def weight(raw: bytes) -> int:
    """About how many bytes it takes at most to build the lists, maps and texts of a value."""
    containers = len(raw) - len(raw.translate(None, _CONTAINERS))
    texts = len(raw) - len(raw.translate(None, _TEXTS))
    return containers * CONTAINER + texts * TEXT


def light(raw: bytes, cost: int | None = None) -> bool:
    """Whether a value may be built as a whole; `cost` is its weight, where it is known."""
    if len(raw) <= ALWAYS_LIGHT:
        return True
    return len(raw) * MEMBER + (weight(raw) if cost is None else cost) <= AT_ONCE


# ------------------------------------------------------------------------------------- survey

CHUNK: Final = 1 << 16  # leaves that are looked at together
CHUNK_BYTES: Final = 1 << 20
RUN: Final = 32  # members from which on it pays to look for a run
DEAR: Final = 2  # steps that a list, a map or a long text costs besides its own

Look = Callable[[bytes], int]

_run = re.compile(rb"[\x00-\x7f\xa0\xc0\xc2\xc3\xe0-\xff]*+")  # leaves of a single byte
_empty = re.compile(rb"[\x80\x90]*+")
_EMPTY: Final = (0x80, 0x90)


class Steps:
    """How many values may still be looked at one by one.

    A long text counts as three, as does a list or map that holds some; values of a single byte go
    many to a step.
    """

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


def survey(raw: bytes, look: Look, steps: Steps) -> int:
    """Hand the leaves of a well-formed value to `look`, in lists encoded like the value.

    Lists, maps and binaries are passed over; all that can be said of a binary is its length.

    Return the length of its JSON text, if `look` returns that of such a list. What `look` raises
    goes through.

    Raises:
        Malformed: a key is no text, or lists are nested deeper than we are willing to read.
        TooMany: the steps are used up.
    """
    total = count = dear = spare = 0
    parts: list[bytes] = []  # leaves that are not looked at yet, `count` of them
    outer: list[tuple[int, bool]] = []  # of all around: members still to come, whether it is a map
    left, keyed = 1, False
    start = pos = 0  # leaves stand in a row from `start` on
    try:
        for spare in range(steps.left - 1, -1, -1):
            first = raw[pos]
            if keyed and not left & 1 and first not in TEXTS:
                raise Malformed("a key is no text")
            left -= 1
            if size := WHOLE_SIZE[first]:
                if size == 1 and left > RUN and not keyed:
                    size = _length(_run, raw, pos, min(left, CHUNK))
                    left, count = left - size + 1, count + size - 1
                pos, count = pos + size, count + 1
                if left and count < CHUNK:
                    continue
            elif first in LENGTH_FORM and first not in BINARIES:
                pos = body_span(raw, pos)[1]
                count += 1
                dear += DEAR
            else:
                if start < pos:
                    parts.append(raw[start:pos])
                if first in BINARIES:
                    begin, start = body_span(raw, pos)
                    total += (start - begin + 2) // 3 * 4 + 2  # base64 in quotes
                elif first in _EMPTY:
                    size = _length(_empty, raw, pos, left) if left > RUN and not keyed else 1
                    left, total, start = left - size + 1, total + 2 * size, pos + size
                else:
                    outer.append((left, keyed))
                    if first < 0xA0:  # most are short
                        keyed, start = first < 0x90, pos + 1
                        left = (first & 0x0F) * 2 if keyed else first & 0x0F
                    else:
                        keyed = is_map(first)
                        left, start = container(raw, pos)
                    total += left + 1 if left else 2  # brackets, commas and colons
                    dear += DEAR
                    if len(outer) > MAX_DEPTH:
                        raise Malformed("nested too deeply")
                pos = start
            if dear > spare:
                break
            while not left and outer:
                left, keyed = outer.pop()
            if not left or count >= CHUNK or pos - start >= CHUNK_BYTES:
                parts.append(raw[start:pos])
                start = pos
                if count:
                    total += look(_list_of(count, parts)) - count - 1
                parts, count = [], 0
                if not left:
                    return total
    finally:
        steps.left = max(0, spare - dear)
    raise TooMany("more values than anybody needs")


def _list_of(count: int, parts: list[bytes]) -> bytes:
    return b"\xdd" + count.to_bytes(4, "big") + b"".join(parts)


def _length(run: re.Pattern[bytes], raw: bytes, pos: int, most: int) -> int:
    """Bytes of a run at `pos`, of which the first is known to belong to it."""
    found = run.match(raw, pos, pos + most)
    assert found is not None, "it may be empty"
    return found.end() - pos


# --------------------------------------------------------------------------------- JSON length

_decode_any = msgspec.msgpack.Decoder().decode
_encode_json = msgspec.json.Encoder().encode

MOST_PER_BYTE: Final = 6  # a control character becomes \u0001, false with its comma takes as many
LEAST_PER_BYTE: Final = 1 / 5  # a letter of four bytes is one, eight bytes may be a number 0


def json_length_over(raw: bytes, limit: int, *, in_bytes: bool = False) -> bool:
    """Whether the value's JSON text has more than `limit` characters, or bytes of UTF-8.

    Numbers count as msgspec spells them. What JSON does not know, or nobody could read back, counts
    as many characters as it has bytes. Never raises, and never decodes what is too long anyway.
    """
    if len(raw) * MOST_PER_BYTE <= limit:
        return False
    if len(raw) * LEAST_PER_BYTE > limit:
        return True
    look = _json_bytes if in_bytes else _json_characters
    try:
        if light(raw) or not (is_list(raw[0]) or is_map(raw[0])):
            return look(raw) > limit
        return survey(raw, look, Steps(limit)) > limit  # no value and no comma takes less than one
    except TooMany:
        return True
    except (Malformed, msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return len(raw) > limit


_FOLLOWING: Final = bytes(range(0x80, 0xC0))  # bytes of a letter after its first


def _json_bytes(raw: bytes) -> int:
    return len(_encode_json(_decode_any(raw)))


def _json_characters(raw: bytes) -> int:
    text = _encode_json(_decode_any(raw))
    return len(text.translate(None, _FOLLOWING))
