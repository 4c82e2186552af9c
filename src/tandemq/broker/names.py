"""The enumerations of the second founding document; each is the type that the server itself uses.

``DeliveryMode``: to whom a message goes. ``OverflowStrategy``: what becomes of a message for a full
queue. ``FailureReason``: why a message became a dead letter. ``CommandType``: the types of frames,
with their numbers of the binary wire. ``MessagePriority``: the four levels.
"""

from __future__ import annotations

from enum import IntEnum

from tandemq.model.broker import Mode as DeliveryMode
from tandemq.model.broker import Overflow as OverflowStrategy
from tandemq.model.broker import Reason as FailureReason
from tandemq.wires.vibemq.kinds import Kind as CommandType

__all__ = [
    "CommandType",
    "DeliveryMode",
    "FailureReason",
    "MessagePriority",
    "OverflowStrategy",
]


class MessagePriority(IntEnum):
    """How urgent a message is; only queues of the mode PRIORITY_BASED serve by it."""

    LOW = 0
    NORMAL = 1
    HIGH = 2
    CRITICAL = 3
