"""The client of the broker: messages that are pushed to who wants them, over VibeMQ's wires.

The one for programs without asyncio is in ``sync``, which not everybody needs to load.
"""

from __future__ import annotations

from tandemq.broker.options import (
    ClientOptions,
    OnConflict,
    QueueDeclaration,
    QueueOptions,
    ReconnectPolicy,
)
from tandemq.client.broker.broker import Broker
from tandemq.client.broker.declare import Difference, QueueConflict, Severity
from tandemq.client.broker.handlers import Listener, handles
from tandemq.client.broker.message import Message
from tandemq.client.broker.subscription import Subscription
from tandemq.client.broker.users import Permission, User, Users

__all__ = [
    "Broker",
    "ClientOptions",
    "Difference",
    "Listener",
    "Message",
    "OnConflict",
    "Permission",
    "QueueConflict",
    "QueueDeclaration",
    "QueueOptions",
    "ReconnectPolicy",
    "Severity",
    "Subscription",
    "User",
    "Users",
    "handles",
]
