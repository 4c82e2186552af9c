"""Requests that wait for the end of a message.

A watch is answered when its message has been completed, or without an outcome when its time is
over; it disappears with its connection. A message that ends badly does not end a watch, since it
may be retried and completed yet (bunqueue quirk 36), unless whoever waits asked for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tandemq.engine.core import Engine
from tandemq.model.message import Message


@dataclass(slots=True, eq=False)
class Watch:
    """Somebody who waits for the end of one message."""

    conn: int
    req: Any  # the id of the request to be answered
    id: str  # of the message
    until: int  # when it stops waiting
    any_end: bool  # it wants to hear of a bad end too
    answer: Callable[[Message | None, bool], Any]
    """Makes the answer of the message, None when the time is over, and whether it ended well."""
    gen: int = 0  # a timer set for an older one is dead


def wait(engine: Engine, w: Watch) -> None:
    """Let a request wait; its answer comes as an effect."""
    engine.watches.setdefault(w.id, {})[w] = None
    engine.watched_by.setdefault(w.conn, {})[w] = None
    engine.timers.set(w, w.until)


def told(engine: Engine, m: Message, *, well: bool) -> None:
    """A message has ended: answer those who waited for that."""
    for w in list(engine.watches.get(m.id, ())):
        if well or w.any_end:
            _drop(engine, w)
            engine.tell(w.conn, w.req, w.answer(m, well))


def give_up(engine: Engine, w: Watch, now: int) -> None:
    """A watch has waited as long as it wanted to."""
    if w.until > now:
        engine.timers.set(w, w.until)
        return
    _drop(engine, w)
    engine.tell(w.conn, w.req, w.answer(None, False))


def disconnect(engine: Engine, conn: int) -> None:
    """Forget what a connection waited for."""
    for w in list(engine.watched_by.get(conn, ())):
        _drop(engine, w)


def withdraw(engine: Engine, conn: int, allowed: Callable[[str], bool]) -> None:
    """End what a connection waits for on queues that are not allowed, as if its time were over."""
    for w in list(engine.watched_by.get(conn, ())):
        m = engine.messages.get(w.id)
        if m is None or not allowed(m.queue):
            _drop(engine, w)
            engine.tell(w.conn, w.req, w.answer(None, False))


def shift_spans(engine: Engine, step: int) -> None:
    """The clock was set: every watch goes on for as long as it would have (ruling 20)."""
    for watches in engine.watched_by.values():
        for w in watches:
            w.until += step
            w.gen += 1
            engine.timers.set(w, w.until)


def _drop(engine: Engine, w: Watch) -> None:
    w.gen += 1
    for index, key in ((engine.watches, w.id), (engine.watched_by, w.conn)):
        _take_out(index, key, w)


def _take_out(index: dict[Any, dict[Watch, None]], key: Any, w: Watch) -> None:
    held = index[key]
    del held[w]
    if not held:
        del index[key]
