"""A push that asks for nothing, as most do: its body becomes the request without a frame between.

What the frame would be looked at for cannot be in a small body of JSON, so this halves the cost of
reading. Whatever is not like that is read as everything else, and gets the same answer.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from tandemq.commands.plain import PlainPush
from tandemq.commands.push import Name
from tandemq.commands.table import ABSENT
from tandemq.server.http.jsontext import packed

SMALL: Final = 4 << 10  # bytes of a body
DEEP: Final = 8  # brackets in it; what is nested deeper is looked at more closely


class Body(Struct, forbid_unknown_fields=True, gc=False):
    """The fields of such a push."""

    data: Any = UNSET
    name: Name | UnsetType = UNSET


_decode = msgspec.json.Decoder(Body).decode


def plain_push(queue: str, body: bytes) -> PlainPush | None:
    """Return the request of a body that holds data and a name at most; None for any other.

    Raises:
        BadRequest: the data holds a number that would change.
    """
    if len(body) > SMALL or body.count(b"{") + body.count(b"[") > DEEP:
        return None
    try:
        found = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    data = ABSENT
    if found.data is not UNSET:
        data = Raw(packed([found.data])[1:])  # without the head of that list
    return PlainPush(queue=queue, data=data, name=found.name)
