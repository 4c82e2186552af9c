"""Messages that ended badly: what is known of each, and how they come back or go.

A dead letter stays in its queue in the state DEAD. It came there at ``run.finished`` for
``run.cause``; the attempts before its last one are in ``run.tries``. Each queue has its own rules
(``Settings.burial``): how many are kept and for how long, and whether they are retried by
themselves. A retried message starts anew, with its history (bunqueue semantics 11).
"""

from __future__ import annotations

from itertools import islice

import msgspec

from tandemq.engine.core import Engine
from tandemq.engine.publish import publish
from tandemq.engine.queue import Queue, Tallied, cause_of
from tandemq.engine.timeline import add_steps
from tandemq.model.message import Message, Options, Run, State, Step, Try
from tandemq.model.policy import TOLD_LENGTH, TRIES, Burial, cut

READY, LEASED, DONE, DEAD = State.READY, State.LEASED, State.DONE, State.DEAD
SLICE = 2_000  # letters forgotten in one go


class Graveyard:
    """Sees to it that the dead letters of one queue go when they are too old."""

    __slots__ = ("gen", "queue", "wound")

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.gen = 0
        self.wound = False  # a look at the oldest will come


# -- what is known of one -------------------------------------------------------------------------


def next_retry(m: Message, rules: Burial) -> int | None:
    """Return when a dead letter is retried by itself."""
    run = run_of(m)
    if not rules.auto_retry or run.retries >= rules.max_retries or run.replays:
        return None
    return run.finished + int(rules.interval * 2.0 ** max(0, min(run.retries, 64) - 1))


def expires(m: Message, rules: Burial) -> int | None:
    """Return when a dead letter is forgotten."""
    return None if rules.max_age is None else run_of(m).finished + rules.max_age


def last_try(m: Message) -> Try:
    """Return the attempt that made a message a dead letter."""
    run = run_of(m)
    starts = (step.at for step in reversed(run.history) if step.state is LEASED)
    started = run.started or next(starts, 0) or m.created
    return Try(m.attempts, started, run.finished, run.cause or "unknown", run.error)


def run_of(m: Message) -> Run:
    """Return what has happened to a message that has ended."""
    run = m.run
    assert run is not None, "what has ended has a run"
    return run


def remember_try(run: Run, tried: Try) -> None:
    """Keep a failed attempt that another one follows."""
    if tried.error is not None:
        tried = tried._replace(error=cut(tried.error, TOLD_LENGTH))
    run.tries.append(tried)
    del run.tries[:-TRIES]


# -- coming and going by themselves ---------------------------------------------------------------


def buried(engine: Engine, m: Message) -> None:
    """A message has become a dead letter: set its timers, make room for it."""
    q, run = engine.queues[m.queue], run_of(m)
    engine.remark(
        "dlq:added", q.name, run.finished, queue=q.name, jobId=m.id, reason=run.cause or "unknown"
    )
    watch_over(engine, q)
    _set_retry(engine, m, q.settings.burial)
    _evict(engine, q)


def watch_over(engine: Engine, q: Queue) -> None:
    """Make sure that the oldest dead letter of a queue is looked at in time."""
    dead, rules = q.members[DEAD], q.settings.burial
    if not dead or rules.max_age is None:
        return
    yard = _graveyard(q)
    if not yard.wound:
        _wind(engine, yard, run_of(_oldest(q)).finished + rules.max_age)


def go_over(engine: Engine, yard: Graveyard, now: int) -> None:
    """Forget what is too old, a few at a time, and look again later."""
    q = engine.queues.get(yard.queue)
    if q is None or q.graveyard is not yard:
        return
    yard.wound, count = False, 0
    for m in list(islice(q.members[DEAD].values(), SLICE)):
        at = expires(m, q.settings.burial)
        if at is None or at > now:
            break
        engine.forget(m)
        count += 1
    if count:
        engine.remark("dlq:expired", q.name, now, queue=q.name, count=count)
    _evict(engine, q)
    if len(q.members[DEAD]) and (at := expires(_oldest(q), q.settings.burial)) is not None:
        _wind(engine, yard, max(at, now + 1))


def rang(engine: Engine, m: Message, now: int) -> None:
    """The moment of an automatic retry may have come."""
    rules = engine.queues[m.queue].settings.burial
    at = next_retry(m, rules)
    if at is None:
        return
    if at > now:
        engine.timers.set(m, at)
    elif retry(engine, m, now):
        engine.remark("dlq:auto-retried", m.queue, now, queue=m.queue, jobId=m.id)


def rules_changed(engine: Engine, q: Queue) -> None:
    """Other rules hold from now on, or the letters come from a store: set every timer anew."""
    dead, rules = q.members[DEAD], q.settings.burial
    if q.graveyard is not None:
        q.graveyard.wound = False
        q.graveyard.gen += 1
    watch_over(engine, q)
    if rules.auto_retry:
        for m in dead.values():
            _set_retry(engine, m, rules)
    _evict(engine, q)


def restored(engine: Engine, q: Queue) -> None:
    """The letters of a queue come from a store, by age: sort them by the moment of their end."""
    dead = q.members[DEAD]
    if dead:
        q.members[DEAD] = Tallied(cause_of)
        for m in sorted(dead.values(), key=lambda m: run_of(m).finished):
            q.members[DEAD][m.seq] = m
        rules_changed(engine, q)


def _set_retry(engine: Engine, m: Message, rules: Burial) -> None:
    if rules.auto_retry and (at := next_retry(m, rules)) is not None:
        engine.timers.set(m, at)


def _evict(engine: Engine, q: Queue) -> None:
    """Forget the oldest ones beyond the bound; a bound that was lowered far is reached in steps."""
    dead, most = q.members[DEAD], q.settings.burial.max_entries
    if len(dead) <= most:
        return
    for m in list(islice(dead.values(), min(len(dead) - most, SLICE))):
        engine.forget(m)
    if len(dead) > most:
        _wind(engine, _graveyard(q), 0)


def _graveyard(q: Queue) -> Graveyard:
    if q.graveyard is None:
        q.graveyard = Graveyard(q.name)
    return q.graveyard


def _wind(engine: Engine, yard: Graveyard, at: int) -> None:
    yard.wound = True
    engine.timers.set(yard, at)


def _oldest(q: Queue) -> Message:
    return next(iter(q.members[DEAD].values()))


# -- asked for ------------------------------------------------------------------------------------


def letter(engine: Engine, queue: str, id: str) -> Message | None:
    """Return one dead letter of a queue."""
    m = engine.messages.get(id)
    return m if m is not None and m.state is DEAD and m.queue == queue else None


def may_return(engine: Engine, m: Message, now: int) -> bool:
    """Whether no other message has the unique key of one that has ended.

    Its id cannot have been taken: who takes it replaces the record.
    """
    key = m.options.unique_key
    return key is None or engine.keyring.holder(engine, m.queue, key, now) is None


def retry(engine: Engine, m: Message, now: int) -> bool:
    """Send a dead letter back to its queue, with all its attempts; False if it must stay."""
    if not may_return(engine, m, now):
        return False
    run = run_of(m)
    remember_try(run, last_try(m))
    run.retries += 1
    run.retried = now
    return run_again(engine, m, now)


def run_again(engine: Engine, m: Message, now: int) -> bool:
    """Let a message that has ended run as if for the first time, with its history.

    False if it must stay, because another one has its unique key now.
    """
    if not may_return(engine, m, now):
        return False
    run = run_of(m)
    if m.state is DONE:
        add_steps(run, Step(LEASED, run.started), Step(DONE, run.finished))
    add_steps(run, Step(READY, now))
    m.attempts, m.due = 0, now
    engine.shift(m, "retry", READY)
    run.started = run.finished = run.stalls = run.interruptions = 0
    run.progress, run.progress_message = 0, None
    run.stack = run.result = run.cause = run.retired = None
    engine.match(engine.queues[m.queue], now)
    return True


def replay(engine: Engine, m: Message, body: bytes, now: int) -> Message:
    """Publish a copy of a dead letter with another body; the letter stays, and names its copy.

    The copy has an id and, since it is another message, no unique key of its own.
    """
    copy = Message("", m.queue, m.name, body, 0, now, now, m.priority, _unnamed(m.options))
    copy.run = Run(replay_of=m.id)
    publish(engine, copy, now)
    note_replay(engine, m, copy, now)
    return copy


def note_replay(engine: Engine, m: Message, copy: Message, now: int) -> None:
    """Let a dead letter name a copy that was made of it."""
    run = run_of(m)
    run.replays = (*run.replays, copy.id)[-TRIES:]
    run.retries += 1
    run.retried = now
    engine.touched(m)


def _unnamed(options: Options) -> Options:
    if not options.custom_id and options.unique_key is None:
        return options
    return msgspec.structs.replace(options, custom_id=False, unique_key=None)
