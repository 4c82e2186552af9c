"""The dead letters of a queue, wherever they are: in their place, or in a dead letter queue.

One fact has two faces (ruling 14). A job that ended badly, and a letter in a job queue, stays in
its queue in the state DEAD. A letter of a broker's queue has moved: it waits in another queue, and
remembers its death. Whoever lists, counts, retries or purges the dead letters of a queue means
both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from operator import attrgetter

from tandemq.engine import deadletters, dlq, manage
from tandemq.engine.core import Engine
from tandemq.engine.inspect import SORTED
from tandemq.engine.queue import Queue
from tandemq.engine.timeline import run_for
from tandemq.model.broker import Policy, dead_letter_queue
from tandemq.model.message import Death, Message, State, Try
from tandemq.model.policy import Burial

DEAD = State.DEAD

_by_seq = attrgetter("seq")


def death_of(m: Message) -> Death | None:
    """Return how a letter came where it is; None for a message that is dead in its place."""
    return None if m.letter is None or m.state is DEAD else m.letter.death


# -- finding them ----------------------------------------------------------------------------------


def grave_of(engine: Engine, queue: str) -> Queue | None:
    """Return the queue into which the dead letters of a queue move, if it is there."""
    q = engine.queues.get(queue)
    policy = q.settings.broker if q is not None else None
    return engine.queues.get(dead_letter_queue(policy or Policy(), queue))


def find(engine: Engine, queue: str, id: str) -> Message | None:
    """Return one dead letter of a queue."""
    m = engine.messages.get(id)
    return m if m is not None and belongs(m, queue) else None


def belongs(m: Message, queue: str) -> bool:
    """Whether a message is a dead letter of a queue, and waits."""
    if m.state is DEAD:
        return m.queue == queue
    death = death_of(m)
    return death is not None and death.queue == queue and m.state is State.READY


def moved(engine: Engine, queue: str) -> Iterator[Message]:
    """Yield the dead letters of a queue that wait in another one, oldest first.

    Among more than 10,000 messages they come as they stand there. Messages may come and go in
    between; look at each before doing anything.
    """
    grave = grave_of(engine, queue)
    if grave is None:
        return
    found: Iterable[Message] = grave.ready.all()
    if len(grave.ready) <= SORTED:
        found = sorted(found, key=_by_seq)
    for m in found:
        if belongs(m, queue):
            yield m


def listed(engine: Engine, queue: str) -> Iterator[Message]:
    """Yield all dead letters of a queue, oldest first."""
    q = engine.queues.get(queue)
    dead = q.members[DEAD].values() if q is not None else ()
    return merge(dead, moved(engine, queue), key=ended_at)


# -- what is known of one --------------------------------------------------------------------------


def ended_at(m: Message) -> int:
    """Return when a dead letter became one."""
    death = death_of(m)
    return deadletters.run_of(m).finished if death is None else death.at


def cause_of(m: Message) -> str:
    """Return why, as workers' clients name it."""
    death = death_of(m)
    return (deadletters.run_of(m).cause or "unknown") if death is None else dlq.cause_of(death)


def error_of(m: Message) -> str | None:
    """Return what is told of it."""
    death = death_of(m)
    return deadletters.run_of(m).error if death is None else death.text


def tries_of(m: Message) -> list[Try]:
    """Return the attempts that are remembered; a letter that moved remembers the last one."""
    death = death_of(m)
    if death is None:
        return [*deadletters.run_of(m).tries, deadletters.last_try(m)]
    return [Try(death.attempts, death.at, death.at, cause_of(m), death.text)]


def next_retry(m: Message, rules: Burial) -> int | None:
    """Return when a dead letter is retried by itself; one that moved never is."""
    return deadletters.next_retry(m, rules) if death_of(m) is None else None


def expires(m: Message, rules: Burial) -> int | None:
    """Return when a dead letter is forgotten; one that moved is kept while there is room."""
    return deadletters.expires(m, rules) if death_of(m) is None else None


# -- letting them go -------------------------------------------------------------------------------


def may_return(engine: Engine, m: Message, now: int) -> bool:
    """Whether a dead letter could go back to where it was published."""
    if death_of(m) is None:
        return deadletters.may_return(engine, m, now)
    return dlq.may_return(engine, m)


def retry(engine: Engine, m: Message, now: int) -> bool:
    """Send a dead letter back, with all its attempts; False if it must stay."""
    if death_of(m) is None:
        return deadletters.retry(engine, m, now)
    return dlq.bring_back(engine, m, now)


def replay(engine: Engine, m: Message, body: bytes, now: int) -> Message:
    """Publish a copy of a dead letter with another body where that was published.

    Raises:
        QueueFull: there is no room for it.
    """
    if m.letter is None:
        return deadletters.replay(engine, m, body, now)
    copy = dlq.copy_of(engine, m, body, now)
    run_for(m)
    deadletters.note_replay(engine, m, copy, now)
    return copy


def forget(engine: Engine, m: Message, now: int) -> None:
    """Let go of a dead letter."""
    if death_of(m) is None:
        engine.forget(m)
    else:
        manage.remove(engine, m, now)
