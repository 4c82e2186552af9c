"""What the job object of a letter has besides: its headers, and the id of its publisher."""

from __future__ import annotations

from typing import Final

from tandemq.model.body import map_head
from tandemq.model.message import Message
from tandemq.wires.bunqueue.codec import text

KEYS: Final = 2
_ID: Final = b"\xa2id"  # the first key of every job
_COUNT: Final = -len(_ID) - 1  # where the number of keys stands before it
_HEADERS, _MESSAGE_ID = text("headers"), text("messageId")


def head_of(m: Message, head: bytes) -> bytes:
    """Return the beginning of a job, up to its first key, with room for what letters have."""
    if m.letter is None:
        return head
    return head[:_COUNT] + bytes((head[_COUNT] + KEYS,)) + _ID


def fields_of(m: Message) -> bytes:
    """Encode what only a letter has, nothing for a job."""
    letter = m.letter
    if letter is None:
        return b""
    headers = letter.headers or {}
    said = b"".join(text(key) + text(value) for key, value in headers.items())
    return b"".join((_HEADERS, map_head(len(headers)), said, _MESSAGE_ID, text(letter.id)))
