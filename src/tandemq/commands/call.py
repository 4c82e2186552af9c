"""What a command may use besides its request, and the shapes of what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from msgspec import Struct

from tandemq.engine.core import Engine
from tandemq.model.message import Message


class Host(Protocol):
    """What commands want to know of the server around the engine."""

    def check_token(self, token: str) -> bool: ...

    def stats(self) -> dict[str, float]:
        """Uptime in s, rates a second, the longest turn of the loop in ms since the last look."""

    def storage(self) -> dict[str, Any]:
        """``diskFull``, ``error`` and ``since`` (ms) of the store."""

    @property
    def observers(self) -> Observers: ...

    @property
    def monitor(self) -> Monitor: ...


class Observers(Protocol):
    """Who outside the engine is told of events."""

    def subscribe(self, caller: Caller, queue: str) -> None:
        """Tell a connection of the events of one queue, and of no other any more."""

    def unsubscribe(self, caller: Caller) -> None:
        """Tell a connection of no more events."""

    def hooked(self) -> None:
        """A webhook was added: see to it that it can be delivered."""


class Monitor(Protocol):
    """What the server measures of itself, for reports."""

    def latency(self) -> dict[str, Any]:
        """``averages`` and ``percentiles`` of push, pull and ack, in ms."""

    def rates(self) -> dict[str, float]:
        """Pushes, pulls, completions and failures a second."""

    def memory(self) -> dict[str, int]:
        """``heapUsed``, ``heapTotal`` and ``rss`` of the process, in bytes."""

    def store_bytes(self) -> int:
        """How much the store occupies."""

    def connections(self) -> int: ...

    def prometheus(self) -> str:
        """Every figure as text exposition."""


class Caller(Protocol):
    """The connection that asks."""

    id: int
    trusted: bool


@dataclass(slots=True)
class Call:
    """One call: the engine, the present moment, who asks and under which request id."""

    engine: Engine
    host: Host
    caller: Caller
    now: int = 0
    req: Any = None


class Later:
    """The answer comes as an effect of the engine."""


LATER: Final = Later()


class Data(Struct, gc=False):
    """An answer whose fields the bunqueue wire wraps in ``data``."""

    fields: dict[str, Any]


class Pushed(Struct, gc=False):
    """The id of an accepted message."""

    id: str


class PushedMany(Struct, gc=False):
    """The ids of accepted messages, in the order of the request."""

    ids: list[str]


class Pulled(Struct, gc=False):
    """Messages handed to a pull."""

    messages: list[Message]
    many: bool  # asked for a batch
    tokens: bool  # asked for leases with tokens


class Found(Struct, gc=False):
    """One message as a reader sees it."""

    message: Message
    with_state: bool = True


class Listed(Struct, gc=False):
    """Several messages as a reader sees them."""

    messages: list[Message]


class Buried(Struct, gc=False):
    """Dead letters, each with what is known of it besides the job."""

    entries: list[tuple[Message, dict[str, Any]]]


class Flowed(Struct, gc=False):
    """The messages of a flow that was accepted, in the order of the request."""

    messages: list[Message]


class Result(Struct, gc=False):
    """What a completed message came to; None when there is nothing."""

    id: str
    value: bytes | None


NOT_APPLIED: Final = Data({"applied": False, "reason": "already-finalized"})
