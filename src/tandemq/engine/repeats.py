"""Messages that come again: each one that is completed publishes its successor.

A chain has one living message at most: the successor is published when its predecessor has ended
well, and a message that is completed twice, because somebody retried it, has one already. A dead
end ends the chain (bunqueue quirk 63). Source: bunqueue semantics 12.
"""

from __future__ import annotations

import msgspec

from tandemq.engine import publish
from tandemq.engine.core import Engine
from tandemq.engine.cron import BadPattern, parse
from tandemq.model.errors import TandemqError
from tandemq.model.message import Message, Repeat, State
from tandemq.model.schedule import alive

CHAIN = 10_000  # links that are followed at most
LAST_MOMENT = 2.0**53  # ms; no clock comes so far


def following(m: Message, repeat: Repeat, now: int) -> int | None:
    """Return the moment of the run after one that was completed ``now``; None: it was the last.

    An interval counts from the planned moment and leaves out what has passed meanwhile; a pattern
    names the next moment that is later than now and than the planned one.
    """
    if repeat.limit is not None and repeat.count >= repeat.limit:
        return None
    planned = m.due if repeat.previous is None else int(repeat.previous)
    start = None if repeat.start is None else int(repeat.start)
    if repeat.pattern is not None:
        offset = int(repeat.offset or 0)
        after = max(now, planned, now if start is None else start - 1)
        at = _matching(repeat.pattern, repeat.tz, after - offset)
        at = None if at is None else at + offset
    else:
        at = _in_intervals(repeat, planned, now, start)
    if at is None or at >= LAST_MOMENT or (repeat.end is not None and at > repeat.end):
        return None
    return at


def _matching(pattern: str, zone: str | None, after: int) -> int | None:
    try:
        return parse(pattern, zone).next(after)
    except BadPattern:  # its time zone is gone from this machine
        return None


def _in_intervals(repeat: Repeat, planned: int, now: int, start: int | None) -> int:
    every = max(1, int(repeat.every or 0))
    at = planned + every
    if repeat.previous is None:  # an offset moves the whole line, so it is added once
        at += int(repeat.offset or 0)
    if at <= now:
        at += every * ((now - at) // every + 1)
    return at if start is None else max(at, start)


def succeed(engine: Engine, m: Message, now: int) -> None:
    """Publish the successor of a message that was completed, if it has one and not had it yet."""
    repeat = m.repeat
    assert repeat is not None, "only what repeats is succeeded"
    at = None if repeat.next is not None else following(m, repeat, now)
    if at is None:
        return
    again = msgspec.structs.replace(repeat, count=repeat.count + 1, previous=at)
    draft = publish.draft(m.queue, m.name, m.body, now, m.priority, at - now, m.options)
    draft.repeat = again
    try:
        accepted = publish.publish(engine, draft, now)
    except TandemqError:  # its group or its queue is full: that is not worth the whole chain
        accepted = publish.publish(engine, draft, now, room=False)
    repeat.next = accepted.id
    if m.state is not State.GONE:
        engine.touched(m)


def pending(engine: Engine, m: Message) -> Message | None:
    """Return the message of a chain that waits to run, seen from one that has been completed."""
    for _ in range(CHAIN):
        if m.state is not State.DONE or m.repeat is None or m.repeat.next is None:
            break
        successor = engine.messages.get(m.repeat.next)
        if successor is None or successor.repeat is None:
            return None
        m = successor
    return m if alive(m) and m.state is not State.LEASED else None
