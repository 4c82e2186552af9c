"""Dead letter queues: what a broker cannot deliver moves into a queue like any other.

A letter that ends badly in a broker's queue leaves it in the same moment in which its successor
appears in the dead letter queue, with headers that tell why. Where a queue has none it is dropped
and counted. A job stays where it is as a dead letter, and so does a letter in a job queue (ruling
14). What is brought back is as it was published, with its attempts before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from tandemq.engine import control, publish
from tandemq.engine.core import Engine
from tandemq.engine.endings import ended
from tandemq.engine.queue import Queue
from tandemq.engine.timeline import run_for
from tandemq.model.broker import ENDLESS, Policy, Reason, dead_letter_queue, options_of
from tandemq.model.errors import QueueFull
from tandemq.model.message import Death, Letter, Message, Run, State
from tandemq.model.policy import most_interruptions

READY, LEASED, DEAD, GONE = State.READY, State.LEASED, State.DEAD, State.GONE

MARK = "x-death-"  # how the headers begin that a dead letter has besides its own
ATTEMPTS = "x-attempts"
TEXT_LENGTH = 1_000  # characters of an explanation that a header may have

_CAUSES = {
    Reason.MAX_RETRIES_EXCEEDED: "max_attempts_exceeded",
    Reason.HANDLER_EXCEPTION: "max_attempts_exceeded",
    Reason.WORKER_LOST: "worker_lost",
    Reason.MESSAGE_EXPIRED: "ttl_expired",
}
"""How the job queue's wire names them; what it has no name for is unknown."""


def keeps(engine: Engine, m: Message) -> bool:
    """Whether a message would be kept if it ended badly now."""
    policy = _policy_of(engine, m)
    return policy is None or policy.dead_letters


def end(
    engine: Engine,
    m: Message,
    now: int,
    reason: Reason,
    text: str | None = None,
    *,
    popped: bool = False,
    verb: str = "dead-letter",
) -> None:
    """End a message badly: it is dropped, moves, or stays as a dead letter.

    ``popped`` says that it was just taken out of the ready order.
    """
    policy = _policy_of(engine, m)
    if policy is None:
        _stay(engine, m, now, reason, text, popped=popped)
        return
    if policy.dead_letters:
        move(engine, m, policy, now, reason, text)
    else:
        engine.counters.dropped += 1
    engine.shift(m, verb, GONE, popped=popped)
    ended(engine, m, now, well=False)


def interrupted(engine: Engine, m: Message, now: int) -> bool:
    """Count a connection that was lost with a message; True where that has ended it.

    One that took too many with it is a dead letter, or goes to the tail where there are none
    (ruling 15).
    """
    run = run_for(m)
    run.interruptions += 1
    engine.counters.interrupted += 1
    if not 0 < most_interruptions(m.options) <= run.interruptions:
        return False
    if keeps(engine, m):
        text = f"Connection lost {run.interruptions} times while it was running"
        end(engine, m, now, Reason.WORKER_LOST, text)
        return True
    run.interruptions, m.due = 0, now
    return False


def move(
    engine: Engine, m: Message, policy: Policy, now: int, reason: Reason, text: str | None
) -> None:
    """Put the successor of a letter into the dead letter queue; the letter itself is left alone."""
    assert m.letter is not None, "only letters move"
    death = Death(m.queue, reason, now, m.attempts, text)
    headers = {**(m.letter.headers or {}), **_headers(death)}
    q = _grave_of(engine, dead_letter_queue(policy, m.queue), now)
    _begin(engine, q, m, Letter(m.letter.id, headers, death), now)
    engine.counters.dead_lettered += 1
    engine.remark("dlq:added", m.queue, now, queue=m.queue, jobId=m.id, reason=cause_of(death))


def may_return(engine: Engine, m: Message) -> bool:
    """Whether a letter is dead and waits, and there is room where it was published."""
    from tandemq.engine import overflow  # which builds on this module

    if m.letter is None or m.letter.death is None or m.state is not READY:
        return False
    q = engine.queues.get(m.letter.death.queue)
    return q is None or not overflow.full(q)


def bring_back(engine: Engine, m: Message, now: int) -> bool:
    """Send a dead letter back to where it was published; False if it must stay."""
    if not may_return(engine, m):
        return False
    q, letter = _origin(engine, m, now)
    _begin(engine, q, m, letter, now)
    engine.shift(m, "cancel", GONE)
    ended(engine, m, now, well=False, parent_told=False)
    return True


def copy_of(engine: Engine, m: Message, body: bytes, now: int) -> Message:
    """Publish a copy of a letter that is dead, with another body; the letter stays.

    Raises:
        QueueFull: there is no room where it was published.
    """
    from tandemq.engine import overflow  # which builds on this module

    q, letter = _origin(engine, m, now)
    if overflow.full(q):
        raise QueueFull(q.name)
    return _begin(engine, q, m, letter, now, body, Run(replay_of=m.id))


def _origin(engine: Engine, m: Message, now: int) -> tuple[Queue, Letter]:
    """Return where a letter was published, and as what."""
    letter = m.letter
    assert letter is not None, "only letters move"
    if letter.death is None:
        return engine.queue(m.queue), Letter(letter.id, letter.headers)
    headers = {k: v for k, v in (letter.headers or {}).items() if not _is_mark(k)}
    q = _grave_of(engine, letter.death.queue, now, Policy(created=now))
    return q, Letter(letter.id, headers or None)


def letters(engine: Engine, queue: str) -> Iterator[Message]:
    """Yield the dead letters of a queue that wait in another one, oldest first."""
    q = engine.queues.get(queue)
    policy = q.settings.broker if q is not None else None
    grave = engine.queues.get(dead_letter_queue(policy or Policy(), queue))
    for m in grave.ready if grave is not None else ():
        if m.letter is not None and m.letter.death is not None and m.letter.death.queue == queue:
            yield m


def first(engine: Engine, queue: str, count: int) -> list[Message]:
    """Return the oldest dead letters of a queue that wait in another one."""
    return list(islice(letters(engine, queue), count))


def cause_of(death: Death) -> str:
    """Return why, as the job queue's wire names it."""
    return _CAUSES.get(Reason(death.reason), "unknown")


def _policy_of(engine: Engine, m: Message) -> Policy | None:
    """Return the rules under which a letter ends badly; None: it stays where it is."""
    return None if m.letter is None else engine.queues[m.queue].settings.broker


def _stay(
    engine: Engine, m: Message, now: int, reason: Reason, text: str | None, *, popped: bool
) -> None:
    run = run_for(m)
    run.error = text or run.error
    run.cause, run.finished = _CAUSES.get(reason, "unknown"), now
    engine.counters.failed += 1
    engine.tallies.count(engine, m.queue, now, well=False)
    engine.shift(m, _EDGES.get(m.state, "discard"), DEAD, popped=popped)
    if engine.listening:
        engine.say("failed", m, now, error=run.error)
    ended(engine, m, now, well=False)


_EDGES = {LEASED: "fail", State.PARKED: "settled"}


def _headers(death: Death) -> dict[str, str]:
    at = datetime.fromtimestamp(death.at / 1000, UTC).isoformat(timespec="milliseconds")
    told = {
        MARK + "queue": death.queue,
        MARK + "reason": Reason(death.reason).title,
        MARK + "time": at.replace("+00:00", "Z"),
        ATTEMPTS: str(death.attempts),
    }
    return told if death.text is None else {**told, MARK + "text": death.text[:TEXT_LENGTH]}


def _is_mark(header: str) -> bool:
    return header.startswith(MARK) or header == ATTEMPTS


def _grave_of(engine: Engine, name: str, now: int, policy: Policy | None = None) -> Queue:
    """Return a queue that is made where it is missing; nothing is dropped there for silence."""
    q = engine.queue(name)
    if q.settings.broker is None and not any(q.counts):
        fresh = policy or Policy(created=now, max_attempts=ENDLESS)
        control.configure(engine, q, broker=fresh)
    return q


def _begin(
    engine: Engine,
    q: Queue,
    m: Message,
    letter: Letter,
    now: int,
    body: bytes | None = None,
    run: Run | None = None,
) -> Message:
    from tandemq.engine import overflow  # which builds on this module

    policy = q.settings.broker
    if policy is not None and overflow.full(q):
        overflow.drop_oldest(engine, q, now)
    body = m.body if body is None else body
    successor = publish.draft(q.name, m.name, body, now, m.priority, id=engine.new_id(now))
    successor.letter, successor.run = letter, run
    if policy is not None:
        successor.options = options_of(policy)
    publish.begin(engine, q, successor, READY, now)
    engine.match(q, now)
    return successor
