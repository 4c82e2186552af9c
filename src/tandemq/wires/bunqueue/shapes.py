"""A message as the 47-field job object of this wire (wire-commands 3).

The order of keys is no contract, so what changes comes first and what most jobs have in common
follows as a tail that is encoded once for each set of options.
"""

from __future__ import annotations

from tandemq.commands.states import NAMES, name_of
from tandemq.commands.table import UNDEFINED
from tandemq.model.message import Message, Options, Run, State, Step
from tandemq.wires.bunqueue.codec import (
    FALSE,
    NULL,
    TRUE,
    array,
    encode,
    moment,
    moment_or_null,
    number,
    text,
)

KEYS = 47
EMPTY = b"\x90"
TAILS = 4096  # encoded tails that are kept

_HEAD = b"\xde\x00" + bytes((KEYS,)) + b"\xa2id"
_HEAD_READ = b"\xde\x00" + bytes((KEYS + 3,)) + b"\xa2id"
_HEAD_BARE = b"\xde\x00" + bytes((KEYS + 2,)) + b"\xa2id"
_IDLE = Run()


def job(m: Message) -> bytes:
    """Encode a job as workers get it."""
    return _HEAD + _fields(m)


def job_read(m: Message) -> bytes:
    """Encode a job as readers get it: with state, result and last error."""
    return b"".join((_HEAD_READ, _fields(m), b"\xa5state", text(name_of(m)), *_outcome(m)))


def job_without_state(m: Message) -> bytes:
    """Encode a job as a reader by custom id gets it."""
    return b"".join((_HEAD_BARE, _fields(m), *_outcome(m)))


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
            m.body,
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
            _tail(m.options),
        )
    )


# -- timeline ------------------------------------------------------------------------------------

_STEP = {
    state: b"\xa5state" + text(name) + b"\xa9timestamp" for state, name in NAMES.items()
}
_BORN = {state: b"\x82" + step for state, step in _STEP.items()}
_PRIORITIZED = b"\x82\xa5state\xabprioritized\xa9timestamp"


def _timeline(m: Message, run: Run) -> bytes:
    history = run.history
    size = len(history) + 1
    born = _PRIORITIZED if m.born is State.READY and m.priority > 0 else _BORN[m.born]
    if size == 2 and history[0].state is State.LEASED:  # nearly every job that is handed out
        return b"".join(
            (b"\x92", born, moment(m.created), _BORN[State.LEASED], moment(history[0].at))
        )
    kept = [born + moment(m.created), *map(_step, history)][-20:]
    return array(min(size, 20)) + b"".join(kept)


def _step(step: Step) -> bytes:
    parts = [_STEP[step.state], moment(step.at)]
    if step.state is State.DEAD:
        parts += [b"\xa5error", UNDEFINED if step.error is None else encode(step.error)]
    if step.attempt:
        parts += [b"\xa7attempt", number(step.attempt)]
    size = 2 + (step.state is State.DEAD) + bool(step.attempt)
    return bytes((0x80 | size,)) + b"".join(parts)


# -- what the publisher asked for ----------------------------------------------------------------

_tails: dict[Options, bytes] = {}


def _tail(options: Options) -> bytes:
    tail = _tails.get(options)
    if tail is None:
        tail = _encode_tail(options)
        if len(_tails) < TAILS:
            _tails[options] = tail
    return tail


def _encode_tail(o: Options) -> bytes:
    kind = o.backoff_type
    config = (
        NULL
        if kind is None
        else b"\x82\xa4type" + text(kind) + b"\xa5delay" + number(o.backoff)
    )
    values: dict[str, bytes] = {
        "backoff": number(o.backoff),
        "backoffConfig": config,
        "dependsOn": EMPTY,
        "childrenIds": EMPTY,
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
        "uniqueKey": NULL,
        "parentId": NULL,
        "groupId": NULL,
        "stallTimeout": _optional(o.stall_timeout),
        "stackTraceLimit": number(o.stack_trace_limit),
        "keepLogs": _optional(o.keep_logs),
        "sizeLimit": _optional(o.size_limit),
        "failParentOnFailure": FALSE,
        "removeDependencyOnFailure": FALSE,
        "continueParentOnFailure": FALSE,
        "ignoreDependencyOnFailure": FALSE,
        "deduplicationTtl": NULL,
        "deduplicationExtend": FALSE,
        "deduplicationReplace": FALSE,
        "debounceId": NULL,
        "debounceTtl": NULL,
    }
    return b"".join(part for key, value in values.items() for part in (text(key), value))


def _flag(value: bool) -> bytes:
    return TRUE if value else FALSE


def _optional(value: float | None) -> bytes:
    return NULL if value is None else number(value)
