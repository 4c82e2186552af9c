"""Answers to equal requests that ran together, written as ``session`` writes each of them.

What such answers have in common is encoded once for all that follow each other: jobs of one queue
that were pushed in one moment, and are handed out in one, differ in id, data and token only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Layout
from typing import Any

from msgspec import Raw

from tandemq.commands.call import Pulled
from tandemq.model.message import DEFAULTS, Message, Run
from tandemq.wires.bunqueue import codec, session, shapes

_length = Layout(">I").pack

_TOKEN = Raw(b"\xa5token")
_JOB = shapes.begun_by(b"\x83\xa2ok\xc3\xa3job")
_OWNED = shapes.begun_by(b"\x84\xa2ok\xc3\xa3job")


def answers(replies: Sequence[Any], requests: Sequence[Any]) -> list[bytes]:
    """Return the frames that answer the first of some requests of one kind, one for each reply."""
    write = _WRITERS.get(type(replies[0]), _each)
    return write(replies, [request.req_id for request in requests[: len(replies)]])


def _each(replies: Sequence[Any], reqs: list[Raw]) -> list[bytes]:
    return [session.rendered(reply, req) for reply, req in zip(replies, reqs, strict=True)]


def _done(_: Sequence[Any], reqs: list[Raw]) -> list[bytes]:
    size = len(codec.OK_REQ)
    return [_length(size + len(req)) + codec.OK_REQ + req for req in reqs]


def _pulled(replies: Sequence[Pulled], reqs: list[Raw]) -> list[bytes]:
    frames = []
    named: tuple[str, str] | None = None
    lived: tuple[int, ...] | None = None
    before = between = Raw(b"")
    for reply, req in zip(replies, reqs, strict=True):
        m = reply.messages[0]
        run, lease = m.run, m.lease
        if run is None or lease is None or not _usual(m, run):
            frames.append(session.rendered(reply, req))
            continue
        if named != (name := (m.queue, m.name)):
            named, before = name, Raw(shapes.before_body(m))
        if lived != (life := (m.created, m.due, run.started, run.heartbeat, m.born)):
            lived, between = life, Raw(_after_body(m, run))
        if reply.tokens:
            values: tuple[Any, ...] = (
                _OWNED, m.id, before, Raw(m.body), between, _TOKEN, lease.token, codec.REQ, req,
            )  # fmt: skip
        else:
            values = _JOB, m.id, before, Raw(m.body), between, codec.REQ, req
        frames.append(codec.spliced(values))
    return frames


def _after_body(m: Message, run: Run) -> bytes:
    """Encode what ``shapes.job`` has behind the data of a usual job."""
    created, started = codec.moment(m.created), codec.moment(run.started)
    return b"".join(
        (
            shapes.CREATED, created, shapes.DUE, codec.moment(m.due), shapes.STARTED, started,
            shapes.PRIORITY, b"\0", shapes.HEARTBEAT, codec.moment(run.heartbeat),
            shapes.CUSTOM_ID, codec.NULL, shapes.OPENING[m.born], created,
            shapes.ACTIVE, started, shapes.PLAIN_TAIL,
        )
    )  # fmt: skip


def _usual(m: Message, run: Run) -> bool:
    """Whether a job is on its first run and nothing is special about it."""
    if m.options is not DEFAULTS or m.priority or m.attempts or m.links is not None:
        return False
    if m.letter is not None or m.repeat is not None or run.first_priority is not None:
        return False
    return not (run.history or run.progress or run.progress_message)


_WRITERS: dict[type, Callable[[Sequence[Any], list[Raw]], list[bytes]]] = {
    type(None): _done,
    Pulled: _pulled,
}
