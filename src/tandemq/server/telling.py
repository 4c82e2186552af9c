"""What happens in the server, as those are told of it who look on over HTTP.

A thing is written once in each form in which somebody wants it. Names and fields are the
reference's (http-api 6 to 8): what happens to a job is ``job:...`` with the queue, the job and what
is short; results and data stand only in the form of WebSocket clients that never chose their
events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw

from tandemq.model.body import well_formed
from tandemq.model.outcome import Event, Remark
from tandemq.server.http import jsontext
from tandemq.server.payloads import data_text

SHOWN: Final = ("error", "progress", "prev", "delay")  # of what an event of a job says besides
LARGEST: Final = 256 << 10  # bytes of data or a result that are told; a reader may leave 1 MiB
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
            self.fields = {"queue": happened.queue, "jobId": happened.id}
            if known := happened.fields:
                more = {name: known[name] for name in SHOWN if known.get(name) is not None}
                self.fields |= more
        else:
            self.name, self.fields = happened.name, happened.fields


Form = Callable[[Told, Event | Remark], bytes]
"""Writes a thing, of which the second argument has all that is known; b"" where it is not told."""


def as_sse(told: Told, _: Event | Remark | None = None) -> bytes:
    """Write a thing as an event of a stream."""
    fields = {**told.fields, "timestamp": told.at} if told.is_job else told.fields
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (told.number, told.name.encode(), line(fields))


def as_message(told: Told, _: Event | Remark) -> bytes:
    """Write a thing as a message for who chose its events."""
    return framed(line({"event": told.name, "ts": told.at, "data": told.fields}))


def as_raw(_: Told, happened: Event | Remark) -> bytes:
    """Write an event of a job whole, for who never chose; large data are left out."""
    if not isinstance(happened, Event):
        return b""
    shown: dict[str, Any] = {
        "eventType": happened.type,
        "queue": happened.queue,
        "jobId": happened.id,
        "timestamp": happened.at,
    }
    for name, value in happened.fields.items():
        if isinstance(value, bytes):
            if len(value) <= LARGEST and (text := data_text(value)):
                shown[name] = Raw(text)
        elif value is not None:
            shown[name] = value
    return framed(line(shown))


def framed(text: bytes, opcode: int = TEXT) -> bytes:
    """Return a WebSocket message as the server sends it."""
    size = len(text)
    if size < 126:
        return bytes((opcode, size)) + text
    if size < 1 << 16:
        return bytes((opcode, 126)) + size.to_bytes(2, "big") + text
    return bytes((opcode, 127)) + size.to_bytes(8, "big") + text


def line(value: Any) -> bytes:
    """Return JSON in one line; what UTF-8 cannot say is replaced."""
    try:
        return jsontext.written(value)
    except UnicodeEncodeError:
        return jsontext.written(_sayable(value))


def _sayable(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed(name): _sayable(item) for name, item in value.items()}
    return [_sayable(item) for item in value] if isinstance(value, (list, tuple)) else value
