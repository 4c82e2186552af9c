"""What an operator does to a queue as a whole."""

from __future__ import annotations

import msgspec

from tandemq.engine import admission, deadletters
from tandemq.engine.core import Engine
from tandemq.engine.queue import NO_SETTINGS, Queue, Settings

_decode = msgspec.msgpack.Decoder(Settings).decode
FACT = "queue/"  # + name: the key under which settings are stored


def pause(engine: Engine, queue: str) -> None:
    """Hand out nothing more; publishing and settling go on."""
    configure(engine, engine.queue(queue), paused=True)


def resume(engine: Engine, queue: str, now: int) -> None:
    """Hand out messages again."""
    q = engine.queue(queue)
    configure(engine, q, paused=False)
    engine.match(q, now)
    engine.tidy(q)


def configure(engine: Engine, q: Queue, **changes: object) -> None:
    """Change settings of a queue and remember them."""
    before = q.settings
    q.settings = msgspec.structs.replace(before, **changes)
    if q.settings != before:
        admission.adopt(engine, q, before)
        if q.settings.burial != before.burial:
            deadletters.rules_changed(engine, q)
        kept = q.settings != NO_SETTINGS
        engine.record(FACT + q.name, msgspec.msgpack.encode(q.settings) if kept else None)


def reset(engine: Engine, q: Queue) -> None:
    """Forget everything that was set for a queue."""
    before, q.settings = q.settings, NO_SETTINGS
    admission.adopt(engine, q, before)
    engine.record(FACT + q.name, None)
    deadletters.rules_changed(engine, q)


def restore(engine: Engine, name: str, fact: bytes | None, now: int | None = None) -> None:
    """Take settings as they were stored; None is the default.

    ``now`` lets those who wait have what a pause kept from them; at start nobody waits yet.
    """
    q = engine.queue(name)
    before, q.settings = q.settings, _decode(fact) if fact is not None else NO_SETTINGS
    admission.adopt(engine, q, before)
    if now is not None:
        deadletters.rules_changed(engine, q)
        engine.match(q, now)
    engine.tidy(q)
