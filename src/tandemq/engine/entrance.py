"""The way in for publishers: at once, later, or not at all, as memory and queues allow.

It is the same for both wires: a job pushed and a letter published meet the same walls (ruling 19).
"""

from __future__ import annotations

from typing import Any

from tandemq.engine import overflow
from tandemq.engine.core import Engine
from tandemq.engine.overflow import Blocked
from tandemq.engine.pressure import Level, Pressure, Slow


def enter(engine: Engine, b: Blocked, now: int) -> Any:
    """Let a publisher in as far as the memory allows; return the answer, None when it comes later.

    Raises:
        TandemqError: what it wants to publish is refused.
    """
    level = engine.pressure.level
    if level is Level.HELD:
        hold(engine, b)
        return None
    reply = overflow.enter(engine, b, now)
    if level is Level.SLOW and reply is not None:
        engine.timers.set(Slow(b.conn, b.req, reply), now + engine.pressure.lateness)
        return None
    return reply


def hold(engine: Engine, b: Blocked) -> None:
    """Let a publisher wait until there is memory."""
    engine.pressure.held.append(b)
    overflow.waits(engine, b)


def rang(engine: Engine, pressure: Pressure, now: int) -> None:
    """The level has changed: those who waited for that may come in, or are refused."""
    held = pressure.held
    pressure.move()
    while held and pressure.level is not Level.HELD:
        b = held.popleft()
        overflow.waits_no_more(engine, b)
        overflow.admit(engine, b, now)
    for name in list(engine.blocked) if pressure.level < Level.HELD else ():
        overflow.let_in(engine, engine.queue(name), now)


def late(engine: Engine, slow: Slow, now: int) -> None:
    """The moment of a late answer has come."""
    engine.tell(slow.conn, slow.req, slow.reply)
