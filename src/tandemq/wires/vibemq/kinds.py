"""The types of frames: their numbers, which the binary wire sends, and names, which JSON does."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Kind(IntEnum):
    """What a frame is."""

    CONNECT = 0
    CONNECT_ACK = 1
    DISCONNECT = 2
    PING = 10
    PONG = 11
    PUBLISH = 20
    PUBLISH_ACK = 21
    SUBSCRIBE = 22
    SUBSCRIBE_ACK = 23
    UNSUBSCRIBE = 24
    UNSUBSCRIBE_ACK = 25
    DELIVER = 26
    ACK = 30
    NACK = 31  # ours; only where both sides know it
    CREATE_QUEUE = 40
    DELETE_QUEUE = 41
    QUEUE_INFO = 42
    LIST_QUEUES = 43
    ADMIN_CREATE_USER = 50
    ADMIN_DELETE_USER = 51
    ADMIN_CHANGE_PASSWORD = 52
    ADMIN_GRANT_PERMISSION = 53
    ADMIN_REVOKE_PERMISSION = 54
    ADMIN_LIST_USERS = 55
    ADMIN_GET_USER_PERMISSIONS = 56
    ERROR = 99


NAMES: Final = {kind.value: kind.name.title().replace("_", "") for kind in Kind}
"""``ConnectAck`` and so on, by number."""

_LOWER = {name.lower(): number for number, name in NAMES.items()}
_USUAL = {
    spelling: number
    for number, name in NAMES.items()
    for spelling in (name, name[0].lower() + name[1:])
}

SHOWN: Final = 100  # characters of an unknown name that an error repeats


def number_of(name: str) -> int | None:
    """Return the number of a type whose name has any letter case; None when there is none."""
    number = _USUAL.get(name)
    return number if number is not None else _LOWER.get(name.strip().lower())


def shown(kind: int | str) -> str:
    """Return a type as errors name it, be it known or not."""
    return str(NAMES.get(kind, kind) if isinstance(kind, int) else kind)[:SHOWN]
