"""An event as the frame that subscribers of this wire get (wire-commands, "Event frames")."""

from __future__ import annotations

from typing import Any

from tandemq.commands.table import UNDEFINED
from tandemq.model.outcome import Event
from tandemq.wires.bunqueue.codec import encode, framed, moment, narrow, text

_HEAD = b"\x82\xa4type\xa5event\xa5event"
_FIXED = 4  # fields that every event has


def event_frame(event: Event) -> bytes:
    """Return the frame that tells of an event; unlike an answer it names no request.

    A field that is bytes is a value as its sender encoded it, one that is None is undefined.
    """
    extra = [part for name, value in event.fields.items() for part in (text(name), _value(value))]
    return framed(
        _HEAD,
        bytes((0x80 | (_FIXED + len(event.fields)),)),
        b"\xa9eventType",
        text(event.type),
        b"\xa5queue",
        text(event.queue),
        b"\xa5jobId",
        text(event.id),
        b"\xa9timestamp",
        moment(event.at),
        *extra,
    )


def _value(value: Any) -> bytes:
    if value is None:
        return UNDEFINED
    return value if isinstance(value, bytes) else _inner(value)


def _inner(value: Any) -> bytes:
    if isinstance(value, str):
        return text(value)  # which may hold half of a surrogate pair
    if isinstance(value, dict):
        parts = [part for name, item in value.items() for part in (text(name), _inner(item))]
        return bytes((0x80 | len(value),)) + b"".join(parts)
    return encode(narrow(value))
