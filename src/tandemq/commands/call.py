"""What a command may use besides its request, and the shapes of what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from msgspec import Struct

from tandemq.engine.core import Engine
from tandemq.model.broker import Policy
from tandemq.model.message import Message
from tandemq.model.permission import Operation


class Host(Protocol):
    """What commands want to know of the server around the engine."""

    def stats(self) -> dict[str, float]:
        """Uptime in s, rates a second, the longest turn of the loop in ms since the last look."""

    @property
    def queue_policy(self) -> Policy | None:
        """What a queue is that the first message makes; None: none is made."""

    @property
    def publish_wait(self) -> int:
        """ms that a publisher waits for room at the longest."""

    def storage(self) -> dict[str, Any]:
        """``diskFull``, ``error`` and ``since`` (ms) of the store."""

    @property
    def accounts(self) -> Accounts: ...

    @property
    def observers(self) -> Observers: ...

    @property
    def monitor(self) -> Monitor: ...


class Accounts(Protocol):
    """Who is who, and who may do what.

    What takes long is done elsewhere; then LATER is returned, the connection's next requests wait
    until it is answered, and nothing happens if it breaks meanwhile.
    """

    @property
    def open(self) -> bool:
        """Nobody has to prove anything."""

    def by_token(self, caller: Caller, req: Any, token: str, welcome: Any) -> Any:
        """Let a connection be whom a token stands for, and return ``welcome``, perhaps later.

        Raises:
            BadCredentials: it stays who it was.
            Overloaded: that was once too often.
        """

    def by_password(self, caller: Caller, req: Any, name: str, password: str, welcome: Any) -> Any:
        """Let a connection be a user; see ``by_token``.

        Raises:
            BadPassword, Busy, Overloaded
        """

    def hashed(
        self, caller: Caller, req: Any, password: str, then: Callable[[str, int], Any]
    ) -> Later:
        """Answer later with what ``then`` makes of the hash of a password and the moment (ms).

        Raises:
            Busy
        """

    def may(self, caller: Caller, operation: Operation, queue: str) -> bool:
        """Whether something was granted to the user that a connection is."""

    def changed(self, name: str, spare: Caller | None = None) -> None:
        """Let what was changed of a user hold for its connections at once.

        Those end whose user, password or token is not what it was, but ``spare``.
        """


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
    trusted: bool  # it may do everything
    user: str | None  # whom it has proved to be; None with a token of the server, too

    def leave(self) -> None:
        """End the connection in good order, once this turn is over."""

    @property
    def title(self) -> str:
        """Who it is, for people: its user, or its address."""


@dataclass(slots=True)
class Call:
    """One call: the engine, the present moment, who asks and under which request id."""

    engine: Engine
    host: Host
    caller: Caller
    now: int = 0
    req: Any = None

    def remark(self, name: str, queue: str | None, /, **fields: Any) -> None:
        """Tell those who look at the server of what was done."""
        self.engine.remark(name, queue, self.now, **fields)

    def may(self, operation: Operation, queue: str) -> bool:
        """Whether the caller may do something with a queue."""
        return self.caller.trusted or self.host.accounts.may(self.caller, operation, queue)


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


class QueueShown(Struct, gc=False):
    """A queue as subscribers' wires show it."""

    name: str
    waiting: int
    subscribers: int
    policy: Policy


class Silence:
    """There is nothing to say."""


SILENCE: Final = Silence()
