"""The client's side of one bunqueue connection, without its socket.

Values are written so that every peer can read them: whole numbers beyond 32 bits travel as floats
(and are refused where a float would change them), moments as text, models as what they hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from tandemq.wires.bunqueue import codec
from tandemq.wires.framing import FrameDecoder

MAX_FRAME = 64 << 20  # bytes
MOST_STEPS = 12  # of the place of a value
EXACT = 1 << 53  # whole numbers up to here are the same as floats

_UNZONED = re.compile(rb"[\xb3\xba]\d{4}-\d\d-\d\dT")
_KEPT = (bytes, bytearray, memoryview)


class Unwritable(Exception):
    """A value cannot be put on the wire; the text says where it stands, and why."""


class Garbled(Exception):
    """What arrived is no answer and no event of this wire; the text says what it looks like."""


class Answer(NamedTuple):
    """One frame of the server."""

    id: str | None  # of its request; None: it answers none
    fields: dict[str, Any]


def encode(value: Any) -> bytes:
    """Return a value as MessagePack that every peer can read.

    Raises:
        Unwritable
    """
    try:
        written = _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unwritable(_blame(value, error)) from None
    # A moment without a zone is text of 19 or 26 characters; looking for those costs nothing.
    if (0xB3 in written or 0xBA in written) and _UNZONED.search(written):
        check_zones(value)
    # What few peers read begins so: 64-bit integers, and extensions, as moments are written.
    if 0xCF in written or 0xD3 in written or 0xD7 in written or 0xD6 in written or 0xC7 in written:
        return _encode(_readable(_builtins(value), ()))
    return written


def request(cmd: str, fields: Mapping[str, Any], req_id: str) -> bytes:
    """Return the frame of a request; fields that are None or UNSET are left out.

    Raises:
        Unwritable
    """
    given = {k: v for k, v in fields.items() if v is not None and v is not UNSET}
    return codec.framed(encode({"cmd": cmd, **given, "reqId": req_id}))


def push(queue: str, job: bytes, req_id: str) -> bytes:
    """Return the frame of a PUSH whose job, a map, is encoded already."""
    head = job[0]
    size, rest = (
        (head & 0x0F, job[1:]) if head < 0xDE else (int.from_bytes(job[1:3], "big"), job[3:])
    )
    return codec.framed(
        b"\xde" + (size + 3).to_bytes(2, "big") if size > 12 else bytes((0x80 | (size + 3),)),
        b"\xa3cmd\xa4PUSH\xa5queue",
        codec.text(queue),
        rest,
        b"\xa5reqId",
        codec.text(req_id),
    )


def push_many(queue: str, jobs: Sequence[bytes], req_id: str) -> bytes:
    """Return the frame of a PUSHB whose jobs are encoded already."""
    return codec.framed(
        b"\x84\xa3cmd\xa5PUSHB\xa5queue",
        codec.text(queue),
        b"\xa4jobs",
        codec.array(len(jobs)),
        *jobs,
        b"\xa5reqId",
        codec.text(req_id),
    )


class Caller:
    """Takes the bytes of a server apart into answers and events."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._frames = FrameDecoder(limit)

    def receive(self, data: bytes) -> list[Answer]:
        """Return what ``data`` completes, in order.

        Raises:
            Garbled: the stream cannot be read any further.
        """
        frames = self._frames.feed(data)
        try:
            found = [_read(_decode(frame)) for frame in frames]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Garbled(f"sent a frame that is no MessagePack: {error}") from None
        if self._frames.refused is not None:
            raise Garbled(_kind_of(data))
        return found


def is_event(fields: Mapping[str, Any]) -> bool:
    """Whether a frame tells of an event."""
    return fields.get("type") == "event"


def _read(value: Any) -> Answer:
    if not isinstance(value, dict):
        raise Garbled(f"sent a frame that is no map, but {type(value).__name__}")
    if value.get("type") == "event":
        _check_event(value.get("event"))
    id = value.pop("reqId", None)
    return Answer(id if isinstance(id, str) else None, value)


def _check_event(event: Any) -> None:
    """See to it that an event says what happened, where, to what, and when."""
    named = isinstance(event, dict) and all(
        isinstance(event.get(name), str) for name in ("eventType", "queue", "jobId")
    )
    at = event.get("timestamp") if named else None
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not isfinite(at):
        raise Garbled("sent an event without its type, queue, job or moment")


def _kind_of(data: bytes) -> str:
    """Say what a peer seems to be by the first bytes that fit no frame."""
    for beginning, kind in (
        (b"HTTP/", "an HTTP server: give the port for clients (6789), not that for HTTP"),
        (b"SSH-", "an SSH server"),
        (b"\x15\x03", "a server that wants TLS: add tls=1 to the URL"),
        (b"-ERR", "a Redis server"),
        (b"+PONG", "a Redis server"),
    ):
        if data.startswith(beginning):
            return f"is {kind}"
    return f"is no server of this wire: it sent {data[:12]!r}"


# -- values --------------------------------------------------------------------------------------


def _hook(value: Any) -> Any:
    """Turn a model into what it holds, where it knows how (pydantic's, for one)."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} cannot be encoded")
    return dump(mode="json")


def _ext_hook(code: int, data: memoryview) -> Any:
    if code == 0 and bytes(data) == b"\0":
        return None  # JavaScript's undefined
    return msgspec.msgpack.Ext(code, bytes(data))


_encode = msgspec.msgpack.Encoder(enc_hook=_hook).encode
_decode = msgspec.msgpack.Decoder(ext_hook=_ext_hook).decode


def _builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, builtin_types=(*_KEPT, Raw), enc_hook=_hook)


def check_zones(value: Any) -> None:
    """Refuse moments that say no zone: every reader would take his own.

    Raises:
        Unwritable
    """
    left: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while left:
        path, part = left.pop()
        if isinstance(part, datetime) and part.utcoffset() is None:
            raise Unwritable(
                f"{_place(path)} is a moment without a zone, so it could be any of 24: "
                "write datetime.now(UTC) or moment.astimezone()"
            )
        left += [((*path, step), item) for step, item in _children(part)]


def _readable(value: Any, path: tuple[Any, ...]) -> Any:
    """Write wide whole numbers as floats."""
    if type(value) is int:
        if -codec.WIDE - 1 <= value <= 0xFFFF_FFFF:
            return value
        if -EXACT <= value <= EXACT:
            return float(value)
        raise Unwritable(
            f"{_place(path)} is {value}, which other clients cannot read exactly: "
            "numbers beyond 2**53 must be sent as text"
        )
    if isinstance(value, dict):
        return {key: _readable(item, (*path, key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_readable(item, (*path, index)) for index, item in enumerate(value)]
    return value


def _place(path: Sequence[Any]) -> str:
    """Spell where a value stands: ``data.items[3].price``, or where the way there begins."""
    text = ""
    for step in path[:MOST_STEPS]:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return (text or "the value") + (" ..." if len(path) > MOST_STEPS else "")


def _blame(value: Any, error: BaseException) -> str:
    """Find the innermost part that cannot be encoded, and say why."""
    path, seen = _culprit(value, (), ())
    if seen:
        return f"{_place(path)} contains itself; send a tree without circles"
    if isinstance(error, RecursionError):
        return f"{_place(path)} is nested too deeply; send less depth"
    part = _at(value, path)
    if isinstance(error, UnicodeEncodeError):
        what = "text" if isinstance(part, str) else "a map with a key"
        return f"{_place(path)} is {what} that UTF-8 cannot write: it has half of a surrogate pair"
    if isinstance(part, int):
        return f"{_place(path)} is beyond 64 bits; numbers beyond 2**53 must be sent as text"
    return (
        f"{_place(path)} is of type {type(part).__name__}, which cannot be encoded; send "
        "text, numbers, lists, maps, dataclasses, msgspec structs or pydantic models"
    )


def _children(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, (list, tuple, set, frozenset)):
        return enumerate(value)
    names: Iterable[str] = getattr(value, "__struct_fields__", ())
    names = names or getattr(value, "__dataclass_fields__", ())
    return [(name, getattr(value, name, None)) for name in names]


def _culprit(
    value: Any, path: tuple[Any, ...], above: tuple[int, ...]
) -> tuple[tuple[Any, ...], bool]:
    """Return the way to the part that cannot be encoded, and whether it contains itself."""
    if id(value) in above:
        return path, True
    if len(above) > 600:
        return path, False
    for step, item in _children(value):
        try:
            _encode(item)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return _culprit(item, (*path, step), (*above, id(value)))
    return path, False


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = dict(_children(value))[step]
    return value
