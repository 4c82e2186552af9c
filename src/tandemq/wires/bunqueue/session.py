"""The server's side of one bunqueue connection, without its socket.

Feed it bytes and it returns requests and refusals in their order; give it answers and it returns
frames. A frame of the usual shape decodes straight into its typed request; everything else takes
the tolerant path, which sees what a JavaScript peer would see and finds the right words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from tandemq.commands.all import COMMANDS
from tandemq.commands.call import (
    Buried,
    Data,
    Flowed,
    Found,
    Listed,
    Pulled,
    Pushed,
    PushedMany,
    Result,
)
from tandemq.commands.plain import PlainFlow, PlainPush, PlainPushMany
from tandemq.commands.push import Push, PushMany
from tandemq.commands.pushf import PushFlow
from tandemq.commands.table import ABSENT, BY_REQUEST, UNDEFINED, Request
from tandemq.model import body, leaves
from tandemq.model.errors import (
    BadRequest,
    FrameTooLarge,
    Malformed,
    TandemqError,
    UnknownCommand,
)
from tandemq.model.message import Message
from tandemq.model.outcome import Late, Reply
from tandemq.wires.bunqueue import bounds, codec, lenient, outline, shapes
from tandemq.wires.bunqueue.opaque import Glass, all_plain
from tandemq.wires.framing import FrameDecoder
from tandemq.wires.wording import in_bunqueue

MAX_FRAME = 64 << 20  # bytes
TOO_MANY = "The request holds too many values; send it in parts"
TOO_LARGE = f"The answer is too large (max {MAX_FRAME} bytes); ask for fewer jobs"

_PLAIN = PlainPush, PlainPushMany, PlainFlow
_STRICT = frozenset((Push, PushMany, PushFlow, *_PLAIN))
_OURS = [request for request in BY_REQUEST if issubclass(request, Request)]
_CARRIERS = frozenset(request for request in _OURS if request.opaque is not Request.opaque)


def _decoder(*variants: type[Request]) -> Callable[[bytes], Request]:
    """Return what reads every command, some of them in another shape."""
    requests = {name: row.request for name, row in COMMANDS.items()}
    requests |= {str(shape.__struct_config__.tag): shape for shape in variants}
    known: Any = reduce(or_, requests.values())
    return msgspec.msgpack.Decoder(known).decode


_decode = _decoder()
_decode_plain = _decoder(*_PLAIN)
MISFIT = (msgspec.DecodeError, RecursionError, UnicodeDecodeError, IndexError)
PLAIN = 0x85  # begins a map of five fields; a PUSH of more asks for something


class Refusal(NamedTuple):
    """A frame that holds no request we could run; an error of another kind is a bug of ours."""

    error: Exception
    req: Raw
    formed: bool  # it was a command, though perhaps an unknown one or with bad fields


class Session:
    """One connection's protocol state."""

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._limit = max_frame
        self._frames = FrameDecoder(max_frame)

    @property
    def mid_frame(self) -> bool:
        """Part of a frame has arrived."""
        return self._frames.mid_frame

    def receive(self, data: bytes) -> list[Any]:
        """Return the requests and refusals that ``data`` completes, in order.

        A refusal whose error is fatal comes last: the stream cannot be read any further.
        """
        frames = self._frames.feed(data)
        try:
            found = [read(frame) for frame in frames]
        except Exception:
            found = [_read_or_refuse(frame) for frame in frames]  # again: which one was it?
        if self._frames.refused is not None:
            error = FrameTooLarge(self._frames.refused, self._limit)
            found.append(Refusal(error, ABSENT, False))
        return found

    def refuse(self, error: BaseException, req: Raw = ABSENT) -> bytes:
        """Return the frame that tells of an error."""
        return codec.refusal(in_bunqueue(error), bytes(req))

    def late(self, effect: Reply | Late) -> tuple[bytes, Raw]:
        """Return the frame that answers a request which had waited, and the id of the request."""
        req, reply = late_reply(effect)
        answer = self.refuse if isinstance(reply, TandemqError) else self.answer
        return answer(reply, req), req

    def answer(self, reply: Any, req: Raw) -> bytes:
        """Return the frame that answers a request."""
        return rendered(reply, req)


def rendered(reply: Any, req: Raw) -> bytes:
    """Return the frame that answers a request with what its command has returned."""
    return _RENDER[type(reply)](reply, req)


def late_reply(effect: Reply | Late) -> tuple[Any, Any]:
    """Return which request had waited, and what its command would have returned or raised."""
    if isinstance(effect, Late):
        return effect.req, effect.reply
    req, many, owned = effect.req
    if effect.refused is not None:
        return req, effect.refused
    return req, Pulled(effect.messages, many, owned)


def _read_or_refuse(frame: bytes) -> Request | Refusal:
    """Read a frame; a bug costs its sender this request, not the connection."""
    try:
        return read(frame)
    except Exception as bug:
        return Refusal(bug, ABSENT, True)


def read(frame: bytes) -> Request | Refusal:
    """Return the request that a frame is, or what is wrong with it."""
    if len(frame) > bounds.VALUES and (refusal := _too_large(frame)) is not None:
        return refusal
    try:
        request = (_decode_plain if frame[0] <= PLAIN else _decode)(frame)
    except MISFIT:
        found = _read_roomier(frame)
        if found is None:
            return _read_leniently(frame)
        request = found
    if type(request) in _CARRIERS:
        if len(frame) > leaves.ALWAYS_LIGHT:
            return _read_closely(request, frame)
        if not all_plain(request.opaque()):
            return _read_leniently(frame)
    if type(request) in _STRICT and (0xCF in frame or 0xD3 in frame):
        return _read_strictly(request, frame)
    return request


def _read_roomier(frame: bytes) -> Request | None:
    """Read what did not fit at once: a PUSH of few fields that asks for something all the same."""
    try:
        return _decode(frame) if frame[:1] <= bytes((PLAIN,)) else None
    except MISFIT:
        return None


def _too_large(frame: bytes) -> Refusal | None:
    """Refuse a frame that is larger than its command allows; None for any other."""
    head = bounds.head(frame)
    if head is None:
        return None
    try:
        bounds.check(frame, head)
    except BadRequest as error:
        return Refusal(error.afresh(), bounds.echoed(head), True)
    return None


def _read_strictly(request: Request, frame: bytes) -> Request | Refusal:
    """Read again what may hold an integer that JavaScript could not have sent."""
    if body.holds_wide_integer(frame):
        return _read_leniently(frame)
    return request


def _read_closely(request: Request, frame: bytes) -> Request | Refusal:
    """Look into the users' data of a large frame, which need not be small."""
    glass = Glass()
    try:
        plain = glass.all_plain(request.opaque())
    except BadRequest as error:
        return Refusal(error.afresh(), request.req_id, True)
    if not plain:
        return _read_leniently(frame, glass)
    return _read_strictly(request, frame) if type(request) in _STRICT else request


def _read_leniently(frame: bytes, glass: Glass | None = None) -> Request | Refusal:
    try:
        fields = outline.read_command(frame)
    except lenient.TooMany:
        return Refusal(BadRequest(TOO_MANY), bounds.echoed(bounds.head(frame)), True)
    except lenient.Malformed:
        return Refusal(Malformed("Invalid command format"), ABSENT, False)
    if not isinstance(fields, dict) or not lenient.truthy(fields.get("cmd")):
        return _nameless(fields)
    req = Raw(_encode_back(fields["reqId"])) if "reqId" in fields else ABSENT
    name = lenient.js_text(fields["cmd"])
    row = COMMANDS.get(name) if isinstance(fields["cmd"], str) else None
    if row is None:
        return Refusal(UnknownCommand(f"Unknown command: {name}"), req, True)
    shape: Any = row.request
    try:
        if len(frame) > bounds.SMALL:
            bounds.check_fields(row, fields)
        readable = (glass or Glass()).fields(fields)
        request: Request = shape.read({**readable, "reqId": req})
    except TandemqError as error:
        return Refusal(error.afresh(), req, True)
    return request


def _nameless(value: Any) -> Refusal:
    if not isinstance(value, dict) and not lenient.truthy(value):
        return Refusal(Malformed("Invalid command format"), ABSENT, False)
    req = value.get("reqId") if isinstance(value, dict) else None
    echoed = Raw(codec.encode(req)) if isinstance(req, str) else ABSENT
    return Refusal(Malformed("Invalid command"), echoed, False)


def _encode_back(value: Any) -> bytes:
    """Encode a request id that was decoded on the tolerant path."""
    return UNDEFINED if value is lenient.UNDEFINED else codec.encode(codec.narrow(value))


# -- answers -------------------------------------------------------------------------------------


def _done(reply: None, req: Raw) -> bytes:
    return codec.framed(codec.OK_REQ, req)


def _pushed(reply: Pushed, req: Raw) -> bytes:
    return codec.framed(codec.OK_ID, codec.text(reply.id), codec.REQ, req)


def _pushed_many(reply: PushedMany, req: Raw) -> bytes:
    return codec.spliced((_IDS, reply.ids, codec.REQ, req))


_IDS = Raw(b"\x83\xa2ok\xc3\xa3ids")
_TOKEN = Raw(b"\xa5token")
_JOB = shapes.begun_by(b"\x83\xa2ok\xc3\xa3job")
_OWNED = shapes.begun_by(b"\x84\xa2ok\xc3\xa3job")


def _pulled(reply: Pulled, req: Raw) -> bytes:
    messages, tokens = reply.messages, reply.tokens
    if reply.many:
        return _pulled_many(messages, tokens, req)
    if not messages:
        nothing = {"job": None, "token": None} if tokens else {"job": None}
        return codec.fields(nothing, req)
    m = messages[0]
    if tokens:
        return codec.spliced(shapes.job(m, _OWNED, _TOKEN, _token(m), codec.REQ, req))
    return codec.spliced(shapes.job(m, _JOB, codec.REQ, req))


def _pulled_many(messages: list[Message], tokens: bool, req: Raw) -> bytes:
    head = bytes((0x83 + tokens,)) + b"\xa2ok\xc3\xa4jobs" + codec.array(len(messages))
    values: list[Any] = [Raw(head)]
    for m in messages:
        values += shapes.job(m)
    if tokens:
        values += ("tokens", list(map(_token, messages)))
    values += (codec.REQ, req)
    return codec.spliced(values)


def _token(m: Message) -> str | None:
    return None if m.lease is None else m.lease.token  # its time ran out just now


def _bounded(frame: bytes) -> bytes:
    """Return the answer to a read, unless it is longer than what a peer reads or a server owes."""
    if len(frame) > MAX_FRAME:
        raise BadRequest(TOO_LARGE)
    return frame


def _bounded_jobs(messages: Iterable[Message], shown: Callable[[Message], bytes]) -> list[bytes]:
    """Return jobs as they are shown, and stop in time where they are too large together."""
    jobs: list[bytes] = []
    size = 0
    for m in messages:
        jobs.append(job := shown(m))
        size += len(job)
        if size > MAX_FRAME:
            raise BadRequest(TOO_LARGE)
    return jobs


def _found(reply: Found, req: Raw) -> bytes:
    shown = shapes.job_read if reply.with_state else shapes.job_without_state
    return _bounded(codec.framed(b"\x83\xa2ok\xc3\xa3job", shown(reply.message), codec.REQ, req))


def _listed(reply: Listed, req: Raw) -> bytes:
    jobs = _bounded_jobs(reply.messages, shapes.job_read)
    size = codec.array(len(jobs))
    return _bounded(codec.framed(b"\x83\xa2ok\xc3\xa4jobs", size, *jobs, codec.REQ, req))


def _buried(reply: Buried, req: Raw) -> bytes:
    jobs = _bounded_jobs((m for m, _ in reply.entries), shapes.job_at_rest)
    entries = [
        codec.encode({"job": Raw(job), **codec.narrow(known)})
        for job, (_, known) in zip(jobs, reply.entries, strict=True)
    ]
    size = codec.array(len(jobs))
    jobs_and_entries = (b"\xa4jobs", size, *jobs, b"\xa7entries", size, *entries)
    return _bounded(codec.framed(b"\x84\xa2ok\xc3", *jobs_and_entries, codec.REQ, req))


def _flowed(reply: Flowed, req: Raw) -> bytes:
    size = Raw(codec.array(len(reply.messages)))
    return codec.spliced((_FLOW, size, *shapes.jobs_at_rest(reply.messages), codec.REQ, req))


_FLOW = Raw(b"\x83\xa2ok\xc3\xa4data\x81\xa4jobs")


def _result(reply: Result, req: Raw) -> bytes:
    value = UNDEFINED if reply.value is None else reply.value
    id = codec.encode(codec.narrow(reply.id))
    return codec.framed(b"\x84\xa2ok\xc3\xa2id", id, b"\xa6result", value, codec.REQ, req)


def _data(reply: Data, req: Raw) -> bytes:
    return codec.fields({"data": reply.fields}, req)


_RENDER: dict[type, Callable[[Any, Raw], bytes]] = {
    type(None): _done,
    Pushed: _pushed,
    PushedMany: _pushed_many,
    Pulled: _pulled,
    Found: _found,
    Listed: _listed,
    Buried: _buried,
    Flowed: _flowed,
    Result: _result,
    Data: _data,
    dict: codec.fields,
}
