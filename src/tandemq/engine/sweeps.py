"""Commands over many messages, done in slices so that everybody else is served in between.

A million messages take seconds to drop. So a command that may meet that many notes them down,
which is quick, and goes through its notes a few thousand at a time, a millisecond apart. What has
changed meanwhile is looked at when its turn comes: a job that was pulled in between is not drained.
The command is answered when its sweep is done; a short one is done at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tandemq.engine.core import Engine
from tandemq.model.errors import StorageFailed
from tandemq.model.policy import ANSWER_BYTES
from tandemq.model.size import ITEM, text_bytes

SLICE = 2_000  # messages looked at in one go


@dataclass(slots=True, eq=False)
class Sweep:
    """One command on its way through its messages."""

    messages: Iterable[Any]  # or queues, where there may be many
    act: Callable[[Any, int], bool]  # (message, now): whether it counted
    limit: int | None = None  # of those that count
    finish: Callable[[int, int], None] | None = None  # (count, now): what remains at the end
    answer: Callable[[Sweep], Any] | None = None  # what to say at the end
    count: int = 0  # of those that counted
    ids: list[str] | None = None  # their ids, for who wants them
    told_bytes: int = 0  # of them; with half of what an answer may be it ends
    conn: int | None = None  # whom to answer, None: nobody waits
    req: Any = None
    done: bool = False
    gen: int = 0


def begin(engine: Engine, sweep: Sweep, now: int) -> bool:
    """Go through the first slice; False when there are more, and the answer comes later."""
    _slice(sweep, now)
    if sweep.done:
        return True
    engine.sweeps[sweep] = None
    engine.timers.set(sweep, now + 1)
    return False


def go_on(engine: Engine, sweep: Sweep, now: int) -> None:
    """Go through the next slice, and answer if it was the last one."""
    _slice(sweep, now)
    if not sweep.done:
        engine.timers.set(sweep, now + 1)
        return
    del engine.sweeps[sweep]
    if sweep.conn is not None and sweep.answer is not None:
        engine.tell(sweep.conn, sweep.req, sweep.answer(sweep))


def fail_all(engine: Engine, why: str) -> None:
    """What sweeps did could not be stored and came back: they end, and say so."""
    for sweep in list(engine.sweeps):
        sweep.gen += 1
        del engine.sweeps[sweep]
        if sweep.conn is not None:
            engine.tell(sweep.conn, sweep.req, StorageFailed(why))


def shift_spans(engine: Engine) -> None:
    """The clock was set: what was to go on in a moment still does."""
    for sweep in engine.sweeps:
        sweep.gen += 1
        engine.timers.set(sweep, 0)


def _slice(sweep: Sweep, now: int) -> None:
    act, ids, limit = sweep.act, sweep.ids, sweep.limit
    sweep.messages = messages = iter(sweep.messages)
    left = SLICE
    while limit is None or sweep.count < limit:
        m = next(messages, None)
        if m is None:
            break
        if act(m, now):
            sweep.count += 1
            if ids is not None:
                ids.append(m.id)
                sweep.told_bytes += text_bytes(m.id) + ITEM
                if 2 * sweep.told_bytes > ANSWER_BYTES:
                    break
        left -= 1
        if not left:
            return
    sweep.done = True
    if sweep.finish is not None:
        sweep.finish(sweep.count, now)
