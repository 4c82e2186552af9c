"""Runs that may not overlap are never given back: the next run of their schedule is their retry.

Who loses a worker cannot know whether it goes on working. A run of an overlap-preventing schedule
that comes back to its queue could so run twice at once; it is dropped instead, when its connection
breaks, its lease runs out, its worker goes silent, and when the server starts or stops (bunqueue
semantics 12, quirk 61).
"""

from __future__ import annotations

from tandemq.engine import endings
from tandemq.engine.core import Engine
from tandemq.model.message import Message, State
from tandemq.model.schedule import KEY, Schedule


def schedule_of(engine: Engine, m: Message) -> Schedule | None:
    """Return the overlap-preventing schedule whose present run a message is."""
    key = m.options.unique_key
    if key is None or not key.startswith(KEY):
        return None
    s = engine.schedules.get(key[len(KEY) :])
    return s if s is not None and s.exclusive and s.last_job == m.id else None


def dropped(engine: Engine, m: Message, now: int) -> bool:
    """Drop a leased message that may not come back; False when it is any other message."""
    if m.options.unique_key is None or schedule_of(engine, m) is None:
        return False
    engine.shift(m, "cancel", State.GONE)
    endings.ended(engine, m, now, well=False)
    return True
