"""What is done to many messages of a queue at once: drained, cleaned, obliterated, let go again.

Each function returns a sweep that has noted its messages down, which is all that can take long at
a million of them; whoever asked adds what to answer and begins it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from tandemq.engine import control, deadletters, graves, groups, manage
from tandemq.engine.core import Engine
from tandemq.engine.inspect import SORTED, count
from tandemq.engine.queue import NO_SETTINGS, Queue
from tandemq.engine.sweeps import Sweep
from tandemq.model.message import ENDED, Message, State

DELAYED, READY, LEASED, DONE, DEAD, GONE = (
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
    State.GONE,
)
EXPECTED = (READY, DELAYED)  # what a pull may get by time alone

_by_seq, _by_due = attrgetter("seq"), attrgetter("due")


class Wanted(NamedTuple):
    """Which dead letters are meant; None does not restrict."""

    cause: str | None = None
    before: float | None = None  # moments of their end, both exclusive
    after: float | None = None
    retried: bool | None = None  # will be, by itself
    expired: bool | None = None  # too old already
    offset: int = 0
    limit: int | None = None


ANY = Wanted()


def drain(engine: Engine, queue: str) -> Sweep:
    """Take away everything that is ready or delayed."""
    last = engine.seq

    def act(m: Message, now: int) -> bool:
        if m.state not in EXPECTED or m.seq > last:
            return False
        manage.remove(engine, m, now)
        return True

    return Sweep(_expected(engine, queue), act)


def clean(engine: Engine, queue: str, state: State, before: float, limit: int) -> Sweep:
    """Take away at most ``limit`` messages that are older than ``before``, oldest first.

    ``state`` READY means the delayed ones too, whose age counts from their creation like that of
    the ready ones; that of completed and dead ones counts from their end.
    """
    if state is READY:
        return _clean_expected(engine, queue, before, limit)

    def act(m: Message, now: int) -> bool:
        if m.state is not state or deadletters.run_of(m).finished > before:
            return False
        engine.forget(m)
        return True

    return Sweep(_members(engine, queue, state), act, limit, ids=[])


def _clean_expected(engine: Engine, queue: str, before: float, limit: int) -> Sweep:
    def act(m: Message, now: int) -> bool:
        if m.state not in EXPECTED or m.created > before:
            return False
        manage.remove(engine, m, now)
        return True

    messages: Iterable[Message] = _expected(engine, queue)
    if count(engine, queue) <= SORTED:
        messages = sorted(messages, key=_by_seq)
    return Sweep(messages, act, limit, ids=[])


def obliterate(engine: Engine, queue: str) -> Sweep:
    """Take away everything that a queue holds, whatever its state; ``wipe`` does the rest."""
    last = engine.seq

    def act(m: Message, now: int) -> bool:
        if m.seq > last or m.state is GONE:
            return False
        if m.state in ENDED:
            engine.forget(m)
        else:
            manage.remove(engine, m, now)
        return True

    return Sweep(_everything(engine, queue, last), act)


def wipe(engine: Engine, queue: str, now: int) -> None:
    """Forget everything else that is known of a queue."""
    engine.tallies.drop(engine, queue)
    engine.journal.trim(queue, 0)
    q = engine.queues.get(queue)
    if q is None:
        return
    if q.settings != NO_SETTINGS:
        control.reset(engine, q)
    groups.forget_rules(engine, q)
    engine.match(q, now)
    engine.tidy(q)


def promote(engine: Engine, queue: str, limit: int | None) -> Sweep:
    """Let delayed messages be ready, those that are due first before others."""
    messages: Iterable[Message] = _members(engine, queue, DELAYED)
    if count(engine, queue) <= SORTED:
        messages = sorted(messages, key=_by_due)
    return Sweep(messages, lambda m, now: manage.promote(engine, m, now), limit)


def retry_completed(engine: Engine, queue: str, before: float | None, limit: int | None) -> Sweep:
    """Let messages run again that were completed (before a moment), oldest first."""

    def act(m: Message, now: int) -> bool:
        if m.state is not DONE:
            return False
        if before is not None and deadletters.run_of(m).finished >= before:
            return False
        return deadletters.run_again(engine, m, now)

    return Sweep(_members(engine, queue, DONE), act, limit)


def retry_dead(engine: Engine, queue: str, wanted: Wanted, *, dry: bool = False) -> Sweep:
    """Let dead letters run again, oldest first; ``dry`` only counts those that could."""

    def act(m: Message, now: int) -> bool:
        return graves.may_return(engine, m, now) if dry else graves.retry(engine, m, now)

    return _over_dead(engine, queue, wanted, act)


def purge_dead(engine: Engine, queue: str, wanted: Wanted, *, dry: bool = False) -> Sweep:
    """Forget dead letters; ``dry`` only counts them."""

    def act(m: Message, now: int) -> bool:
        if not dry:
            graves.forget(engine, m, now)
        return True

    return _over_dead(engine, queue, wanted, act)


def fits(m: Message, wanted: Wanted, q: Queue, now: int) -> bool:
    """Whether a dead letter is one of those wanted."""
    rules = q.settings.burial
    if wanted.cause is not None and graves.cause_of(m) != wanted.cause:
        return False
    if wanted.before is not None and graves.ended_at(m) >= wanted.before:
        return False
    if wanted.after is not None and graves.ended_at(m) <= wanted.after:
        return False
    if wanted.retried is not None:
        return wanted.retried == (graves.next_retry(m, rules) is not None)
    if wanted.expired is not None:
        at = graves.expires(m, rules)
        return wanted.expired == (at is not None and at <= now)
    return True


def _over_dead(
    engine: Engine, queue: str, wanted: Wanted, do: Callable[[Message, int], bool]
) -> Sweep:
    q, skipped = engine.queues.get(queue) or Queue(queue), 0

    def act(m: Message, now: int) -> bool:
        nonlocal skipped
        if not graves.belongs(m, queue) or not fits(m, wanted, q, now):
            return False
        if skipped < wanted.offset:
            skipped += 1
            return False
        return do(m, now)

    return Sweep(over_dead(engine, queue), act, wanted.limit)


def over_dead(engine: Engine, queue: str) -> Iterator[Message]:
    """Yield the dead letters of a queue, those that stayed before those that moved."""
    yield from _members(engine, queue, DEAD)
    yield from graves.moved(engine, queue)


def _members(engine: Engine, queue: str, state: State) -> Iterator[Message]:
    q = engine.queues.get(queue)
    if q is not None:
        yield from _noted(q, state)


def _noted(q: Queue, state: State) -> Iterator[Message]:
    """Yield the messages that are in a state now, and let go of each note on the way."""
    notes = deque(q.members[state].values())
    while notes:
        yield notes.popleft()


def _expected(engine: Engine, queue: str) -> Iterator[Message]:
    q = engine.queues.get(queue)
    if q is not None:
        yield from q.ready.all()
        yield from _noted(q, DELAYED)


def _everything(engine: Engine, queue: str, last: int) -> Iterator[Message]:
    """Yield the messages up to the number ``last``, leased ones first, until there are none.

    One may change its state while others are looked at, so a single round could miss it.
    """
    left = True
    while left:
        left = False
        for state in (LEASED, *State):
            q = engine.queues.get(queue)
            if q is None:
                return
            found = q.ready.all() if state is READY else _noted(q, state)
            for m in found:
                if m.seq <= last and m.state is not GONE:
                    left = True
                    yield m
