"""How a queue behaves at the edges of a life: pure decisions about one message.

Nothing here needs an engine, so that a broker on a shared database can call the same functions.
Sources: bunqueue semantics 4 (retries), 5 (locks), 7 (stalls).
"""

from __future__ import annotations

from msgspec import Struct

from tandemq.model.message import Lease, Message, Options, Run, State

READY, PARKED, LEASED, DELAYED = State.READY, State.PARKED, State.LEASED, State.DELAYED

LEASE = 30_000  # ms; a lease whose owner names no other span
LEASE_GRACE = 800  # ms after its end in which a late settle still wins (bunqueue quirk 28)
STALL_SWEEP = 5_000  # ms between the first sign of a stall and its verdict
INTERRUPTIONS = 10  # broken connections after which a job is a dead letter: it may be the cause
BACKOFF_CAP = 3_600_000  # ms
ERROR_LENGTH = 65_536  # characters of an error that are kept
TOLD_LENGTH = 1_024  # characters of it that stay in the history, and that others are told of
LINE_LENGTH = 4_096  # characters of a line of a stack that are kept
STACK_LINES = 100  # of a failure's stack are looked at
HISTORY = 20  # newest steps of a timeline that are kept
TRIES = 50  # newest failed attempts that are kept for a dead letter
LOG_LINES = 100  # newest lines of a message's log that are kept
BATCH_BYTES = 16 << 20  # after which no further message is handed out in one answer
ANSWER_BYTES = 62 << 20  # of an answer without the id of its request; peers read frames of 64 MiB


class Stall(Struct, frozen=True):
    """When a message without sign of life is taken back, for one queue."""

    enabled: bool = True
    interval: int = 30_000  # ms without a heartbeat
    max_stalls: int = 3  # 0: no limit
    grace: int = 5_000  # ms after the start in which nothing counts as a stall


NO_STALL = Stall(enabled=False)


class Rate(Struct, frozen=True, omit_defaults=True):
    """A rate limit of a queue: ``max`` in ``duration`` ms, refilled evenly."""

    max: float
    duration: float = 1000
    ends: int | None = None  # a moment after which there is no limit


class Burial(Struct, frozen=True):
    """What becomes of the dead letters of one queue."""

    auto_retry: bool = False
    interval: int = 3_600_000  # ms until the first automatic retry, doubled with each further one
    max_retries: int = 3  # retries after which none happens by itself
    max_age: int | None = 604_800_000  # ms until it is forgotten; None: never
    max_entries: int = 10_000  # beyond it the oldest go


def cut(error: str, most: int = ERROR_LENGTH) -> str:
    """Return an error in its whole length, or its beginning."""
    return error if len(error) <= most else error[:most] + " ... (cut)"


def backoff(options: Options, attempts: int, uniform: float) -> int:
    """Return the ms to wait before the next run, after ``attempts`` failures.

    A fixed back-off varies by a fifth, an exponential one by half, so that the failures of one
    moment do not return in one moment. ``uniform`` is a random number in [0, 1).
    """
    if options.backoff_type == "fixed":
        delay = options.backoff * (0.8 + 0.4 * uniform)
    else:
        # 2 ** 1000 attempts would still be a float; the cap makes larger powers pointless
        delay = options.backoff * 2.0 ** min(attempts, 64) * (0.5 + uniform)
    return int(min(delay, BACKOFF_CAP))


def expires(m: Message) -> int | None:
    """Return the first moment at which a waiting message is past its time to live."""
    ttl = m.options.ttl
    return None if ttl is None else m.created + int(ttl) + 1


def stalls_at(m: Message, stall: Stall) -> int | None:
    """Return when a leased message counts as stalled, if it shows no sign of life until then.

    What was delivered to a subscription has a time for its answer, and no other sign of life.
    """
    if not stall.enabled or m.run is None or (m.lease is not None and m.lease.delivered):
        return None
    own = m.options.stall_timeout
    interval = stall.interval if own is None else max(0, int(own))
    return max(m.run.started + stall.grace, m.run.heartbeat + interval) + STALL_SWEEP


def most_stalls(options: Options, stall: Stall) -> int:
    """Return how many stalls make a message a dead letter; 0: however many."""
    own = options.max_stalls
    return stall.max_stalls if own is None else own


def most_interruptions(options: Options) -> int:
    """Return how many broken connections make a message a dead letter; 0: however many."""
    own = options.max_interruptions
    return INTERRUPTIONS if own is None else own


def log_lines(options: Options) -> int:
    """Return how many lines of its log a message keeps; a publisher may ask for fewer, not more."""
    own = options.keep_logs
    return LOG_LINES if own is None or own < 0 else min(LOG_LINES, int(own))


def times_out_at(m: Message) -> int | None:
    """Return when a leased message has run longer than its publisher allowed."""
    timeout = m.options.timeout
    if not timeout or m.run is None or (m.lease is not None and m.lease.delivered):
        return None
    return m.run.started + max(1, int(timeout))


def lease_ends_at(m: Message) -> int | None:
    """Return when an unrenewed lease is taken back; a lease without a token has no end."""
    lease = m.lease
    if lease is None or lease.token is None:
        return None
    return lease.until if lease.delivered else lease.until + LEASE_GRACE


def lease_of(m: Message) -> tuple[Run, Lease]:
    """Return the run and the lease of a leased message."""
    run, lease = m.run, m.lease
    assert run is not None, "a leased message has run"
    assert lease is not None, "a leased message has a lease"
    return run, lease


def looks_again(m: Message) -> int | None:
    """Return a moment not later than the deadline, for the timer of a message that just moved.

    Most leases end long before anything is due. So a lease gets a timer for the earliest stall
    there could be, which costs nothing to find, and only a message that is still leased then is
    asked for its real deadline.
    """
    state = m.state
    if state is LEASED:
        lease, run = m.lease, m.run
        if lease.delivered:  # type: ignore[union-attr]
            return lease.until  # type: ignore[union-attr]
        at = run.started + STALL_SWEEP  # type: ignore[union-attr]  # it has run
        if lease.token is not None and lease.until + LEASE_GRACE < at:  # type: ignore[union-attr]
            at = lease.until + LEASE_GRACE  # type: ignore[union-attr]  # and a lease
        return min(at, times_out_at(m) or at) if m.options.timeout else at
    if state is READY or state is PARKED:
        return None if m.options.ttl is None else expires(m)
    return deadline(m, NO_STALL) if state is DELAYED else None


def deadline(m: Message, stall: Stall) -> int | None:
    """Return the next moment at which time alone changes the message."""
    state = m.state
    if state is READY or state is PARKED:
        return None if m.options.ttl is None else expires(m)
    if state is LEASED:
        first = stalls_at(m, stall)
        for end in (lease_ends_at(m), times_out_at(m)):
            if end is not None and (first is None or end < first):
                first = end
        return first
    if state is DELAYED:
        end = expires(m)
        return m.due if end is None else min(m.due, end)
    return None
