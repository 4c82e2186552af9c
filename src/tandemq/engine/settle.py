"""The end of a lease: acknowledged, failed, run out, renewed; and who may still say so late.

Sources: bunqueue semantics 4 (failure), 5 (locks), 7 (stalls); rulings 15 and 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from tandemq.engine import dlq
from tandemq.engine.core import Engine
from tandemq.engine.deadletters import remember_try
from tandemq.engine.endings import ended
from tandemq.engine.overlap import dropped
from tandemq.engine.queue import Queue
from tandemq.engine.timeline import end_run
from tandemq.model.broker import Reason
from tandemq.model.crossing import data_of
from tandemq.model.errors import NotLeased, TokenRequired, WrongToken
from tandemq.model.message import Message, Run, State, Step, Try
from tandemq.model.policy import (
    LINE_LENGTH,
    STACK_LINES,
    TOLD_LENGTH,
    backoff,
    cut,
    lease_ends_at,
    lease_of,
    most_stalls,
    times_out_at,
)

DELAYED, READY, LEASED = State.DELAYED, State.READY, State.LEASED
DONE, DEAD, GONE = State.DONE, State.DEAD, State.GONE


class Claim(Enum):
    """What somebody who wants to settle a message may do."""

    HELD = "holds the lease"
    LATE = "the message was taken back, but may still be completed"
    OVER = "the message has been finished meanwhile"


HELD = Claim.HELD


def claim(engine: Engine, id: str, token: str | None) -> tuple[Message, Claim]:
    """Find a message and what ``token`` allows.

    A lease without a token may be settled by anybody, with any token.

    Raises:
        NotLeased, TokenRequired, WrongToken
    """
    m = engine.messages.get(id)
    if m is None or m.run is None:
        raise NotLeased(id)
    if m.lease is not None:
        check_token(m, token)
        return m, HELD
    retired = m.run.retired
    if retired is None or retired not in ("", token):
        raise NotLeased(id)
    return m, Claim.LATE if m.state in (READY, DELAYED) else Claim.OVER


def check_token(m: Message, token: str | None) -> None:
    """Refuse to touch a leased message without its token.

    Raises:
        TokenRequired, WrongToken
    """
    needed = m.lease.token if m.lease is not None else None
    if needed is not None and token != needed:
        raise WrongToken(m.id) if token else TokenRequired(m.id)


def ack(
    engine: Engine,
    id: str,
    token: str | None,
    now: int,
    result: bytes | None = None,
    remove: bool = False,
) -> bool:
    """Complete a message; False when it has been finished meanwhile and nothing changed.

    Raises:
        NotLeased, TokenRequired, WrongToken
    """
    m = engine.messages.get(id)
    lease = m.lease if m is not None else None
    if m is None or lease is None or (lease.token is not None and lease.token != token):
        m, how = claim(engine, id, token)
        if how is Claim.OVER:
            return False
    complete(engine, m, now, result, remove)
    return True


def complete(
    engine: Engine, m: Message, now: int, result: bytes | None, remove: bool, verb: str = "ack"
) -> None:
    """End a message well, and keep it for those who ask, unless somebody wished otherwise."""
    completed(engine, m.queue, 1, now)
    finish(engine, m, now, result, remove, verb)


def completed(engine: Engine, queue: str, count: int, now: int) -> None:
    """So many messages of a queue end well: count them."""
    engine.counters.completed += count
    engine.tallies.count(engine, queue, now, well=True, ends=count)


def finish(
    engine: Engine, m: Message, now: int, result: bytes | None, remove: bool, verb: str = "ack"
) -> None:
    """Do what ``complete`` does; who calls counts it."""
    run = m.run
    assert run is not None, "only what was handed out is completed"
    run.retired = None
    run.finished = now
    run.started = run.started or now
    run.result = result
    if engine.rules.done_progress is not None:
        run.progress = engine.rules.done_progress
    engine.shift(m, verb, GONE if remove or m.options.remove_on_complete else DONE)
    if engine.listening:
        engine.say("completed", m, now, data=result)
    ended(engine, m, now, well=True)


def forget(engine: Engine, q: Queue, m: Message, now: int, verb: str = "ack") -> None:
    """A letter of a broker's queue is done, and gone."""
    engine.shift(m, verb, GONE)
    if engine.listening:
        engine.say("completed", m, now, data=None)
    if engine.watches or engine.dependents.waiting:
        ended(engine, m, now, well=True)
    forgot(engine, q, 1, now)


def forgot(engine: Engine, q: Queue, count: int, now: int) -> None:
    """So many letters were forgotten: they are counted, and their places are free."""
    completed(engine, q.name, count, now)
    if q.ready:
        engine.match(q, now)


def fail(
    engine: Engine,
    id: str,
    token: str | None,
    now: int,
    *,
    error: str | None = None,
    stack: Sequence[object] = (),
    unrecoverable: bool = False,
    remove: bool = False,
    delay: int | None = None,
) -> bool:
    """End an attempt badly; False when the attempt has been ended meanwhile.

    ``delay`` (ms) stands for the back-off of the message.

    Raises:
        NotLeased, TokenRequired, WrongToken
    """
    m, how = claim(engine, id, token)
    if how is not HELD:
        return False
    run = m.run
    assert run is not None, "a leased message has run"
    if error is not None:
        error = cut(error)
    lines = [line[:LINE_LENGTH].strip() for line in stack[:STACK_LINES] if isinstance(line, str)]
    kept = [line for line in lines if line][: max(0, m.options.stack_trace_limit)]
    run.stack = tuple(kept) or None
    end_attempt(
        engine,
        m,
        now,
        error,
        cause="max_attempts_exceeded",
        final=unrecoverable,
        remove=remove,
        delay=delay,
    )
    return True


def give_back(
    engine: Engine, id: str, token: str | None, now: int, delay: int, error: str | None = None
) -> bool:
    """Give a message back uncharged, to be ready in ``delay`` ms; False as for ``fail``.

    For workers that cannot run it, or not now: it takes its old place, and ``error`` says why.

    Raises:
        NotLeased, TokenRequired, WrongToken
    """
    m, how = claim(engine, id, token)
    if how is not HELD:
        return False
    run, _ = lease_of(m)
    end_run(run)
    run.error = run.error if error is None else cut(error)
    run.started = 0
    m.due = now + delay if delay else m.due
    engine.shift(m, "reschedule" if delay else "release", DELAYED if delay else READY)
    if engine.listening:
        engine.say("delayed" if delay else "waiting", m, now, prev="active")
    engine.match(engine.queues[m.queue], now)
    return True


def end_attempt(
    engine: Engine,
    m: Message,
    now: int,
    error: str | None,
    *,
    cause: str,
    final: bool = False,
    remove: bool = False,
    delay: int | None = None,
) -> None:
    """Charge an attempt; retry after a back-off while the budget lasts, else bury the message."""
    run = m.run
    assert run is not None, "a leased message has run"
    m.attempts += 1
    run.error = error
    told = None if error is None else cut(error, TOLD_LENGTH)
    failed = Step(DEAD, now, told, m.attempts, cause)
    last = final or m.attempts >= m.options.max_attempts
    if engine.listening:
        engine.say("failed", m, now, error=error, data=data_of(m), terminal=last)
    if last:
        end_run(run, failed)
        bury(engine, m, now, cause, remove)
        return
    why = "explicit_fail" if cause == "max_attempts_exceeded" else cause
    remember_try(run, Try(m.attempts, run.started, now, why, error))
    end_run(run, failed, Step(READY, now, None, m.attempts + 1))
    if engine.listening:
        engine.say("retried", m, now, prev="failed")
    retry_later(engine, m, now, delay)


def retry_later(engine: Engine, m: Message, now: int, delay: int | None = None) -> None:
    """Send a leased message back for another try, after ``delay`` ms or else its back-off."""
    assert m.run is not None, "a leased message has run"
    m.run.started = 0
    engine.counters.retried += 1
    if delay is None:
        delay = backoff(m.options, m.attempts, engine.uniform())
    m.due = now + delay
    back = DELAYED if m.due > now else READY
    engine.shift(m, "fail", back)
    q = engine.queues[m.queue]
    if back is READY or q.limited:  # its place may be what somebody waits for
        engine.match(q, now)


def bury(
    engine: Engine, m: Message, now: int, cause: str, remove: bool = False, verb: str = "fail"
) -> None:
    """Make a leased message a dead letter; ``verb`` is the edge of its life that leads there."""
    assert m.run is not None, "a leased message has run"
    if m.letter is not None and engine.queues[m.queue].settings.broker is not None:
        reason = _REASONS.get(cause, Reason.MAX_RETRIES_EXCEEDED)
        dlq.end(engine, m, now, reason, m.run.error)
        return
    engine.counters.failed += 1
    engine.tallies.count(engine, m.queue, now, well=False)
    m.run.finished = now
    m.run.cause = cause
    engine.shift(m, verb, GONE if remove or m.options.remove_on_fail else DEAD)
    ended(engine, m, now, well=False)


_REASONS = {"worker_lost": Reason.WORKER_LOST, "explicit_fail": Reason.HANDLER_EXCEPTION}


def overdue(engine: Engine, m: Message, now: int) -> None:
    """The clock ends a lease: it ran out, the job ran too long, or its worker went silent."""
    if m.lease is not None and m.lease.delivered and m.lease.conn is not None:
        engine.subscribers[m.lease.conn].unanswered(engine, m, now)
        return
    ends, limit = lease_ends_at(m), times_out_at(m)
    if limit is not None and limit <= now:
        _retire(m)
        engine.remark("job:timeout", m.queue, now, queue=m.queue, jobId=m.id)
        end_attempt(engine, m, now, "Job timeout exceeded", cause="timeout")
    elif m.options.unique_key is not None and dropped(engine, m, now):
        return
    elif ends is not None and ends <= now:
        _lease_ran_out(engine, m, now)
    else:
        _retire(m)
        _stalled(engine, m, now)


def _retire(m: Message) -> None:
    """Remember the lease that ends, because its holder may still come with a result."""
    run, lease = lease_of(m)
    run.retired = lease.token or ""


def _lease_ran_out(engine: Engine, m: Message, now: int) -> None:
    run, lease = lease_of(m)
    engine.remark(
        "job:lock-expired", m.queue, now, jobId=m.id, queue=m.queue, renewalCount=lease.renewals
    )
    if _strike(
        engine, m, run, now, "Lock expired", f"Lock expired after {lease.renewals} renewals"
    ):
        run.started = 0
        engine.shift(m, "fail", READY)  # at once and in its old place: its worker is gone
        engine.match(engine.queues[m.queue], now)


def _stalled(engine: Engine, m: Message, now: int) -> None:
    run = m.run
    assert run is not None, "a leased message has run"
    if _strike(engine, m, run, now, "Job stalled", f"Job stalled {run.stalls + 1} times"):
        retry_later(engine, m, now)


def _strike(engine: Engine, m: Message, run: Run, now: int, what: str, out_of_stalls: str) -> bool:
    """Charge an attempt and a stall; True when the message may run again, else it is buried."""
    m.attempts += 1
    run.stalls += 1
    end_run(run)
    engine.counters.stalled += 1
    limit = most_stalls(m.options, engine.queues[m.queue].settings.stall)
    cause = None
    if m.attempts >= m.options.max_attempts:
        run.error, cause = f"{what} at max attempts ({m.attempts})", "max_attempts_exceeded"
    elif limit > 0 and run.stalls >= limit:
        run.error, cause = out_of_stalls, "stalled"
    if engine.listening:
        _tell_of_strike(
            engine, m, run, now, with_data=what == "Job stalled", last=cause is not None
        )
    if cause is None:
        remember_try(run, Try(m.attempts, run.started, now, "stalled", what))
        return True
    bury(engine, m, now, cause)
    run.started = 0
    return False


def _tell_of_strike(
    engine: Engine, m: Message, run: Run, now: int, *, with_data: bool, last: bool
) -> None:
    action = "move_to_dlq" if last else "retry"
    fields = {"data": {"stallCount": run.stalls, "action": action}} if with_data else {}
    engine.say("stalled", m, now, **fields)
    if last:
        engine.say("failed", m, now, error=run.error)


def extend(engine: Engine, id: str, token: str | None, now: int, span: int | None = None) -> bool:
    """Renew a lease that has a token and has not run out; ``token`` None takes whatever there is.

    ``span`` is in ms from now and defaults to the span the lease was taken for. False when there
    is nothing to renew.
    """
    m = engine.messages.get(id)
    lease = m.lease if m is not None else None
    if m is None or lease is None or m.run is None or lease.token is None:
        return False
    if token not in (None, lease.token) or lease.until <= now:
        return False
    lease.until = now + (lease.span if span is None else span)
    lease.renewals += 1
    m.run.heartbeat = now
    engine.extended(m)
    return True


def heartbeat(
    engine: Engine, id: str, token: str | None, now: int, span: int | None = None
) -> bool:
    """Say that a message is being worked on; with a token this renews the lease too."""
    if token is not None:
        return extend(engine, id, token, now, span)
    m = engine.messages.get(id)
    if m is None or m.state is not LEASED or m.run is None:
        return False
    m.run.heartbeat = now
    engine.touched(m)  # its deadline can only have moved away
    return True
