"""A job queue and a message broker in one server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tandemq.client import errors as errors
    from tandemq.client.broker import Broker as Broker
    from tandemq.client.broker import handles as handles
    from tandemq.client.client import AsyncClient as AsyncClient
    from tandemq.client.errors import TandemqError as TandemqError
    from tandemq.client.sync import Client as Client

# What a name is and where it lives: `import tandemq` alone loads nothing of it.
_PUBLIC = {
    "AsyncClient": "tandemq.client.client",
    "Broker": "tandemq.client.broker",
    "Client": "tandemq.client.sync",
    "TandemqError": "tandemq.client.errors",
    "errors": "tandemq.client",
    "handles": "tandemq.client.broker",
}
__all__ = ["AsyncClient", "Broker", "Client", "TandemqError", "errors", "handles"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = _PUBLIC[name]
    if name == "errors":
        return import_module(f"{home}.{name}")
    value = globals()[name] = getattr(import_module(home), name)
    return value
