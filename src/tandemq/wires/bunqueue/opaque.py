"""Users' data on its way in: byte for byte where every client can read it, made readable elsewhere.

What one client sends goes out to others, and not all of them read all of MessagePack: text that is
no UTF-8, keys that are no text, or an unknown extension make the official clients drop an answer,
or their connection. So data takes the form that the reference would hand out: names of members
become text, what is no text is replaced. What has no such form is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.msgpack import Ext

from tandemq.commands.jobdata import DATA_BYTES, DATA_LIMIT
from tandemq.commands.table import ABSENT
from tandemq.model import body, leaves
from tandemq.model.errors import BadRequest
from tandemq.wires.bunqueue import codec, lenient

DEPTH: Final = 8  # levels of lists and maps that are looked at in one go; the rest goes slowly
TIMESTAMP: Final = -1  # the extension that every client knows

FREE: Final = 8 << 20  # bytes of small data that are built without being weighed
BUILT: Final = 768 << 20  # bytes that one frame's data may take when it is built, piece by piece
STEPS: Final = DATA_LIMIT // 2  # values that are looked at one by one: the largest data has room
REMADE: Final = body.MAX_VALUES  # values that are made readable
REMADE_BYTES: Final = 16 << 20  # of one piece of data: a bad byte becomes a letter of three

NO_JSON = "Job data must be JSON serializable"
TOO_ODD = f"Data of more than {REMADE_BYTES} bytes must be readable to all clients as it is"
TOO_MANY = "The data in this request holds too many values; send it in parts"


_LEAF: Any = None | bool | int | float | str


def _plain_type() -> Any:
    known: Any = _LEAF
    for _ in range(DEPTH):
        known = _LEAF | list[known] | dict[str, known]
    return known


_decode_plain = msgspec.msgpack.Decoder(_plain_type()).decode
_decode_leaves = msgspec.msgpack.Decoder(list[_LEAF]).decode


def all_plain(values: Iterable[Raw]) -> bool:
    """Whether every client can read these values, which are small, as they are."""
    try:
        for raw in values:
            if raw is not ABSENT:
                _decode_plain(raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


class Glass:
    """What the data of one frame is looked at with. It is good for so much and no more.

    A frame of empty lists decodes into seventy times its size, and would hold up all others.
    """

    __slots__ = ("_built", "_free", "_remade", "_steps")

    def __init__(self) -> None:
        self._free, self._built = FREE, BUILT
        self._steps, self._remade = leaves.Steps(STEPS), REMADE

    def all_plain(self, values: Iterable[Raw]) -> bool:
        """The same for values that may be large.

        Raises:
            BadRequest: they are too many.
        """
        given = [raw for raw in values if raw is not ABSENT]
        sizes = [len(memoryview(raw)) for raw in given]
        if not given or (max(sizes) <= leaves.ALWAYS_LIGHT and sum(sizes) <= self._free):
            return all_plain(given)
        return all(map(self._plain, given))

    def _plain(self, raw: Raw) -> bool:
        if self._may_build(raw) and all_plain((raw,)):
            return True
        try:
            leaves.survey(bytes(raw), _look, self._steps)  # it is large, or deep, or not plain
        except body.TooMany:
            raise BadRequest(TOO_MANY) from None
        except (body.Malformed, msgspec.DecodeError, IndexError):
            return False
        return True

    def _may_build(self, raw: Raw) -> bool:
        size = len(memoryview(raw))
        if size <= leaves.ALWAYS_LIGHT and size <= self._free:
            self._free -= size
            return True
        given = bytes(raw)
        cost = leaves.weight(given)
        if cost > self._built or not leaves.light(given, cost):
            return False
        self._built -= cost
        return True

    def readable(self, raw: Raw) -> Raw:
        """Return a value in a form that every client can read.

        Raises:
            BadRequest: it has no such form, or it is too large to be given one.
        """
        if self._plain(raw):
            return raw
        given = bytes(raw)
        if len(given) > REMADE_BYTES:
            raise BadRequest(TOO_ODD)
        reader = lenient.Reader(given, self._remade)
        try:
            value = _as_clients_see(reader.value())
            self._remade = reader.allowance
            return Raw(codec.encode(value))
        except lenient.TooMany:
            raise BadRequest(TOO_MANY) from None
        except (lenient.Malformed, ValueError, IndexError, RecursionError) as exc:
            raise BadRequest(NO_JSON) from exc

    def fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a command with all users' data in them made readable.

        Raises:
            BadRequest: some of it has no readable form.
        """
        return {name: self._field(name, value) for name, value in fields.items()}

    def _field(self, name: str, value: Any) -> Any:
        if isinstance(value, Raw):
            refused = name == "data" and _is_refused(bytes(value))
            return value if refused else self.readable(value)
        if isinstance(value, dict):
            return self.fields(value)
        if isinstance(value, list) and name in ("jobs", "results"):
            return [self._field("result" if name == "results" else "", item) for item in value]
        return value


def _is_refused(data: bytes) -> bool:
    """Whether the command itself refuses this data, in better words than could be found here.

    A wide integer is narrowed everywhere else.
    """
    return len(data) > DATA_BYTES or body.holds_wide_integer(data)


def _look(leaves: bytes) -> int:
    _decode_leaves(leaves)
    return 0


def _as_clients_see(value: Any) -> Any:
    """Return a value of the tolerant reader as all clients see it; lists and maps are changed."""
    if not isinstance(value, (list, dict)):
        return _leaf_as_clients_see(value)
    todo = [value]
    while todo:
        held = todo.pop()
        members = held.items() if isinstance(held, dict) else enumerate(held)
        for key, item in members:
            if isinstance(item, (list, dict)):
                todo.append(item)
            else:
                held[key] = _leaf_as_clients_see(item)
    return value


def _leaf_as_clients_see(value: Any) -> Any:
    unknown = isinstance(value, Ext) and value.code != TIMESTAMP
    if unknown or value is lenient.NEVER_USED:
        raise BadRequest(NO_JSON)
    return codec.narrow(value)
