"""What is done to one message from outside: taken away, moved, reordered, rewritten.

A leased message may be moved by whoever has its token; a lease without a token may be moved by
anybody. Moving it charges no attempt (bunqueue semantics 3 and 5).
"""

from __future__ import annotations

import msgspec

from tandemq.engine import deadletters, dlq, flows, repeats
from tandemq.engine.core import Engine
from tandemq.engine.endings import ended
from tandemq.engine.settle import check_token
from tandemq.engine.timeline import end_run, run_for
from tandemq.model.broker import Reason
from tandemq.model.message import WAITING, Message, State, Step

PARKED, DELAYED, READY, LEASED, DONE, DEAD, GONE = (
    State.PARKED,
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
    State.GONE,
)
LIVE = (*WAITING, LEASED)


def cancel(engine: Engine, m: Message, now: int) -> bool:
    """Take away a message that waits; False where it does not wait any more."""
    if m.state not in WAITING:
        return False
    remove(engine, m, now)
    if engine.listening:
        engine.say("removed", m, now, prev="waiting")  # whatever it was: quirk 38
    return True


def remove(engine: Engine, m: Message, now: int) -> None:
    """Let a live message vanish, with its log; nobody is told but those who wait for its place."""
    engine.shift(m, "cancel", GONE)
    if engine.logs:
        engine.logs.drop(engine, m.id)
    ended(engine, m, now, well=False, parent_told=False)


def discard(engine: Engine, m: Message, token: str | None, now: int) -> bool:
    """Make a live message a dead letter without a cause; False where it has ended.

    A letter of a broker's queue ends as its queue has it: it moves, or is dropped.

    Raises:
        TokenRequired, WrongToken
    """
    if m.state not in LIVE:
        return False
    check_token(m, token)
    run = run_for(m)
    if m.state is LEASED:
        end_run(run)
    if m.letter is not None and engine.queues[m.queue].settings.broker is not None:
        dlq.end(engine, m, now, Reason.HANDLER_EXCEPTION, "discarded")
        return True
    run.error, run.cause, run.finished = None, "unknown", now
    engine.shift(m, "discard", DEAD)
    ended(engine, m, now, well=False, parent_told=False)
    return True


def promote(engine: Engine, m: Message, now: int) -> bool:
    """Let a delayed message be ready at once; False where it is not delayed."""
    if m.state is not DELAYED:
        return False
    m.due = now
    engine.shift(m, "promote", READY)
    engine.match(engine.queues[m.queue], now)
    return True


def move_to_wait(engine: Engine, m: Message, token: str | None, now: int) -> bool:
    """Let a message be ready: give back its lease, end its delay, retry the dead letter.

    Returns False for one that was completed or waits for others.

    Raises:
        TokenRequired, WrongToken
    """
    if m.state is LEASED:
        check_token(m, token)
        _end_run(m)
        m.due = now
        engine.shift(m, "release", READY)
        if engine.listening:
            engine.say("waiting", m, now, prev="active")
        engine.match(engine.queues[m.queue], now)
        return True
    if m.state is DELAYED:
        return promote(engine, m, now)
    if m.state is DEAD:
        return deadletters.retry(engine, m, now)
    return m.state is READY


def move_to_delayed(engine: Engine, m: Message, token: str | None, delay: int, now: int) -> bool:
    """Let a message wait ``delay`` ms from now; False where it has ended or waits for others.

    Raises:
        TokenRequired, WrongToken
    """
    leased = m.state is LEASED
    if not change_delay(engine, m, token, delay, now):
        return False
    if leased and engine.listening:
        engine.say("delayed", m, now, delay=delay)
    return True


def change_delay(engine: Engine, m: Message, token: str | None, delay: int, now: int) -> bool:
    """Move the moment at which a message is due; False where it has ended or waits for others.

    Raises:
        TokenRequired, WrongToken
    """
    if m.state not in (READY, DELAYED, LEASED):
        return False
    check_token(m, token)
    if m.state is LEASED:
        _end_run(m)
    m.due = now + delay
    engine.shift(m, "reschedule", DELAYED if delay else READY)
    engine.match(engine.queues[m.queue], now)
    return True


def move_to_waiting_children(engine: Engine, m: Message, token: str | None, now: int) -> bool:
    """Let a leased message wait for what it depends on; False where it is not leased.

    When all of that has ended well already it is ready again at once; a message that depends on
    nothing waits for children to come.

    Raises:
        TokenRequired, WrongToken
    """
    if m.state is not LEASED:
        return False
    check_token(m, token)
    _end_run(m, Step(PARKED, now))
    flows.recount(engine, m)
    engine.shift(m, "park", PARKED)
    if engine.listening:
        engine.say("waiting-children", m, now, prev="active")
    links = m.links
    if links is not None and links.depends_on and not links.open:
        engine.shift(m, "settled", READY)
    engine.match(engine.queues[m.queue], now)
    return True


def change_priority(engine: Engine, m: Message, priority: int, lifo: bool | None) -> bool:
    """Give a waiting message another priority, and another end of it; False where it is leased."""
    if m.state not in (READY, DELAYED):
        return False
    options = m.options
    if lifo is not None and lifo != options.lifo:
        options = msgspec.structs.replace(options, lifo=lifo)
    run = run_for(m)
    if run.first_priority is None:
        run.first_priority = m.priority
    engine.reorder(m, priority, options)
    return True


def update(engine: Engine, m: Message, body: bytes) -> bool:
    """Replace the body of a message that is live or completed; False for a dead letter."""
    if m.state is DEAD:
        return False
    engine.rebody(m, body)
    if m.state is DONE and m.repeat is not None:
        successor = repeats.pending(engine, m)
        return successor is None or update(engine, successor, body)
    return True


def _end_run(m: Message, *steps: Step) -> None:
    """End a run that nobody is to blame for."""
    run = m.run
    assert run is not None, "a leased message has run"
    end_run(run, *steps)
    run.started = 0
