"""Users' data on its way in: byte for byte where every client can read it, made readable elsewhere.

What one client sends goes out to others, and not all of them read all of MessagePack: text that is
no UTF-8, keys that are no text, or an unknown extension make the official clients drop an answer,
or their connection. So data takes the form that the reference would hand out: names of members
become text, what is no text is replaced. What has no such form is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Union

import msgspec
from msgspec import Raw
from msgspec.msgpack import Ext

from tandemq.commands.table import ABSENT
from tandemq.model import body
from tandemq.model.errors import BadRequest
from tandemq.wires.bunqueue import codec, lenient

DEPTH: Final = 8  # levels of lists and maps that are looked at in one go; the rest goes slowly
TIMESTAMP: Final = -1  # the extension that every client knows


def _plain_type() -> Any:
    known: Any = Union[None, bool, int, float, str]  # noqa: UP007  # grows in a loop
    for _ in range(DEPTH):
        known = Union[None, bool, int, float, str, list[known], dict[str, known]]  # noqa: UP007
    return known


_decode_plain = msgspec.msgpack.Decoder(_plain_type()).decode


def all_plain(values: Iterable[Raw]) -> bool:
    """Whether every client can read these values as they are."""
    try:
        for raw in values:
            if raw is not ABSENT:
                _decode_plain(raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def readable(raw: Raw) -> Raw:
    """Return a value in a form that every client can read.

    A value with 64-bit integers stays as it is where it is a job's data: there it is refused.

    Raises:
        BadRequest: it has no such form.
    """
    if all_plain((raw,)):
        return raw
    reader = lenient.Reader(bytes(raw))
    try:
        value = reader.value()
    except (lenient.Malformed, ValueError, IndexError) as exc:
        raise BadRequest("Job data must be JSON serializable") from exc
    return Raw(codec.encode(_as_clients_see(value)))


def readable_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a command with all users' data in them made readable.

    Raises:
        BadRequest: some of it has no readable form.
    """
    return {name: _field(name, value) for name, value in fields.items()}


def _field(name: str, value: Any) -> Any:
    if isinstance(value, Raw):
        # In data a wide integer is an error that the command reports; elsewhere it is narrowed.
        wide = name == "data" and body.holds_wide_integer(bytes(value))
        return value if wide else readable(value)
    if isinstance(value, dict):
        return readable_fields(value)
    if isinstance(value, list) and name in ("jobs", "results"):
        return [_field("result" if name == "results" else "", item) for item in value]
    return value


def _as_clients_see(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_clients_see(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_clients_see(item) for item in value]
    unknown = isinstance(value, Ext) and value.code != TIMESTAMP
    if unknown or value is lenient.NEVER_USED:
        raise BadRequest("Job data must be JSON serializable")
    return codec.narrow(value)
