"""What a frame may hold, found out before anything is built of it.

The frame limit is for users' data. Everything else in a request is small, and a peer that sends
megabytes of it means harm: a frame of empty lists would decode into seventy times its size.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from tandemq.commands import jobdata, push, pushf
from tandemq.commands.all import COMMANDS
from tandemq.commands.pushf import PushFlow
from tandemq.commands.table import ABSENT, Command
from tandemq.model import body
from tandemq.model.errors import BadRequest, UnknownCommand

SMALL: Final = 1 << 20  # bytes of a field without users' data, and of a request without such fields
VALUES: Final = 100_000  # of such a field or request; a frame of so few bytes needs no look
TIED: Final = body.MAX_VALUES  # dependencies, children and tags of all jobs of a frame
ECHOED: Final = 4_096  # bytes of a request id that is repeated to somebody who sends such frames


def _head_type() -> type[Struct]:
    """Return what is read of any frame: the fields of all commands, undecoded."""
    names = {name for row in COMMANDS.values() for name in row.request.__struct_encode_fields__}
    fields: list[Any] = [(name, Raw, ABSENT) for name in sorted(names)]
    return msgspec.defstruct("Head", [("cmd", str), *fields])


class _Ties(Struct, rename="camel"):
    """The lists that a job may hold besides its data."""

    depends_on: Raw = ABSENT
    children_ids: Raw = ABSENT
    tags: Raw = ABSENT


TIES: Final = tuple(name.encode() for name in _Ties.__struct_encode_fields__)


class _Planned(Struct):
    input: _Ties


_decode_head = msgspec.msgpack.Decoder(_head_type()).decode
_decode_jobs = msgspec.msgpack.Decoder(list[_Ties]).decode
_decode_flow = msgspec.msgpack.Decoder(list[_Planned]).decode
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


def head(frame: bytes) -> Any:
    """Return a request's `cmd` and its fields as bytes; None where the typed reader fails too."""
    try:
        return _decode_head(frame)
    except _UNREADABLE:
        return None


def check(frame: bytes, head: Any) -> None:
    """Check a large frame by its length and what its fields announce.

    Raises:
        BadRequest: it, or a field of it, is larger than its command allows.
    """
    row = COMMANDS.get(head.cmd)
    if row is None:
        raise UnknownCommand(f"Unknown command: {head.cmd}")
    if not row.large:
        _check_part(f"{row.name}: a request", frame)
        return
    batch = "jobs" in row.large
    if batch and len(frame) <= SMALL:
        return
    for name in row.request.__struct_encode_fields__:
        if name not in row.large:
            _check_part(f"{row.name}: the field {name}", bytes(getattr(head, name)))
    if "data" in row.large and len(memoryview(head.data)) > jobdata.DATA_BYTES:
        raise BadRequest(jobdata.TOO_LARGE)
    if batch:
        _check_jobs(row, head.jobs, tied=any(name in frame for name in TIES))


def check_fields(row: Command, fields: dict[str, Any]) -> None:
    """Check the fields of a large frame that only the tolerant reader could read.

    Raises:
        BadRequest: a text or a binary among them is larger than its command allows.
    """
    for name, value in fields.items():
        if name not in row.large and isinstance(value, (str, bytes)) and len(value) > SMALL:
            raise BadRequest(f"{row.name}: the field {name} is too large (max {SMALL})")


def echoed(head: Any) -> Raw:
    """Return the request id that a refusal of such a frame repeats."""
    if head is None or len(bytes(head.reqId)) > ECHOED:
        return ABSENT
    req: Raw = head.reqId
    return req


def _check_part(what: str, raw: bytes) -> None:
    if len(raw) > SMALL:
        raise BadRequest(f"{what} of {len(raw)} bytes is too large (max {SMALL})")
    try:
        if len(raw) > VALUES:
            body.skip(raw, 0, values=VALUES)
    except body.TooMany:
        raise BadRequest(f"{what} of more than {VALUES} values is too large") from None
    except body.Malformed:
        pass  # told in better words where it is read


def _check_jobs(row: Command, jobs: Raw, *, tied: bool) -> None:
    flow = row.request is PushFlow
    (pushf if flow else push).check_count(_members(jobs))
    if not tied:
        return
    try:
        ties = [planned.input for planned in _decode_flow(jobs)] if flow else _decode_jobs(jobs)
    except _UNREADABLE:
        return  # the tolerant path counts what it builds
    lists = ((job.depends_on, job.children_ids, job.tags) for job in ties)
    if sum(_members(raw) for three in lists for raw in three) > TIED:
        raise BadRequest(f"{row.name}: more than {TIED} dependencies, children and tags")


def _members(raw: Raw) -> int:
    """How many members a list has; anything else has none."""
    if raw is ABSENT:
        return 0
    view = memoryview(raw)
    return body.container(view, 0)[0] if body.is_list(view[0]) else 0
