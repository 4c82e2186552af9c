"""The tolerant reader: what a JavaScript peer sees in a frame the typed decoder refuses.

Wrong types, the "undefined" extension, invalid UTF-8, odd keys and 64-bit integers are all
readable to the reference peer, and each has its own answer (wire-commands 1 and 2). This reader
keeps those differences visible and leaves the users' data untouched. Nothing here recurses, so no
frame can exhaust the stack.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec
from msgspec.msgpack import Ext

from tandemq.model.body import (
    BINARIES,
    EXTENSIONS,
    MAX_DEPTH,
    MAX_VALUES,
    TEXTS,
    Malformed,
    TooMany,
    body_span,
    container,
    is_list,
    is_map,
    number_text,
    skip,
    text_of,
)
from tandemq.model.values import WideInteger

RAW_KEYS: Final = frozenset({"data", "result"})
UNDEFINED: Final = msgspec.UNSET

__all__ = [
    "MAX_DEPTH",
    "MAX_VALUES",
    "NEVER_USED",
    "RAW_KEYS",
    "UNDEFINED",
    "Malformed",
    "NeverUsed",
    "Reader",
    "TooMany",
    "WideInteger",
    "js_text",
    "read_command",
    "truthy",
]


class NeverUsed:
    """The type of the value that the reserved byte 0xc1 stands for: an object without fields."""


NEVER_USED: Final = NeverUsed()

# ------------------------------------------------------------------------------- single values

_Found: TypeAlias = "tuple[object, int]"  # the value and where it ends
_Leaf: TypeAlias = Callable[[bytes, int], _Found]

_f32 = struct.Struct(">f").unpack_from
_f64 = struct.Struct(">d").unpack_from


def _text(buf: bytes, pos: int) -> _Found:
    start, stop = body_span(buf, pos)
    return text_of(buf[start:stop]), stop


def _binary(buf: bytes, pos: int) -> _Found:
    start, stop = body_span(buf, pos)
    return buf[start:stop], stop


def _extension(buf: bytes, pos: int) -> _Found:
    start, stop = body_span(buf, pos)
    kind = buf[start]
    if kind == 0:  # "undefined", whatever it carries
        return UNDEFINED, stop
    return Ext(kind - 256 if kind > 127 else kind, buf[start + 1 : stop]), stop


def _integer(width: int, signed: bool) -> _Leaf:
    def read(buf: bytes, pos: int) -> _Found:
        stop = pos + 1 + width
        number = int.from_bytes(buf[pos + 1 : stop], "big", signed=signed)
        return WideInteger(number) if width == 8 else number, stop

    return read


def _leaves() -> list[_Leaf | None]:
    table: list[_Leaf | None] = [None] * 256
    table[:0x80] = [lambda buf, pos: (buf[pos], pos + 1)] * 0x80
    table[0xE0:] = [lambda buf, pos: (buf[pos] - 256, pos + 1)] * 0x20
    table[0xC0] = lambda _, pos: (None, pos + 1)
    table[0xC1] = lambda _, pos: (NEVER_USED, pos + 1)
    table[0xC2] = lambda _, pos: (False, pos + 1)
    table[0xC3] = lambda _, pos: (True, pos + 1)
    table[0xCA] = lambda buf, pos: (_f32(buf, pos + 1)[0], pos + 5)
    table[0xCB] = lambda buf, pos: (_f64(buf, pos + 1)[0], pos + 9)
    table[0xCC:0xD0] = [_integer(width, signed=False) for width in (1, 2, 4, 8)]
    table[0xD0:0xD4] = [_integer(width, signed=True) for width in (1, 2, 4, 8)]
    for first in TEXTS:
        table[first] = _text
    for first in BINARIES:
        table[first] = _binary
    for first in EXTENSIONS:
        table[first] = _extension
    return table


_LEAVES: Final = _leaves()

# ------------------------------------------------------------------------------------- reading


class _Open:
    """A list or map whose members are still arriving."""

    __slots__ = ("is_map", "members", "size")

    def __init__(self, size: int, is_map: bool) -> None:
        self.size, self.is_map = size, is_map
        self.members: list[object] = []

    def close(self) -> object:
        if not self.is_map:
            return self.members
        found: dict[str, object] = {}
        for key, value in zip(self.members[::2], self.members[1::2], strict=True):
            name = _key_text(key)
            if name != "__proto__":
                found[name] = value
        return found


def _key_text(key: object) -> str:
    """A map key as a JavaScript property name. Lists, maps and binaries are refused as keys."""
    if type(key) is str:
        return key
    if key is None or key is UNDEFINED or isinstance(key, (int, float)):
        return js_text(key)
    raise Malformed("a map key must be a scalar")


class Reader:
    """A position in a frame. Its methods read one thing each and move past it.

    They let IndexError and struct.error through when the bytes end inside a number.
    """

    __slots__ = ("allowance", "buf", "pos")

    def __init__(self, buf: bytes, allowance: int = MAX_VALUES) -> None:
        self.buf, self.pos = buf, 0
        self.allowance = allowance  # members that lists and maps may still announce

    def enter(self) -> int:
        """Step inside the list or map that begins here; return how many members it has."""
        size, self.pos = container(self.buf, self.pos)
        self.allowance -= size
        if self.allowance < 0:
            raise TooMany("too many values")
        return size

    def value(self, depth: int = MAX_DEPTH) -> object:
        """Any value, as plain Python objects."""
        buf, pos = self.buf, self.pos
        opened: list[_Open] = []
        while True:
            first = buf[pos]
            leaf = _LEAVES[first]
            if leaf is not None:
                item, pos = leaf(buf, pos)
            else:
                if len(opened) >= depth:
                    raise Malformed("nested too deeply")
                self.pos = pos
                size = self.enter()
                pos = self.pos
                if size:
                    opened.append(_Open(size, is_map(first)))
                    continue
                item = {} if is_map(first) else []
            while opened:
                entry = opened[-1]
                entry.members.append(item)
                if len(entry.members) < entry.size:
                    break
                item = opened.pop().close()
            else:
                self.pos = pos
                return item

    def raw(self) -> msgspec.Raw:
        """Any value, undecoded: a copy of its bytes."""
        start = self.pos
        self.pos = skip(self.buf, start)
        return msgspec.Raw(self.buf[start : self.pos])

    def user_data(self) -> object:
        """A value that belongs to the users: its bytes, or UNDEFINED when it is that extension."""
        start = self.pos
        raw = self.raw()
        if self.buf[start] in EXTENSIONS and self.buf[body_span(self.buf, start)[0]] == 0:
            return UNDEFINED
        return raw

    def fields(self, special: dict[str, Callable[[Reader], object]]) -> dict[str, object]:
        """A map whose `special` keys have readers of their own. Undefined values are absent."""
        found: dict[str, object] = {}
        for _ in range(self.enter() // 2):
            key = _key_text(self.value())
            value = special.get(key, Reader.value)(self)
            if value is UNDEFINED:
                found.pop(key, None)  # the last of equal keys wins, even when it says nothing
            elif key != "__proto__":
                found[key] = value
        return found

    def each(self, read: Callable[[Reader], object]) -> object:
        """A list with a reader for its members; anything else as it is."""
        if not is_list(self.buf[self.pos]):
            return self.value()
        return [read(self) for _ in range(self.enter())]

    def job(self) -> object:
        """A member of a batch: a map of job fields; anything else as it is."""
        return self.fields(_JOB) if is_map(self.buf[self.pos]) else self.value()


_Read: TypeAlias = Callable[[Reader], object]
_DATA: Final[dict[str, _Read]] = dict.fromkeys(RAW_KEYS, Reader.user_data)


def _input(reader: Reader) -> object:
    """A member of PUSHF carries its job one level further down, under "input"."""
    return reader.fields(_DATA) if is_map(reader.buf[reader.pos]) else reader.value()


_JOB: Final[dict[str, _Read]] = {**_DATA, "input": _input}
_COMMAND: Final[dict[str, _Read]] = {
    **_DATA,
    "jobs": lambda reader: reader.each(Reader.job),
    "results": lambda reader: reader.each(Reader.raw),
}


def read_command(frame: bytes) -> object:
    """The one value in a frame, as the reference peer would see it (wire-commands 1).

    A map becomes a dict with JavaScript property names, in which the users' data (`RAW_KEYS`, also
    inside the maps of `jobs`, and the members of `results`) stays `msgspec.Raw`.

    Raises:
        Malformed: for undecodable, truncated or trailing bytes.
    """
    reader = Reader(frame)
    try:
        found = reader.fields(_COMMAND) if is_map(frame[0]) else reader.value()
    except (IndexError, struct.error):
        raise Malformed("truncated") from None
    if reader.pos != len(frame):
        raise Malformed("bytes are left over, or missing")
    return found


# ------------------------------------------------------------------------- JavaScript's opinion


def js_text(value: object) -> str:
    """What String(value) gives in JavaScript: for error texts and property names."""
    if not isinstance(value, list):
        return _scalar_text(value)
    texts: list[str] = []
    stack: list[object] = [value]  # lists inside lists are flattened, without recursion
    while stack:
        item = stack.pop()
        if isinstance(item, list) and item:
            stack.extend(reversed(item))
        elif item is None or item is UNDEFINED or item == []:
            texts.append("")
        else:
            texts.append(_scalar_text(item))
    return ",".join(texts)


def _scalar_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return number_text(value)
    if value is None:
        return "null"
    if value is UNDEFINED:
        return "undefined"
    return text_of(value) if isinstance(value, bytes) else "[object Object]"


def truthy(value: object) -> bool:
    """Whether JavaScript takes the value for true: empty lists, maps and binaries are."""
    if value is None or value is UNDEFINED:
        return False
    if isinstance(value, float):
        return bool(value) and not math.isnan(value)
    return bool(value) if isinstance(value, (int, str)) else True
