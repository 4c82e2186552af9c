"""ACK, ACKB and FAIL: how a job that was pulled ends."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Raw

from tandemq.commands import fields as check
from tandemq.commands.call import NOT_APPLIED, Call, Data
from tandemq.commands.table import (
    ABSENT,
    UNDEFINED,
    Permission,
    Request,
    command,
    queues_of,
    together,
)
from tandemq.engine import groups, settle, usual
from tandemq.model.errors import BadRequest, NotLeased

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

BATCH_LIMIT = 100_000  # jobs of one ACKB, lines of one stack
Batch = Meta(max_length=BATCH_LIMIT)
Span = Annotated[float, Meta(ge=0, le=check.YEAR)] | None


class Ack(Request, tag="ACK", kw_only=True):
    """Complete a job."""

    id: str
    result: Raw = ABSENT
    token: str | None = None
    remove_on_complete: bool | None = False

    def opaque(self) -> Iterable[Raw]:
        return (self.result,)

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Any:
        return cls(
            id=check.job_id(fields.get("id")),
            result=fields.get("result", ABSENT),
            token=check.text(fields.get("token")),
            remove_on_complete=fields.get("removeOnComplete") is True,
            req_id=fields.get("reqId", ABSENT),
        )


class AckMany(Request, tag="ACKB", kw_only=True):
    """Complete several jobs."""

    ids: Annotated[list[str], Batch]
    results: Annotated[list[Raw], Batch] | None = None
    tokens: Annotated[list[str | None], Batch] | None = None
    remove_on_completes: Annotated[list[bool | None], Batch] | None = None

    def opaque(self) -> Iterable[Raw]:
        return self.results or ()

    def concerns(self, engine: Engine) -> Iterable[str]:
        return queues_of(engine, self.ids)

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Any:
        ids = check.listed(fields, "ids")
        if len(ids) > BATCH_LIMIT:
            raise BadRequest(f"ACKB takes at most {BATCH_LIMIT} jobs; send {len(ids)} in parts")
        return cls(
            ids=[check.job_id(id) for id in ids],
            results=_optional_list(fields, "results"),
            tokens=_optional_list(fields, "tokens"),
            remove_on_completes=_optional_list(fields, "removeOnCompletes"),
            req_id=fields.get("reqId", ABSENT),
        )


class Fail(Request, tag="FAIL", kw_only=True):
    """End a job's attempt badly."""

    id: str
    error: str | None = None
    token: str | None = None
    unrecoverable: bool | None = False
    stack: Annotated[list[str], Batch] | None = None
    remove_on_fail: bool | None = False
    retry_after: Span = None  # ours: ms
    delay: Span = None  # ours: ms
    charge: bool | None = True  # ours

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Any:
        error = fields.get("error")
        return cls(
            id=check.job_id(fields.get("id")),
            error=error if error is None or isinstance(error, str) else _as_text(error),
            token=check.text(fields.get("token")),
            unrecoverable=bool(fields.get("unrecoverable")),
            stack=fields.get("stack"),
            remove_on_fail=bool(fields.get("removeOnFail")),
            retry_after=check.number(fields, "retryAfter", 0, check.YEAR, None),
            delay=check.number(fields, "delay", 0, check.YEAR, None),
            charge=fields.get("charge") is not False,
            req_id=fields.get("reqId", ABSENT),
        )


@command(Permission.SUBSCRIBE, large=("result",), http="POST /jobs/{id}/ack")
def ack(req: Ack, call: Call) -> Data | None:
    """Complete a job and keep its result."""
    applied = settle.ack(
        call.engine,
        req.id,
        req.token,
        call.now,
        _result(req.result),
        bool(req.remove_on_complete),
    )
    return None if applied else NOT_APPLIED


@together(Ack)
def ack_together(reqs: list[Ack], call: Call) -> list[None]:
    """Complete jobs of one queue whose leases are held."""
    engine, now = call.engine, call.now
    known = engine.messages.get(reqs[0].id)
    if known is None:
        return []
    queue = known.queue
    usually = takewhile(lambda req: not req.remove_on_complete, reqs)
    acks = ((req.id, req.token, _result(req.result)) for req in usually)
    count = usual.complete(engine, engine.queues[queue], acks, now)
    for req in reqs[count:]:
        m = engine.messages.get(req.id)
        if m is None or m.lease is None or m.lease.token not in (None, req.token):
            break
        if m.queue != queue:
            break
        settle.finish(engine, m, now, _result(req.result), bool(req.remove_on_complete))
        count += 1
    if count:
        settle.completed(engine, queue, count, now)
    return [None] * count


@command(
    Permission.SUBSCRIBE,
    large=("ids", "results", "tokens", "removeOnCompletes"),
    http="POST /jobs/ack-batch",
)
def ack_many(req: AckMany, call: Call) -> Data | None:
    """Complete jobs; one bad token applies nothing, an unknown id only spoils itself."""
    ids, tokens = req.ids, _parallel(req.tokens, req.ids, "tokens")
    results = _parallel(req.results, ids, "results")
    removals = _parallel(req.remove_on_completes, ids, "removeOnCompletes")
    unknown = _check_claims(call, ids, tokens)
    ignored: list[int] = []
    for i, id in enumerate(ids):
        try:
            applied = settle.ack(
                call.engine,
                id,
                tokens[i],
                call.now,
                _result(results[i]) if results[i] is not None else None,
                req.results is not None and removals[i] is True,
            )
        except NotLeased:  # unknown from the start, or named twice in this batch
            unknown.append(id)
            continue
        if not applied:
            ignored.append(i)
    if unknown:
        raise NotLeased(unknown[0])
    if ignored:
        return Data({"ignoredIndices": ignored, "ignoredIds": [ids[i] for i in ignored]})
    return None


@command(Permission.SUBSCRIBE, large=("error", "stack"), http="POST /jobs/{id}/fail")
def fail(req: Fail, call: Call) -> Data | None:
    """End an attempt badly: the job is tried again after its back-off, or becomes a dead letter.

    With ``retryAfter`` it is given back uncharged, and its group waits that long. ``delay`` stands
    for the back-off; with ``charge: false`` the job is given back uncharged and waits alone.
    """
    if req.retry_after is not None and not req.unrecoverable:
        span = int(req.retry_after)
        given = groups.hold_back(call.engine, req.id, req.token, span, call.now, req.error)
        return None if given else NOT_APPLIED
    delay = None if req.delay is None else int(req.delay)
    if req.charge is False and not req.unrecoverable:
        given = settle.give_back(call.engine, req.id, req.token, call.now, delay or 0, req.error)
        return None if given else NOT_APPLIED
    applied = settle.fail(
        call.engine,
        req.id,
        req.token,
        call.now,
        error=req.error,
        stack=req.stack if isinstance(req.stack, list) else (),
        unrecoverable=bool(req.unrecoverable),
        remove=bool(req.remove_on_fail),
        delay=delay,
    )
    return None if applied else NOT_APPLIED


def _check_claims(call: Call, ids: list[Any], tokens: list[Any]) -> list[Any]:
    """Refuse the whole batch for a bad token; return the unknown ids without refusing yet."""
    unknown = []
    for id, token in zip(ids, tokens, strict=True):
        try:
            settle.claim(call.engine, id, token)
        except NotLeased:
            unknown.append(id)
    return unknown


def _parallel(values: list[Any] | None, ids: list[Any], name: str) -> list[Any]:
    if values is None:
        return [None] * len(ids)
    if len(values) != len(ids):
        raise BadRequest(f"ACKB {name} length must match ids length")
    return values


def _as_text(error: Any) -> str | None:
    """Return an error that is no text as JSON; what cannot be written so says nothing."""
    try:
        return msgspec.json.encode(error).decode()
    except (TypeError, ValueError, RecursionError):
        return None


def _optional_list(fields: dict[str, Any], name: str) -> list[Any] | None:
    return None if fields.get(name) is None else check.listed(fields, name)


def _result(raw: Raw) -> bytes | None:
    result = bytes(raw)
    return None if result == UNDEFINED else result
