"""Looks into the users' data, where the protocol demands it and nowhere else.

Data is one MessagePack value and stays the bytes it came as. The wire asks four things about it:
is it well formed, does it hold a 64-bit integer, is its JSON text too long (wire-commands 2, see
``leaves``), and does it carry the job's name in the way of older clients (wire-commands 4, PUSH).
Every question has a cheap answer for nearly all data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import msgspec

MAX_VALUES: Final = 1_048_576  # in one frame: an empty list takes a single byte there
MAX_DEPTH: Final = 512  # of lists and maps, unless the caller says otherwise


class Malformed(ValueError):
    """The bytes are not exactly one MessagePack value that we are willing to read."""


class TooMany(Malformed):
    """The value holds more values than we are willing to look at."""


def _whole_sizes() -> list[int]:
    sizes = [0] * 256
    for single in (*range(0x80), 0xC0, 0xC2, 0xC3, *range(0xE0, 0x100)):
        sizes[single] = 1
    sizes[0xA0:0xC0] = range(1, 33)
    sizes[0xCA:0xD4] = (5, 9, 2, 3, 5, 9, 2, 3, 5, 9)  # floats, unsigned, signed
    sizes[0xD4:0xD9] = (3, 4, 6, 10, 18)  # extensions
    return sizes


WHOLE_SIZE: Final = _whole_sizes()
"""Bytes of the whole value by its first byte; 0 where the bytes that follow decide."""

_BIN = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0)}
_EXT = {0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}  # one more byte: the type
_STR = {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
LENGTH_FORM: Final = _BIN | _EXT | _STR
"""Strings, binaries and extensions by first byte: bytes of the length, bytes beside the body."""

TEXTS: Final = frozenset((*range(0xA0, 0xC0), *_STR))
BINARIES: Final = frozenset(_BIN)
EXTENSIONS: Final = frozenset((*range(0xD4, 0xD9), *_EXT))

COUNT_WIDTH: Final = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


def is_map(first: int) -> bool:
    """Whether a value that begins with this byte is a map."""
    return 0x80 <= first <= 0x8F or first == 0xDE or first == 0xDF


def is_list(first: int) -> bool:
    """Whether a value that begins with this byte is a list."""
    return 0x90 <= first <= 0x9F or first == 0xDC or first == 0xDD


def container(buf: bytes | memoryview, pos: int) -> tuple[int, int]:
    """Members of the list or map at `pos` (a map's keys count too) and where the first begins.

    Raises:
        Malformed: when fewer bytes follow than members are announced, before anything is built.
    """
    first = buf[pos]
    if 0x80 <= first <= 0x9F:
        size, start = first & 0x0F, pos + 1
    else:
        width = COUNT_WIDTH.get(first)
        if width is None:
            raise Malformed(f"byte 0x{first:02x} begins no value")
        start = pos + 1 + width
        size = int.from_bytes(buf[pos + 1 : start], "big")
    if is_map(first):
        size *= 2
    if size > len(buf) - start:
        raise Malformed("more members announced than bytes follow")
    return size, start


def body_span(buf: bytes, pos: int) -> tuple[int, int]:
    """Where the body of the string, binary or extension (its type included) at `pos` lies."""
    first = buf[pos]
    if size := WHOLE_SIZE[first]:
        start, stop = pos + 1, pos + size
    else:
        width, extra = LENGTH_FORM[first]
        start = pos + 1 + width
        stop = start + extra + int.from_bytes(buf[pos + 1 : start], "big")
    if stop > len(buf):
        raise Malformed("longer than the bytes that follow")
    return start, stop


def skip(buf: bytes, pos: int, depth: int = MAX_DEPTH, values: int = MAX_VALUES) -> int:
    """Where the value at `pos` ends. Linear, without recursion, nothing is decoded.

    Raises:
        Malformed: for truncated values, the reserved byte 0xc1 and nesting deeper than `depth`.
        TooMany: for more than `values` values in it.
    """
    return skip_some(buf, pos, depth, values)[0]


def skip_some(buf: bytes, pos: int, depth: int, values: int) -> tuple[int, int]:
    """The same; return also how many more values there might have been."""
    outer: list[int] = []  # members still to come, of every container around
    left, end = 1, len(buf)
    while True:
        if pos >= end:
            raise Malformed("truncated")
        values -= 1
        if values < 0:
            raise TooMany("more values than anybody needs")
        first = buf[pos]
        left -= 1
        if size := WHOLE_SIZE[first]:
            pos += size
        elif first in LENGTH_FORM:
            pos = body_span(buf, pos)[1]
        elif first == 0x80 or first == 0x90:
            pos += 1
        else:
            size, pos = container(buf, pos)
            if len(outer) >= depth:
                raise Malformed("nested too deeply")
            outer.append(left)
            left = size
        while not left:
            if not outer:
                if pos > end:
                    raise Malformed("truncated")
                return pos, values
            left = outer.pop()


def entries(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a map as they are encoded, however deep.

    Raises:
        Malformed: when it is not exactly one well-formed map.
    """
    members, pos = container(raw, 0)
    for _ in range(members // 2):
        middle = skip(raw, pos, len(raw))
        stop = skip(raw, middle, len(raw))
        yield raw[pos:middle], raw[middle:stop]
        pos = stop
    if pos != len(raw):
        raise Malformed("bytes are left over")


def map_head(count: int) -> bytes:
    """Return the shortest header of a map with so many entries."""
    if count <= 15:
        return bytes((0x80 | count,))
    if count <= 0xFFFF:
        return b"\xde" + count.to_bytes(2, "big")
    return b"\xdf" + count.to_bytes(4, "big")


def text_of(body: bytes) -> str:
    """Bytes as text; invalid UTF-8 is replaced, as a JavaScript TextDecoder does."""
    return body.decode("utf-8", "replace")


def well_formed(text: str) -> str:
    """Text without halves of surrogate pairs, which UTF-8 cannot say: they are replaced."""
    return text.encode("utf-8", "replace").decode()


# ------------------------------------------------------------------------------ wide integers

_WIDE: Final = (0xCF, 0xD3)
SHORT: Final = 32  # bytes from which on a text, binary or extension must tell its length


def _narrow_run() -> re.Pattern[bytes]:
    """A run of values that are no wide integers, as far as one byte tells their size.

    Heads of containers count too, and texts whose length is one byte more.
    """
    by_size: dict[int, list[int]] = {}
    heads = dict.fromkeys(range(0x80, 0xA0), 1) | {0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5}
    for first, whole in enumerate(WHOLE_SIZE):
        size = whole or heads.get(first, 0)
        if size and first not in _WIDE:
            by_size.setdefault(size, []).append(first)
    kinds = []
    for size, firsts in sorted(by_size.items()):
        choice = b"[" + b"".join(b"\\x%02x" % first for first in firsts) + b"]"
        kinds.append(choice + (b"++" if size == 1 else b".{%d}" % (size - 1)))
    for first, (width, extra) in LENGTH_FORM.items():
        # Texts of one byte of length are common. The others nobody spells so when they are short,
        # but a frame of millions of them should cost no more.
        most = 256 if first == 0xD9 else SHORT
        zeros = b"\\x00" * (width - 1)
        short = (b"\\x%02x.{%d}" % (size, size + extra) for size in range(most))
        head = b"\\x%02x%s(?=[\\x00-\\x%02x])" % (first, zeros, most - 1)
        kinds.append(head + b"(?:" + b"|".join(short) + b")")
    # Possessive repeats keep no history, so a long run costs no memory.
    return re.compile(b"(?:" + b"|".join(kinds) + b")*+", re.DOTALL)


_skip_narrow = _narrow_run().match


def holds_wide_integer(raw: bytes) -> bool:
    """Whether a 64-bit integer (0xcf, 0xd3) occurs anywhere inside a well-formed value.

    A JavaScript peer would see a BigInt, which JSON refuses (wire-commands 1).
    """
    return next(wide_integers(raw), None) is not None


def wide_integers(raw: bytes | bytearray) -> Iterator[int]:
    """Yield where the 64-bit integers of a well-formed value begin."""
    if 0xCF not in raw and 0xD3 not in raw:  # a number is found eight times faster than a byte
        return
    # Members follow their container's head, so the values simply stand in a row.
    pos, end = 0, len(raw)
    while found := _skip_narrow(raw, pos):
        pos = found.end()
        if pos >= end:
            return
        if raw[pos] in _WIDE:
            yield pos
            pos += 9
        elif raw[pos] in LENGTH_FORM:
            width, extra = LENGTH_FORM[raw[pos]]
            pos += 1 + width + extra + int.from_bytes(raw[pos + 1 : pos + 1 + width], "big")
        else:
            return


def number_text(number: float) -> str:
    """A float as JavaScript prints it: the shortest digits, a point only where it is needed."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number.is_integer() and abs(number) < 2**53:
        return str(int(number))
    sign = "-" if number < 0 else ""
    _, figures, exponent = Decimal(repr(number)).normalize().as_tuple()
    digits = "".join(map(str, figures))
    point = len(digits) + int(exponent)  # where the decimal point stands, counted from the left
    if 0 < point <= 21:
        whole = digits[:point].ljust(point, "0")
        return f"{sign}{whole}.{digits[point:]}".rstrip(".")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    mantissa = f"{digits[0]}.{digits[1:]}".rstrip(".")
    return f"{sign}{mantissa}e{point - 1:+d}"


# --------------------------------------------------------------------------------- legacy name

_decode_map = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.msgpack.Decoder(str).decode
_encode = msgspec.msgpack.Encoder().encode

_NAME_FORMS: Final = frozenset(
    (b"\xa4name", b"\xd9\x04name", b"\xda\x00\x04name", b"\xdb\x00\x00\x00\x04name")
)


def split_legacy_name(raw: bytes) -> tuple[str, bytes] | None:
    """Take a string `name` out of a map: the name, and the map without it.

    Everything else stays byte for byte behind the smallest map header. None when the value is no
    map or its (last) `name` is no string.
    """
    if not raw or not is_map(raw[0]) or (b"\xa4name" not in raw and b"\x04name" not in raw):
        return None
    try:
        fields = {} if raw[0] == 0xDF else _decode_map(raw)  # a map that large is not built
        held = fields.pop("name", None)
        if held is not None:
            name, rest = _decode_text(held), _encode(fields)
            # Duplicates and long-winded keys would make it shorter than cutting the entry out.
            if len(rest) == _size_without(raw, len(fields), len(memoryview(held))):
                return name, rest
    except (msgspec.MsgspecError, RecursionError):
        pass  # odd keys, invalid UTF-8, no string: the walker knows
    try:
        return _cut_name(raw)
    except Malformed:
        return None


def _size_without(raw: bytes, left: int, held: int) -> int:
    """Size of the map without an entry of key a4 "name", when `left` others are in it."""
    head = 1 if raw[0] <= 0x8F else 3 if raw[0] == 0xDE else 5
    return len(raw) - head - len(b"\xa4name") - held + len(map_head(left))


def _cut_name(raw: bytes) -> tuple[str, bytes] | None:
    """The same for any keys and however many, entry by entry."""
    members, start = container(raw, 0)
    kept: list[bytes] = []  # what stands between names
    left, held, pos = members // 2, b"", start
    for key, value in entries(raw):
        stop = pos + len(key) + len(value)
        if key in _NAME_FORMS:
            kept.append(raw[start:pos])
            held, left, start = value, left - 1, stop
        pos = stop
    if not held or held[0] not in TEXTS:
        return None
    kept.append(raw[start:])
    name = text_of(held[body_span(held, 0)[0] :])
    return name, map_head(left) + b"".join(kept)
