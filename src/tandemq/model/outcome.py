"""What a call of the engine says to the outside: who gets which messages."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

from tandemq.model.errors import TandemqError
from tandemq.model.message import Message


class Reply(NamedTuple):
    """The answer to a pull that had waited: its messages, none if its time is over."""

    conn: int
    req: Any
    messages: list[Message]
    refused: TandemqError | None = None  # instead: it cannot be pulled from that queue


class Deliver(Struct, gc=False):
    """A message for subscribers, which nobody asked for at this moment."""

    conns: list[int]
    message: Message
    payload: bytes  # its body as JSON, b"" for none


class Late(NamedTuple):
    """The answer to any other request that had waited: what its command would have returned.

    An error of ours stands for a refusal.
    """

    conn: int
    req: Any
    reply: Any


class Event(NamedTuple):
    """Something that happened to a message or a queue, for those who listen."""

    type: str  # as the event table of the bunqueue wire names it
    queue: str
    id: str  # of the message; "" for what concerns the whole queue
    at: int
    fields: dict[str, Any]


class Remark(NamedTuple):
    """Something that a page about the server shows, and no event of a job tells."""

    name: str  # as dashboards know it: of what, a colon, what happened
    queue: str | None  # that it concerns; None is the server as a whole
    at: int
    fields: dict[str, Any]  # what is told


class Outcome(NamedTuple):
    """What changed since the last outcome, and what must be said."""

    changed: dict[int, Message]  # by seq; a message that is GONE is to be forgotten
    facts: dict[str, bytes | None]
    effects: list[Reply | Late | Deliver]
    events: list[Event | Remark]
