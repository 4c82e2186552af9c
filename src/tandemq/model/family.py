"""What flows write into the users' data, so that clients know their parents and children.

A child's data names its parent under ``__parentId`` and ``__parentQueue``, a parent's data lists
its children under ``__childrenIds`` (bunqueue wire-commands 4.1). Data that is no map stays as it
is: nothing can be written into it without destroying it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tandemq.model.body import Malformed, entries, is_map, map_head

PARENT: Final = "__parentId"
PARENT_QUEUE: Final = "__parentQueue"
CHILDREN: Final = "__childrenIds"

_EMPTY: Final = (b"", b"\xc0", b"\xd4\x00\x00")  # no data, nil, JavaScript's undefined


class Marks(
    msgspec.Struct,
    rename={"parent": PARENT, "parent_queue": PARENT_QUEUE, "children": CHILDREN},
    gc=False,
):
    """What the data says of its job's family; None where it says nothing."""

    parent: Any = None
    parent_queue: Any = None
    children: Any = None


_NONE = Marks()
_decode = msgspec.msgpack.Decoder(Marks).decode
_encode = msgspec.msgpack.Encoder().encode


def marks(raw: bytes) -> Marks:
    """Read what the data says; what is no map, or cannot be read, says nothing."""
    if not raw or not is_map(raw[0]):
        return _NONE
    try:
        return _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # keys that are no text, or odd bytes: entry by entry
    found = {name: value for key, value in _entries(raw) if (name := _MARKED.get(key))}
    try:
        return Marks(**{name: msgspec.msgpack.decode(value) for name, value in found.items()})
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _NONE


_MARKED = {
    _encode(PARENT): "parent",
    _encode(PARENT_QUEUE): "parent_queue",
    _encode(CHILDREN): "children",
}


def with_parent(raw: bytes, id: str, queue: str) -> bytes:
    """Return the data of a child of ``id``, which lives in ``queue``."""
    return _with(raw, {PARENT: id, PARENT_QUEUE: queue})


def without_parent(raw: bytes) -> bytes:
    """Return the data of a child that has no parent any more."""
    return _with(raw, {PARENT: None, PARENT_QUEUE: None})


def with_children(raw: bytes, ids: Sequence[str]) -> bytes:
    """Return the data of a parent of ``ids``."""
    return _with(raw, {CHILDREN: list(ids)})


def _with(raw: bytes, changes: Mapping[str, Any]) -> bytes:
    """Write fields into a map, in their old places or at its end; None takes one out."""
    if raw not in _EMPTY and not is_map(raw[0]):
        return raw
    fields = dict(_entries(raw)) if raw not in _EMPTY else {}
    for name, value in changes.items():
        if value is None:
            fields.pop(_encode(name), None)
        else:
            fields[_encode(name)] = _encode(value)
    parts = [part for entry in fields.items() for part in entry]
    return map_head(len(fields)) + b"".join(parts)


def _entries(raw: bytes) -> list[tuple[bytes, bytes]]:
    """Return the entries of a map as they are encoded; none of what cannot be read."""
    try:
        return list(entries(raw))
    except Malformed:
        return []
