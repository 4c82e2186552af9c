"""One frame as its fields, of whichever wire, and what may go wrong with it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Final

from msgspec import Struct

from tandemq.wires.vibemq.json_text import too_deep

MAX_MESSAGE: Final = 1_048_576  # bytes; real clients read no longer body, whatever we would send
NACK: Final = "nack"  # the extension that lets a client give messages back


class Frame(Struct, gc=False):
    """What a body says. Nothing is checked but that it can be said."""

    kind: int | str  # a text is a name that no type has
    id: str  # "" where it was given as nothing
    queue: str | None = None
    payload: bytes | None = None  # JSON text; never decoded here
    headers: dict[str, str] | None = None
    code: str | None = None  # of an Error
    text: str | None = None
    version: int = 1


class Unreadable(Exception):
    """A body that is no frame.

    Attributes:
        id: the id that it names, where that could be told.
        lost: the body could not even be taken apart, so the connection cannot be trusted either.
    """

    def __init__(self, text: str, id: str | None = None, *, lost: bool = False) -> None:
        super().__init__(text)
        self.id, self.lost = id, lost


class Unsendable(Exception):
    """What this wire, or the peer's reader, cannot carry; the text says why."""


def fresh_id() -> str:
    """Make an id for a frame that needs one of its own, as the reference writes them."""
    return os.urandom(16).hex()


class Form(ABC):
    """How frames are written to a peer. Peers with one form get equal bytes."""

    head: int  # bytes before the body, which no limit counts
    depth: int  # of a payload, so that the peer can read it

    @abstractmethod
    def write(self, frame: Frame) -> bytes:
        """Return the bytes of a frame.

        Raises:
            Unsendable: a text in it has no form here.
        """

    def accept(self, kind: int, id: str, queue: str | None) -> bytes:
        """Return the bytes of a frame that says no more than that something was done."""
        return self.write(Frame(kind, id, queue))

    def fits(self, said: bytes) -> bool:
        """Whether the peer reads a frame of this size."""
        return len(said) - self.head <= MAX_MESSAGE

    def deliver(self, frame: Frame) -> bytes:
        """Return the bytes of a message that is handed out.

        Raises:
            Unsendable: this wire, or the reader of every peer, cannot carry it.
        """
        if frame.payload is not None and too_deep(frame.payload, self.depth):
            raise Unsendable(f"the payload is nested deeper than {self.depth}")
        said = self.write(frame)
        size = len(said) - self.head
        if size > MAX_MESSAGE:
            raise Unsendable(f"the message takes {size} bytes, more than {MAX_MESSAGE}")
        return said
