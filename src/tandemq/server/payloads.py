"""An event as the JSON that webhooks deliver.

Results and job data are MessagePack; what JSON cannot say is written as a JavaScript peer would
have written it: undefined members are left out, other undefined values and odd numbers are null.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

import msgspec

from tandemq.engine.webhooks import EVENTS
from tandemq.model.body import well_formed
from tandemq.model.outcome import Event

LARGE = 64 << 10  # bytes of data above which turning them into JSON is left to a thread
_UNDEFINED = object()

_decode = msgspec.msgpack.Decoder(ext_hook=lambda code, data: _UNDEFINED).decode
_encode = msgspec.json.encode


async def payload(event: Event) -> bytes:
    """Return the body of a delivery."""
    data = event.fields.get("data")
    if isinstance(data, bytes) and len(data) > LARGE:
        return await asyncio.to_thread(encoded, event)
    return encoded(event)


def encoded(event: Event) -> bytes:
    """Return an event as JSON; data that cannot be written so are left out."""
    body: dict[str, Any] = {
        "event": EVENTS[event.type],
        "timestamp": event.at,
        "jobId": well_formed(event.id),
        "queue": well_formed(event.queue),
    }
    fields = event.fields
    if event.type == "progress":
        return _encode({**body, "progress": _plain(fields.get("progress"))})
    try:
        data = _plain(_value(fields.get("data")))
        if data is not _UNDEFINED:
            body["data"] = data
        if (error := fields.get("error")) is not None:
            body["error"] = well_formed(error)
        return _encode(body)
    except (msgspec.DecodeError, TypeError, ValueError, RecursionError):
        return _encode({**body, "data": None})


def data_text(data: bytes) -> bytes:
    """Return data as JSON: b"" where there is none, null where JSON cannot say it."""
    try:
        value = _plain(_decode(data))
        return b"" if value is _UNDEFINED else _encode(value)
    except (msgspec.DecodeError, TypeError, ValueError, RecursionError):
        return b"null"


def _value(data: Any) -> Any:
    if isinstance(data, bytes):
        return _decode(data)
    return _UNDEFINED if data is None else data


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        kept = ((key, _plain(item)) for key, item in value.items())
        return {str(key): item for key, item in kept if item is not _UNDEFINED}
    if isinstance(value, list):
        return [None if item is _UNDEFINED else _plain(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return value
