"""What happens in the server, as those are told of it who look on over HTTP.

A thing is written once in each form in which somebody wants it. Names and fields are the
reference's (http-api 6 to 8): what happens to a job is ``job:...`` with the queue, the job and what
is short; results and data stand only in the form of WebSocket clients that never chose their
events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tandemq.model.body import well_formed
from tandemq.model.outcome import Event, Remark
from tandemq.server.http import jsontext

SHOWN: Final = ("error", "progress", "prev", "delay")  # of what an event of a job says besides
RENAMED: Final = {"pulled": "active"}

TEXT: Final = 0x81  # begins a WebSocket message of one frame
CLOSE: Final = 0x88


class Told:
    """One thing that has happened, under its number."""

    __slots__ = ("at", "fields", "is_job", "name", "number", "queue")

    def __init__(self, number: int, happened: Event | Remark) -> None:
        self.number, self.at = number, happened.at
        self.queue: str | None = happened.queue  # that it concerns; None is the whole server
        self.is_job = isinstance(happened, Event)
        if isinstance(happened, Event):
            self.name = "job:" + RENAMED.get(happened.type, happened.type)
            more = {name: happened.fields.get(name) for name in SHOWN}
            known = {name: value for name, value in more.items() if value is not None}
            self.fields = {"queue": happened.queue, "jobId": happened.id, **known}
        else:
            self.name, self.fields = happened.name, happened.fields


Form = Callable[[Told, Event | Remark], bytes]
"""Writes a thing, of which the second argument has all that is known; b"" where it is not told."""


def as_sse(told: Told, _: Event | Remark | None = None) -> bytes:
    """Write a thing as an event of a stream."""
    fields = {**told.fields, "timestamp": told.at} if told.is_job else told.fields
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (told.number, told.name.encode(), written(fields))


def as_message(told: Told, _: Event | Remark) -> bytes:
    """Write a thing as a message for who chose its events."""
    return framed(written({"event": told.name, "ts": told.at, "data": told.fields}))


def as_raw(_: Told, happened: Event | Remark) -> bytes:
    """Write an event of a job whole, for who never chose."""
    if not isinstance(happened, Event):
        return b""
    shown = {
        "eventType": happened.type,
        "queue": happened.queue,
        "jobId": happened.id,
        "timestamp": happened.at,
    }
    more = {name: value for name, value in happened.fields.items() if value is not None}
    return framed(written({**shown, **more}))


def framed(text: bytes, opcode: int = TEXT) -> bytes:
    """Return a WebSocket message as the server sends it."""
    size = len(text)
    if size < 126:
        return bytes((opcode, size)) + text
    if size < 1 << 16:
        return bytes((opcode, 126)) + size.to_bytes(2, "big") + text
    return bytes((opcode, 127)) + size.to_bytes(8, "big") + text


def written(value: Any) -> bytes:
    """Return JSON in one line; bytes are a value as its sender encoded it."""
    return jsontext.written(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return jsontext.unpacked(value) if isinstance(value, bytes) else value
