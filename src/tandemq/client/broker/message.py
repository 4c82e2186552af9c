"""A message as a subscriber has it: read it, and say what became of it."""

from __future__ import annotations

import logging
from typing import Any, Protocol, TypeVar, overload

import msgspec

from tandemq.broker.names import MessagePriority
from tandemq.client.errors import Unencodable
from tandemq.client.spans import Span, millis
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.levels import priority

log = logging.getLogger("tandemq.client")

T = TypeVar("T")


class Source(Protocol):
    """The connection that brought a message: its answer goes the same way, or nowhere."""

    down: str | None

    def ack(self, id: str) -> None: ...
    def give_back(self, id: str, delay_ms: int) -> None: ...
    def hold(self, change: int) -> None: ...


class Known:
    """What a message says, whoever asks and however."""

    __slots__ = ()

    @property
    def frame(self) -> Frame:
        """What the broker sent."""
        raise NotImplementedError

    @property
    def id(self) -> str:
        """What its publisher named it; two may have the same."""
        return self.frame.id

    @property
    def queue(self) -> str:
        """Where it came from."""
        return self.frame.queue or ""

    @property
    def headers(self) -> dict[str, str]:
        """What its publisher said about it."""
        return self.frame.headers or {}

    @property
    def body(self) -> bytes | None:
        """Its payload as JSON text; None for none."""
        return self.frame.payload

    @property
    def payload(self) -> Any:
        """Its payload as dictionaries, lists, numbers and texts; None for none."""
        return None if self.body is None else msgspec.json.decode(self.body)

    @overload
    def decode(self, type: type[T]) -> T: ...
    @overload
    def decode(self, type: Any) -> Any: ...
    def decode(self, type: Any) -> Any:
        """Return its payload as a dataclass, a ``msgspec.Struct``, or whatever type you say.

        Raises:
            Unencodable: it is none.
        """
        try:
            return msgspec.json.decode(self.body or b"null", type=type)
        except (msgspec.MsgspecError, RecursionError) as why:
            raise Unencodable(f"message {self.id} of {self.queue}: {why}") from None

    @property
    def priority(self) -> MessagePriority:
        """How urgent its publisher called it."""
        return MessagePriority(priority(self.headers))

    @property
    def correlation_id(self) -> str | None:
        """What its publisher said that it belongs to."""
        return self.headers.get("correlationId")


class Message(Known):
    """One delivery. ``async with message:`` acknowledges it at the end of the block.

    An exception that leaves the block gives it back for another try; against a broker that knows no
    giving back, its time-out does. What is cancelled says nothing at all: the end of the
    subscription returns the message uncharged.

    Attributes:
        settled: it was acknowledged or given back.
    """

    __slots__ = ("_frame", "_held", "_source", "settled")

    def __init__(self, frame: Frame, source: Source) -> None:
        self._frame, self._source = frame, source
        self.settled = self._held = False

    def __repr__(self) -> str:
        return f"<Message {self.id} of {self.queue}>"

    @property
    def frame(self) -> Frame:
        """What the broker sent."""
        return self._frame

    @property
    def lost(self) -> bool:
        """Whether its connection is gone: the broker delivers it again, to somebody."""
        return self._source.down is not None

    async def ack(self) -> None:
        """Say that it is done; where its connection is lost nobody hears it, which is logged."""
        if self._settle("acknowledge"):
            self._source.ack(self.id)
        self._release()

    async def give_back(self, delay: Span = 0.0) -> None:
        """Return it for another try, at the soonest after a while."""
        delay_ms = millis(delay, "delay")
        if self._settle("give back"):
            self._source.give_back(self.id, delay_ms)
        self._release()

    def _settle(self, verb: str) -> bool:
        """Whether there is something to say, and somebody to say it to."""
        if self.settled:
            return False
        self.settled = True
        if self._source.down is not None:
            log.warning(
                "cannot %s message %r of %s, which will be delivered again: %s",
                verb,
                self.id,
                self.queue,
                self._source.down,
            )
            return False
        return True

    def begin(self) -> Message:
        """Somebody works on it: its connection stays until it is settled, if it can."""
        self._held = True
        self._source.hold(+1)
        return self

    def _release(self) -> None:
        if self._held:
            self._held = False
            self._source.hold(-1)

    async def __aenter__(self) -> Message:
        return self

    async def __aexit__(self, kind: object, value: BaseException | None, trace: object) -> None:
        if value is None:
            await self.ack()
        elif isinstance(value, Exception):
            await self.give_back()
        else:
            self._release()
