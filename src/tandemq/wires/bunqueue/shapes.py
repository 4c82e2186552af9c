"""A message as the 47-field job object of this wire (wire-commands 3); letters have two more.

The order of keys is no contract, so what changes comes first and what most jobs have in common
follows as a tail that is encoded once for each set of options.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from tandemq.commands.states import NAMES, name_of
from tandemq.commands.table import UNDEFINED
from tandemq.model.crossing import data_of
from tandemq.model.message import DEFAULTS, Links, Message, Options, Run, State, Step
from tandemq.model.policy import HISTORY
from tandemq.wires.bunqueue import letters
from tandemq.wires.bunqueue.codec import (
    FALSE,
    NULL,
    TRUE,
    WIDE,
    array,
    encode,
    moment,
    moment_or_null,
    number,
    text,
)

KEYS = 47
TAILS = 4096  # encoded tails that are kept
KEPT_LENGTH = 2_048  # bytes of what is kept encoded: few have something longer in common

_HEAD = b"\xde\x00" + bytes((KEYS,)) + b"\xa2id"
_HEAD_READ = b"\xde\x00" + bytes((KEYS + 3,)) + b"\xa2id"
_HEAD_BARE = b"\xde\x00" + bytes((KEYS + 2,)) + b"\xa2id"
_IDLE = Run()

HEAD = Raw(_HEAD)


def begun_by(before: bytes) -> Raw:
    """Return what ``job`` is to begin with, where ``before`` always stands before it."""
    return Raw(before + _HEAD)


def job(m: Message, head: Raw = HEAD, *more: Any) -> list[Any]:
    """Return a job as workers get it, from ``head`` to ``more``: values to be spliced.

    Most are on their first run, with nothing told about it yet: that takes half of the time.
    """
    run, priority = m.run, m.priority
    if m.letter is not None:
        return [Raw(letters.head_of(m, bytes(head))), Raw(_fields(m)), *more]
    if m.attempts or run is None or run.history or run.progress or run.progress_message:
        return [head, Raw(_fields(m)), *more]
    if m.repeat is not None or not -WIDE <= priority <= WIDE:
        return [head, Raw(_fields(m)), *more]
    created, started, options = float(m.created), float(run.started), m.options
    usual = priority <= 0 and run.first_priority is None
    return [
        head, m.id, QUEUE, m.queue, NAME, m.name, DATA, Raw(m.body),
        CREATED, created, DUE, float(m.due), STARTED, started, PRIORITY, priority,
        HEARTBEAT, float(run.heartbeat), CUSTOM_ID, m.id if options.custom_id else None,
        OPENING[m.born] if usual else Raw(_TIMELINE_OF_TWO + _born(m, run)), created,
        ACTIVE, started,
        PLAIN_TAIL if options is DEFAULTS and m.links is None else Raw(_tail_of(m)),
        *more,
    ]  # fmt: skip


def job_at_rest(m: Message) -> bytes:
    """Encode a job that need not have run as workers would get it."""
    return letters.head_of(m, _HEAD) + _fields(m)


def jobs_at_rest(messages: Iterable[Message]) -> list[Any]:
    """Return what ``job_at_rest`` says, as values to be spliced: at most five for each job.

    Jobs of one flow have most in common.
    """
    values: list[Any] = []
    names: dict[tuple[str, str], Raw] = {}  # what stands between id and data
    known: dict[tuple[object, ...], Raw] = {}  # what follows the data
    for m in messages:
        links = m.links
        if m.run is not None or m.options is not DEFAULTS or m.repeat is not None or m.letter:
            values.append(Raw(job_at_rest(m)))
            continue
        if (before := names.get((m.queue, m.name))) is None:
            before = names[m.queue, m.name] = Raw(before_body(m))
        if links is not None and (links.depends_on or links.children):
            after: Raw | None = Raw(_after_body(m))
        else:
            key: tuple[object, ...] = m.created, m.due, m.priority, m.born
            if links is not None:
                key += (links.parent, links.on_failure)
            if (after := known.get(key)) is None:
                after = known[key] = Raw(_after_body(m))
        values += (HEAD, m.id, before, Raw(m.body), after)
    return values


def job_read(m: Message) -> bytes:
    """Encode a job as readers get it: with state, result and last error."""
    head = letters.head_of(m, _HEAD_READ)
    return b"".join((head, _fields(m), b"\xa5state", text(name_of(m)), *_outcome(m)))


def job_without_state(m: Message) -> bytes:
    """Encode a job as a reader by custom id gets it."""
    return b"".join((letters.head_of(m, _HEAD_BARE), _fields(m), *_outcome(m)))


def _outcome(m: Message) -> tuple[bytes, ...]:
    run = m.run or _IDLE
    result = run.result if run.result is not None else UNDEFINED
    error = UNDEFINED if run.error is None else encode(run.error)
    return b"\xabreturnvalue", result, b"\xacfailedReason", error


def _fields(m: Message) -> bytes:
    run = m.run or _IDLE
    created = moment(m.created)
    return b"".join(
        (
            text(m.id),
            b"\xa5queue",
            text(m.queue),
            b"\xa4name",
            text(m.name),
            b"\xa4data",
            data_of(m),
            b"\xa9createdAt",
            created,
            b"\xa5runAt",
            moment(m.due),
            b"\xa9startedAt",
            moment_or_null(run.started),
            b"\xabcompletedAt",
            moment_or_null(run.finished if m.state is State.DONE else 0),
            b"\xa8attempts",
            number(m.attempts),
            b"\xa8priority",
            number(m.priority),
            b"\xaastallCount",
            number(run.stalls),
            b"\xadlastHeartbeat",
            moment(run.heartbeat) if run.heartbeat else created,
            b"\xa8progress",
            number(run.progress),
            b"\xafprogressMessage",
            NULL if run.progress_message is None else encode(run.progress_message),
            b"\xaastacktrace",
            NULL if run.stack is None else encode(run.stack),
            b"\xa8customId",
            text(m.id) if m.options.custom_id else NULL,
            b"\xa8timeline",
            _timeline(m, run),
            _tail_of(m),
            letters.fields_of(m),
        )
    )


# -- the usual job: on its first run, or before it ------------------------------------------------

QUEUE, NAME, DATA = map(Raw, (b"\xa5queue", b"\xa4name", b"\xa4data"))
CREATED, DUE, STARTED = map(Raw, (b"\xa9createdAt", b"\xa5runAt", b"\xa9startedAt"))
PRIORITY = Raw(b"\xabcompletedAt\xc0\xa8attempts\x00\xa8priority")
HEARTBEAT = Raw(b"\xaastallCount\x00\xadlastHeartbeat")
_TOLD_NOTHING = b"".join(
    (b"\xa8progress\x00", b"\xafprogressMessage", NULL, b"\xaastacktrace", NULL, b"\xa8customId")
)
CUSTOM_ID = Raw(_TOLD_NOTHING)
ACTIVE = Raw(b"\x82\xa5state\xa6active\xa9timestamp")


def before_body(m: Message) -> bytes:
    """Encode what stands between id and data."""
    return b"".join((b"\xa5queue", text(m.queue), b"\xa4name", text(m.name), b"\xa4data"))


def _after_body(m: Message) -> bytes:
    """Encode what ``_fields`` would behind the data, for a job that was never handed out."""
    created = moment(m.created)
    return b"".join(
        (
            b"\xa9createdAt", created,
            b"\xa5runAt", created if m.due == m.created else moment(m.due),
            b"\xa9startedAt\xc0\xabcompletedAt\xc0\xa8attempts\x00\xa8priority",
            number(m.priority), b"\xaastallCount\x00\xadlastHeartbeat", created,
            _TOLD_NOTHING, NULL, b"\xa8timeline\x91", _born(m, _IDLE), created, _tail_of(m),
        )
    )  # fmt: skip


# -- timeline ------------------------------------------------------------------------------------

_STEP = {state: b"\xa5state" + text(name) + b"\xa9timestamp" for state, name in NAMES.items()}
_BORN = {state: b"\x82" + step for state, step in _STEP.items()}
_PRIORITIZED = b"\x82\xa5state\xabprioritized\xa9timestamp"
_TIMELINE_OF_TWO = b"\xa8timeline\x92"
OPENING = {state: Raw(_TIMELINE_OF_TWO + born) for state, born in _BORN.items()}


def _born(m: Message, run: Run) -> bytes:
    """Return the first entry of a timeline, up to its moment."""
    born = m.born
    priority = m.priority if run.first_priority is None else run.first_priority
    return _PRIORITIZED if priority > 0 and born is State.READY else _BORN[born]


def _timeline(m: Message, run: Run) -> bytes:
    steps = [_born(m, run) + moment(m.created), *map(_step, run.history)]
    if m.state in (State.LEASED, State.DONE):
        steps.append(_step(Step(State.LEASED, run.started)))
    if m.state is State.DONE:
        steps.append(_step(Step(State.DONE, run.finished)))
    kept = steps[-HISTORY:]
    return array(len(kept)) + b"".join(kept)


def _step(step: Step) -> bytes:
    parts = [_STEP[step.state], moment(step.at)]
    if step.state is State.DEAD:
        parts += [b"\xa5error", UNDEFINED if step.error is None else encode(step.error)]
    if step.attempt:
        parts += [b"\xa7attempt", number(step.attempt)]
    size = 2 + (step.state is State.DEAD) + bool(step.attempt)
    return bytes((0x80 | size,)) + b"".join(parts)


# -- what the publisher asked for ----------------------------------------------------------------

# By identity: hashing options costs more than encoding their tail saves. Each entry keeps its
# options alive, so that no other object can take over their identity.
_tails: dict[int, tuple[Options, bytes]] = {}


def _tail(options: Options) -> bytes:
    if options is DEFAULTS:
        return _PLAIN_TAIL
    known = _tails.get(id(options))
    if known is None or known[0] is not options:
        known = options, _encode_tail(options)
        if len(_tails) < TAILS and len(known[1]) <= KEPT_LENGTH:
            _tails[id(options)] = known
    return known[1]


def _tail_of(m: Message) -> bytes:
    """Return the tail of any job; those with a key of their own leave the cache alone."""
    options, links = m.options, m.links
    if options is DEFAULTS and links is not None and m.repeat is None:
        return _plain_child(links)
    tail = _tail(options) if options.unique_key is None else _encode_tail(options)
    if links is not None:
        tail = tail[: -len(_NO_FAMILY)] + _family(links)
    return tail if m.repeat is None else _repeating(m, tail)


_siblings: dict[tuple[str | None, str | None], bytes] = {}


def _plain_child(links: Links) -> bytes:
    """Return the tail of a job that asks for its family only; siblings have the same."""
    if links.depends_on or links.children:
        return _PLAIN_TAIL[: -len(_NO_FAMILY)] + _family(links)
    key = links.parent, links.on_failure
    known = _siblings.get(key)
    if known is None:
        known = _PLAIN_TAIL[: -len(_NO_FAMILY)] + _family(links)
        if len(known) <= KEPT_LENGTH:
            if len(_siblings) >= TAILS:
                _siblings.clear()
            _siblings[key] = known
    return known


_POLICIES = {
    None: "",
    "fail": "failParentOnFailure",
    "remove": "removeDependencyOnFailure",
    "continue": "continueParentOnFailure",
    "ignore": "ignoreDependencyOnFailure",
}
_POLICY = {
    chosen: b"".join(
        text(name) + (TRUE if policy == chosen else FALSE)
        for policy, name in _POLICIES.items()
        if name
    )
    for chosen in _POLICIES
}


def _family(links: Links) -> bytes:
    """Encode what ties a job to others; it stands at the end of the tail."""
    parent = links.parent
    return b"".join(
        (
            b"\xa9dependsOn",
            _ids(links.depends_on) if links.depends_on else b"\x90",
            b"\xabchildrenIds",
            _ids(links.children) if links.children else b"\x90",
            b"\xa8parentId",
            NULL if parent is None else text(parent),
            _POLICY[links.on_failure],
        )
    )


def _ids(ids: tuple[str, ...]) -> bytes:
    try:
        return encode(ids)
    except UnicodeEncodeError:
        return array(len(ids)) + b"".join(map(text, ids))


def _encode_tail(o: Options) -> bytes:
    kind = o.backoff_type
    config = (
        NULL if kind is None else b"\x82\xa4type" + text(kind) + b"\xa5delay" + number(o.backoff)
    )
    values: dict[str, bytes] = {
        "backoff": number(o.backoff),
        "backoffConfig": config,
        "childrenCompleted": number(0),
        "tags": encode(o.tags),
        "repeat": NULL,
        "durable": _flag(o.durable),
        "lifo": _flag(o.lifo),
        "maxAttempts": number(o.max_attempts),
        "removeOnComplete": _flag(o.remove_on_complete),
        "removeOnFail": _flag(o.remove_on_fail),
        "ttl": _optional(o.ttl),
        "timeout": _optional(o.timeout),
        "uniqueKey": NULL if o.unique_key is None else text(o.unique_key),
        "groupId": NULL if o.group is None else text(o.group),
        "stallTimeout": _optional(o.stall_timeout),
        "stackTraceLimit": number(o.stack_trace_limit),
        "keepLogs": _optional(o.keep_logs),
        "sizeLimit": _optional(o.size_limit),
        "deduplicationTtl": _optional(o.dedup_ttl),
        "deduplicationExtend": _flag(o.dedup_extend),
        "deduplicationReplace": _flag(o.dedup_replace),
        "debounceId": NULL if o.debounce_id is None else text(o.debounce_id),
        "debounceTtl": _optional(o.debounce_ttl),
    }
    encoded = b"".join(part for key, value in values.items() for part in (text(key), value))
    return encoded + _NO_FAMILY


_REPEAT = b"\xa6repeat"


def _repeating(m: Message, tail: bytes) -> bytes:
    """Return the tail of a job that comes again.

    The byte C0 occurs in no text, so nothing that a publisher has put before is mistaken for it.
    """
    r = m.repeat
    assert r is not None, "it repeats"
    fields = {
        "every": r.every, "limit": r.limit, "pattern": r.pattern, "count": r.count,
        "startDate": r.start, "endDate": r.end, "tz": r.tz, "immediately": r.immediately,
        "prevMillis": r.previous, "offset": r.offset, "jobId": r.job_id,
    }  # fmt: skip
    shown = b"".join(part for key, value in fields.items() for part in (text(key), _given(value)))
    head = _REPEAT + bytes((0x80 | len(fields),))
    return tail.replace(_REPEAT + NULL, head + shown, 1)


def _given(value: float | str | None) -> bytes:
    if value is None:
        return UNDEFINED
    if isinstance(value, bool):
        return _flag(value)
    return text(value) if isinstance(value, str) else number(value)


def _flag(value: bool) -> bytes:
    return TRUE if value else FALSE


def _optional(value: float | None) -> bytes:
    return NULL if value is None else number(value)


_NO_FAMILY = _family(Links())
_PLAIN_TAIL = _encode_tail(DEFAULTS)
PLAIN_TAIL = Raw(_PLAIN_TAIL)
