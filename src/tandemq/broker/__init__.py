"""The broker's public names: what programs use to run one, to set it up and to read what it tells.

Everything that needs the server is imported only when it is asked for, so that a client that
imports names from here stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tandemq.broker.messages import BrokerMessage, QueueInfo
from tandemq.broker.names import (
    CommandType,
    DeliveryMode,
    FailureReason,
    MessagePriority,
    OverflowStrategy,
)
from tandemq.broker.options import ClientOptions, QueueOptions, ReconnectPolicy
from tandemq.model.health import HealthStatus

if TYPE_CHECKING:
    from tandemq.broker.interfaces import (
        AuthenticationService,
        BrokerMetrics,
        MessageStore,
        QueueManager,
    )
    from tandemq.config import Settings as BrokerOptions
    from tandemq.embedded import BrokerBuilder, BrokerServer
    from tandemq.server.healthport import HealthCheckServer

__all__ = [
    "AuthenticationService",
    "BrokerBuilder",
    "BrokerMessage",
    "BrokerMetrics",
    "BrokerOptions",
    "BrokerServer",
    "ClientOptions",
    "CommandType",
    "DeliveryMode",
    "FailureReason",
    "HealthCheckServer",
    "HealthStatus",
    "MessagePriority",
    "MessageStore",
    "OverflowStrategy",
    "QueueInfo",
    "QueueManager",
    "QueueOptions",
    "ReconnectPolicy",
]

_ELSEWHERE = {
    "AuthenticationService": ("tandemq.broker.interfaces", "AuthenticationService"),
    "BrokerBuilder": ("tandemq.embedded", "BrokerBuilder"),
    "BrokerMetrics": ("tandemq.broker.interfaces", "BrokerMetrics"),
    "BrokerOptions": ("tandemq.config", "Settings"),
    "BrokerServer": ("tandemq.embedded", "BrokerServer"),
    "HealthCheckServer": ("tandemq.server.healthport", "HealthCheckServer"),
    "MessageStore": ("tandemq.broker.interfaces", "MessageStore"),
    "QueueManager": ("tandemq.broker.interfaces", "QueueManager"),
}


def __getattr__(name: str) -> object:
    found = _ELSEWHERE.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = found
    value = globals()[name] = getattr(import_module(module), there)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
