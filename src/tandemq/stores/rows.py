"""Messages as rows and back: MessagePack arrays whose order never changes.

A head is an array of the fields in ``_Head``; options, lease and run are nil in most messages,
otherwise arrays of the fields in the classes below. These stand here and not in the model because
their order is the format of every data file: **append with a default, never reorder, never
remove**. A row that was written before a field existed ends early, and the field gets its default.

Numbers come back with the type they had: clients see the difference between 1000 and 1000.0.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from sys import intern

import msgspec

from tandemq.model.message import (
    DEFAULTS,
    Death,
    Lease,
    Letter,
    Links,
    Message,
    Options,
    Repeat,
    Run,
    State,
    Step,
    Try,
)
from tandemq.stores.base import Row, StoreFailed

SHARED_LENGTH = 1_024  # bytes of options that are kept for others: few have longer ones in common


class _Lease(msgspec.Struct, array_like=True, gc=False):
    token: str | None
    until: int
    span: int
    conn: int | None
    renewals: int = 0
    delivered: bool = False


class _Run(msgspec.Struct, array_like=True, gc=False):
    started: int = 0
    finished: int = 0
    heartbeat: int = 0
    progress: int | float = 0
    progress_message: str | None = None
    stack: tuple[str, ...] | None = None
    error: str | None = None
    cause: str | None = None
    result: bytes | None = None
    stalls: int = 0
    interruptions: int = 0
    retired: str | None = None
    history: list[Step] = []
    tries: list[Try] = []
    retries: int = 0
    retried: int = 0
    replay_of: str | None = None
    replays: tuple[str, ...] = ()
    first_priority: int | None = None


class _Options(msgspec.Struct, array_like=True, gc=False):
    max_attempts: int
    backoff: int | float
    backoff_type: str | None
    ttl: int | float | None
    timeout: int | float | None
    lifo: bool
    durable: bool
    remove_on_complete: bool
    remove_on_fail: bool
    custom_id: bool
    stall_timeout: int | float | None
    stack_trace_limit: int
    keep_logs: int | float | None
    size_limit: int | float | None
    tags: tuple[str, ...]
    group: str | None = None
    unique_key: str | None = None
    dedup_ttl: int | float | None = None
    dedup_extend: bool = False
    dedup_replace: bool = False
    dedup_policy: str | None = None
    dedup_keep: bool = False
    debounce_id: str | None = None
    debounce_ttl: int | float | None = None
    cost: int | float = 1
    group_max: int | None = None
    max_stalls: int | None = None
    max_interruptions: int | None = None


class _Links(msgspec.Struct, array_like=True, gc=False):
    parent: str | None = None
    children: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    on_failure: str | None = None
    failures: dict[str, str] = {}
    ignored: dict[str, str] = {}
    values: dict[str, bytes] = {}
    cascade: bool = False
    removal_fails: bool = False


class _Letter(msgspec.Struct, array_like=True, gc=False):
    id: str
    headers: dict[str, str] | None = None
    death: Death | None = None


class _Repeat(msgspec.Struct, array_like=True, gc=False):
    every: int | float | None = None
    pattern: str | None = None
    tz: str | None = None
    limit: int | float | None = None
    count: int = 0
    start: int | float | None = None
    end: int | float | None = None
    immediately: bool | None = None
    previous: int | float | None = None
    offset: int | float | None = None
    job_id: str | None = None
    next: str | None = None


class _Head(msgspec.Struct, array_like=True, gc=False):
    id: str
    queue: str
    name: str
    created: int
    due: int
    priority: int = 0
    state: State = State.NEW
    born: State = State.NEW
    attempts: int = 0
    leases: int = 0
    options: bytes | None = None  # an array of its own, so that equal ones are made once
    lease: _Lease | None = None
    run: _Run | None = None
    links: _Links | None = None
    repeat: _Repeat | None = None
    letter: _Letter | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Head).decode
_decode_options = msgspec.msgpack.Decoder(_Options).decode
_options_tuple = attrgetter(*_Options.__struct_fields__)
_lease_tuple = attrgetter(*_Lease.__struct_fields__)
_run_tuple = attrgetter(*_Run.__struct_fields__)
_links_tuple = attrgetter(*_Links.__struct_fields__)
_letter_tuple = attrgetter(*_Letter.__struct_fields__)
_repeat_tuple = attrgetter(*_Repeat.__struct_fields__)


def encode_head(m: Message) -> bytes:
    """Return everything of a message but its seq, its body and what lives in memory only."""
    options = m.options
    return _encode(
        (
            m.id,
            m.queue,
            m.name,
            m.created,
            m.due,
            m.priority,
            m.state,
            m.born,
            m.attempts,
            m.leases,
            None
            if options is DEFAULTS or options == DEFAULTS
            else _encode(_options_tuple(options)),
            None if m.lease is None else _lease_tuple(m.lease),
            None if m.run is None else _run_tuple(m.run),
            *_ties(m),
        )
    )


def _ties(m: Message) -> tuple[object, ...]:
    if m.links is None and m.repeat is None and m.letter is None:
        return ()  # nearly all: the row ends early
    return (
        None if m.links is None else _links_tuple(m.links),
        None if m.repeat is None else _repeat_tuple(m.repeat),
        None if m.letter is None else _letter_tuple(m.letter),
    )


def decode(row: Row) -> Message:
    """Return the message of a row, ``stored`` and without a timer.

    Equal options are one object, equal names of queues and messages one string: a million
    messages share a few of them.

    Raises:
        StoreFailed: the row is damaged, or a later version wrote it.
    """
    try:
        head = _decode(row.head)
        return Message(
            head.id,
            intern(head.queue),
            intern(head.name),
            row.body,
            row.seq,
            head.created,
            head.due,
            head.priority,
            DEFAULTS if head.options is None else _options(head.options),
            head.state,
            head.born,
            head.attempts,
            head.leases,
            None if head.lease is None else Lease(*_lease_tuple(head.lease)),
            None if head.run is None else Run(*_run_tuple(head.run)),
            None if head.links is None else Links(*_links_tuple(head.links)),
            None if head.repeat is None else Repeat(*_repeat_tuple(head.repeat)),
            None if head.letter is None else Letter(*_letter_tuple(head.letter)),
            0,
            True,
        )
    except (msgspec.DecodeError, TypeError) as exc:
        raise StoreFailed(f"the row of message {row.seq} cannot be read: {exc}") from exc


def _options(packed: bytes) -> Options:
    """Return options as one object for all messages that have the same, unless they are long."""
    return _shared(packed) if len(packed) <= SHARED_LENGTH else _shared.__wrapped__(packed)


@lru_cache(maxsize=4096)
def _shared(packed: bytes) -> Options:
    stored = _decode_options(packed)
    return Options(**dict(zip(_Options.__struct_fields__, _options_tuple(stored), strict=True)))
