"""The record: a message, its state, its options, its lease and what has happened to it so far.

A job is a message that somebody pulls. All moments are integer milliseconds since the epoch and
all spans integer milliseconds, unless a name says otherwise. Messages exist by the million, so
they are Structs without garbage-collector tracking: they never take part in reference cycles.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from msgspec import Struct


class State(IntEnum):
    """Where a message is in its life. The numbers are stored in data files: never reuse one."""

    NEW = 0  # not accepted yet
    PARKED = 1  # waits for children or copies
    DELAYED = 2  # waits for its moment
    READY = 3  # waits for a consumer
    LEASED = 4  # held by a consumer
    DONE = 5  # ended well, kept for a while
    DEAD = 6  # ended badly: a dead letter
    GONE = 7  # forgotten


WAITING: Final = (State.PARKED, State.DELAYED, State.READY)
ENDED: Final = (State.DONE, State.DEAD)  # and still there


class Options(Struct, frozen=True, gc=False):
    """What the publisher asked for. Most messages share one of a few equal values."""

    max_attempts: int = 3
    backoff: float = 1000
    backoff_type: str | None = None  # "fixed", "exponential"; None: a bare number was given
    ttl: float | None = None  # may be fractional: clients send what they like
    timeout: float | None = None  # longest run
    lifo: bool = False
    durable: bool = False  # the answer waits for fsync
    remove_on_complete: bool = False
    remove_on_fail: bool = False
    custom_id: bool = False  # the id was chosen by the publisher
    stall_timeout: float | None = None
    stack_trace_limit: int = 10
    keep_logs: float | None = None
    size_limit: float | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None  # the lane it waits in
    unique_key: str | None = None  # no second message of its queue has the same while it is held
    dedup_ttl: float | None = None  # ms the key is held at the longest
    dedup_extend: bool = False
    dedup_replace: bool = False
    dedup_policy: str | None = None  # ours: drop, replace, coalesce, queue-one
    dedup_keep: bool = False  # ours: the key stays through retries, until the end
    debounce_id: str | None = None  # stored and shown, nothing more (bunqueue semantics 9)
    debounce_ttl: float | None = None
    cost: float = 1  # ours: what it takes from a rate limit
    group_max: int | None = None  # most messages of its group that may wait, this one included
    max_stalls: int | None = None  # ours; None: as its queue says, 0: no limit
    max_interruptions: int | None = None  # ours; None: INTERRUPTIONS of the policy, 0: no limit


DEFAULTS = Options()


class Links(Struct, gc=False):
    """What ties a message to others: its parent, and what it waits for."""

    parent: str | None = None
    children: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    open: tuple[str, ...] = ()  # of those, the ones that have not ended well yet
    on_failure: str | None = None  # what its dead end does to its parent
    failures: dict[str, str] = {}  # child -> error, of those whose failure the parent outlived
    ignored: dict[str, str] = {}
    values: dict[str, bytes] = {}  # child -> result, of those that are not kept themselves
    cascade: bool = False  # ours: a parent that dies of this one is a failed child in its turn
    removal_fails: bool = False  # ours: to be cancelled or discarded is a failure for the parent


class Repeat(Struct, gc=False):
    """How a message comes again after it ended well."""

    every: float | None = None  # ms
    pattern: str | None = None
    tz: str | None = None
    limit: float | None = None
    count: int = 0
    start: float | None = None  # moments
    end: float | None = None
    immediately: bool | None = None
    previous: float | None = None
    offset: float | None = None
    job_id: str | None = None
    next: str | None = None  # its successor, once there is one


class Lease(Struct, gc=False):
    """The right to settle one message until a moment."""

    token: str | None  # None: pulled without an owner, anybody may settle
    until: int  # 0: never expires by itself (no token)
    span: int  # renewed for this long, when the renewal names no other span
    conn: int | None  # the connection it dies with; None: survives disconnects
    renewals: int = 0
    delivered: bool = False  # to a subscription: whoever received it settles it, by its name


class Step(NamedTuple):
    """One entry of a message's timeline."""

    state: State
    at: int
    error: str | None = None
    attempt: int = 0  # 0: not part of the entry
    cause: str | None = None  # why an attempt failed


class Try(NamedTuple):
    """One attempt that failed, as the history of a dead letter tells it."""

    attempt: int  # failures so far, this one included
    started: int
    failed: int
    cause: str
    error: str | None = None


class Run(Struct, gc=False):
    """What has happened to a message since it was first handed out."""

    started: int = 0  # 0: not running, and not finished either
    finished: int = 0
    heartbeat: int = 0
    progress: float = 0
    progress_message: str | None = None
    stack: tuple[str, ...] | None = None
    error: str | None = None  # of the last failure
    cause: str | None = None  # why it is a dead letter
    result: bytes | None = None
    stalls: int = 0
    interruptions: int = 0  # connections that broke while holding it
    retired: str | None = None  # a token that may still settle late; "" = none was needed
    history: list[Step] = []  # of lives that ended; the present or last one is in the moments
    tries: list[Try] = []  # attempts that failed and were followed by another; the newest ones
    retries: int = 0  # how often it came back from the dead letters
    retried: int = 0  # when it did so last; 0: never
    replay_of: str | None = None  # the dead letter whose edited copy it is
    replays: tuple[str, ...] = ()  # the edited copies that were made of it
    first_priority: int | None = None  # with which it was published, if it was changed since


class Death(NamedTuple):
    """How a message came into a dead letter queue."""

    queue: str  # where it was published
    reason: int  # a ``model.broker.Reason``
    at: int
    attempts: int
    text: str | None = None  # what more there is to say


class Letter(Struct, gc=False):
    """What a message has that was published on a broker's wire; its body is JSON, b"" for none."""

    id: str  # as its publisher named it; two messages may have the same
    headers: dict[str, str] | None = None
    death: Death | None = None  # it is a dead letter


class Message(Struct, gc=False):
    """One message from its publication until it is forgotten."""

    id: str
    queue: str
    name: str
    body: bytes
    seq: int  # arrival number: place among equals, and key of its row
    created: int
    due: int
    priority: int = 0
    options: Options = DEFAULTS
    state: State = State.NEW
    born: State = State.NEW  # the first state after NEW
    attempts: int = 0  # failures that count against the budget
    leases: int = 0  # how often it was handed out
    lease: Lease | None = None
    run: Run | None = None
    links: Links | None = None
    repeat: Repeat | None = None
    letter: Letter | None = None
    gen: int = 0  # counts moves; entries and timers made for an older one are stale
    stored: bool = False  # its row exists, so only the head needs writing
    rebodied: bool = False  # and the body as well: the row has an older one
