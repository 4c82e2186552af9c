"""The fields of a command that the typed reader refused: the quick way, where there is one.

Nearly all such frames are odd in a value or two. Where the names of their fields are texts, they
are taken apart without a walk through users' data; all others are left to the tolerant reader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec
from msgspec import Raw

from tandemq.model import body
from tandemq.wires.bunqueue import lenient
from tandemq.wires.bunqueue.lenient import RAW_KEYS, UNDEFINED, Malformed, Reader, TooMany

FIELDS: Final = 10_000  # entries of a command, or of a job of one
MEMBERS: Final = 100_000  # jobs of one, or results
VALUES: Final = 262_144  # values of one, its jobs and results aside

_decode_map = msgspec.msgpack.Decoder(dict[str, Raw]).decode
_decode_list = msgspec.msgpack.Decoder(list[Raw]).decode

_Read: TypeAlias = "Callable[[_Outline, Raw], object]"


def read_command(frame: bytes) -> object:
    """The one value in a frame, just as ``lenient.read_command`` returns it.

    Raises:
        Malformed: for undecodable, truncated or trailing bytes.
        TooMany: it holds too many values besides users' data.
    """
    try:
        if frame and body.is_map(frame[0]):
            return _Outline(VALUES).fields(Raw(frame), _COMMAND)
    except TooMany:
        raise
    except (Malformed, IndexError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass  # it takes the slow way, and words
    return lenient.read_command(frame)


class _Outline:
    """What a command, or all of its jobs, may still hold besides users' data."""

    __slots__ = ("_allowance",)

    def __init__(self, allowance: int) -> None:
        self._allowance = allowance

    def fields(self, raw: Raw, special: dict[str, _Read]) -> object:
        """A map whose `special` keys have readers of their own; anything else as it is.

        Undefined values are absent.
        """
        if not self._entered(raw, body.is_map, 2 * FIELDS):
            return self.value(raw)
        found: dict[str, object] = {}
        for name, held in _decode_map(raw).items():
            value = special.get(name, _Outline.value)(self, held)
            if value is not UNDEFINED and name != "__proto__":
                found[name] = value
        return found

    def each(self, raw: Raw, read: _Read) -> object:
        """A list with a reader for its members; anything else as it is."""
        if not self._entered(raw, body.is_list, MEMBERS):
            return self.value(raw)
        return [read(self, member) for member in _decode_list(raw)]

    def value(self, raw: Raw) -> object:
        """Any value, as plain Python objects."""
        reader = Reader(bytes(raw), self._allowance)
        value = reader.value()
        self._allowance = reader.allowance
        return value

    def data(self, raw: Raw) -> object:
        """A value that belongs to the users: its bytes, or UNDEFINED when it is that extension."""
        undefined = memoryview(raw)[0] in body.EXTENSIONS and self.value(raw) is UNDEFINED
        return UNDEFINED if undefined else raw

    def _entered(self, raw: Raw, kind: Callable[[int], bool], most: int) -> bool:
        """Whether a value is of a kind, whose members are then counted.

        Raises:
            TooMany
        """
        view = memoryview(raw)
        if not kind(view[0]):
            return False
        members, _ = body.container(view, 0)
        self._allowance -= members
        if members > most or self._allowance < 0:
            raise TooMany("too many values")
        return True


_DATA: Final[dict[str, _Read]] = dict.fromkeys(RAW_KEYS, _Outline.data)
_JOB: Final[dict[str, _Read]] = {
    **_DATA,
    "input": lambda outline, raw: outline.fields(raw, _DATA),
}


def _jobs(_: _Outline, raw: Raw) -> object:
    return _Outline(body.MAX_VALUES).each(raw, lambda outline, raw: outline.fields(raw, _JOB))


def _results(outline: _Outline, raw: Raw) -> object:
    return outline.each(raw, lambda _, raw: raw)


_COMMAND: Final[dict[str, _Read]] = {**_DATA, "jobs": _jobs, "results": _results}
