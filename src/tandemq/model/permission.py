"""Who may do what: the operations, patterns of queue names, and what entries allow together.

Names compare exactly, letter case included, on every face (ruling 22).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

PATTERN_LENGTH = 256  # characters, as many as the longest queue name has
KNOWN = 1_024  # queues of which is remembered what a user may do with them

_user_name = re.compile(r"[A-Za-z0-9\-_.]{1,64}\Z")


class Operation(StrEnum):
    """What can be granted for a queue, under the names of the broker's wires."""

    PUBLISH = "Publish"
    SUBSCRIBE = "Subscribe"
    CREATE_QUEUE = "CreateQueue"
    DELETE_QUEUE = "DeleteQueue"
    PURGE_QUEUE = "PurgeQueue"
    GET_QUEUE_INFO = "GetQueueInfo"
    LIST_QUEUES = "ListQueues"


NOTHING: frozenset[Operation] = frozenset()
_by_name = {operation.lower(): operation for operation in Operation}


def is_user_name(name: str) -> bool:
    """Whether a user may be called so: 1 to 64 ASCII letters, digits, ``-``, ``_`` or ``.``.

    No other letters, so that no two names look alike.
    """
    return _user_name.match(name) is not None


def operations(names: Iterable[object]) -> tuple[Operation, ...]:
    """Return the operations of these names, whatever their letter case; others are passed over."""
    known = (_by_name.get(name.lower()) for name in names if isinstance(name, str))
    return tuple(dict.fromkeys(operation for operation in known if operation is not None))


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern fits a name: ``*`` is any run of characters, all else is itself.

    Each part is looked for once, from left to right, so no pattern takes long.
    """
    head, *middle = pattern.split("*")
    if not middle:
        return name == head
    tail = middle.pop()
    at, end = len(head), len(name) - len(tail)
    if at > end or not (name.startswith(head) and name.endswith(tail)):
        return False
    for part in middle:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


class Rights:
    """What the entries of one user allow together: an operation that any fitting one holds."""

    __slots__ = ("_entries", "_known")

    def __init__(self, entries: Mapping[str, Iterable[Operation]]) -> None:
        self._entries = [(pattern, frozenset(held)) for pattern, held in entries.items()]
        self._known: dict[str, frozenset[Operation]] = {}

    def of(self, queue: str) -> frozenset[Operation]:
        """Return the operations that are allowed with a queue."""
        known = self._known.get(queue)
        if known is None:
            fitting = (held for pattern, held in self._entries if matches(pattern, queue))
            known = NOTHING.union(*fitting)
            if len(self._known) < KNOWN:
                self._known[queue] = known
        return known
