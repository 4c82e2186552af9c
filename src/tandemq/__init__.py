"""A job queue and a message broker in one server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tandemq import errors as errors
    from tandemq.client.broker import Broker as Broker
    from tandemq.client.broker import handles as handles
    from tandemq.client.broker.sync import SyncBroker as SyncBroker
    from tandemq.client.client import AsyncClient as AsyncClient
    from tandemq.client.context import Context as Context
    from tandemq.client.depends import Depends as Depends
    from tandemq.client.errors import TandemqError as TandemqError
    from tandemq.client.flow import Step as Step
    from tandemq.client.outcomes import Fail as Fail
    from tandemq.client.outcomes import RateLimited as RateLimited
    from tandemq.client.outcomes import Retry as Retry
    from tandemq.client.outcomes import Skip as Skip
    from tandemq.client.sync import Client as Client
    from tandemq.client.task_queue import TaskQueue as Queue
    from tandemq.client.worker import Worker as Worker
    from tandemq.local import open as open

# What a name is and where it lives: `import tandemq` alone loads nothing of it.
_PUBLIC = {
    "AsyncClient": "client.client",
    "Broker": "client.broker",
    "Client": "client.sync",
    "Context": "client.context",
    "Depends": "client.depends",
    "Fail": "client.outcomes",
    "Queue": "client.task_queue",
    "RateLimited": "client.outcomes",
    "Retry": "client.outcomes",
    "Skip": "client.outcomes",
    "Step": "client.flow",
    "SyncBroker": "client.broker.sync",
    "TandemqError": "client.errors",
    "Worker": "client.worker",
    "handles": "client.broker",
    "open": "local",
}
_CALLED = {"Queue": "TaskQueue"}  # inside, where there is a plain queue too
__all__ = [
    "AsyncClient",
    "Broker",
    "Client",
    "Context",
    "Depends",
    "Fail",
    "Queue",
    "RateLimited",
    "Retry",
    "Skip",
    "Step",
    "SyncBroker",
    "TandemqError",
    "Worker",
    "errors",
    "handles",
    "open",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    from importlib import import_module

    if name == "errors":
        return import_module("tandemq.errors")
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"tandemq.{_PUBLIC[name]}")
    value = globals()[name] = getattr(home, _CALLED.get(name, name))
    return value
