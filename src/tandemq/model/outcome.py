"""What a call of the engine says to the outside: who gets which messages."""

from __future__ import annotations

from typing import Any, NamedTuple

from tandemq.model.message import Message


class Reply(NamedTuple):
    """The answer to a pull that had waited: its messages, none if its time is over."""

    conn: int
    req: Any
    messages: list[Message]


class Outcome(NamedTuple):
    """What changed since the last outcome, and what must be said."""

    changed: dict[int, Message]  # by seq; a message that is GONE is to be forgotten
    facts: dict[str, bytes | None]
    effects: list[Reply]
