"""Facts taken back: what is stored beside messages, at start and when a batch was not stored.

A fact's key begins with its kind, up to the first slash; the rest names what it is about.
"""

from __future__ import annotations

from tandemq.engine import control, groups, schedules
from tandemq.engine.core import Engine


def restore(engine: Engine, key: str, value: bytes | None, now: int | None = None) -> None:
    """Take a fact as it was stored; None is one that is not there, which is the default.

    ``now`` is given when a running engine is put back, not at start.
    """
    kind, _, name = key.partition("/")
    if kind == "queue":
        control.restore(engine, name, value, now)
    elif kind == "log":
        engine.logs.restore(name, value)
    elif kind == "kid":
        engine.dependents.restore(engine, name, value)
    elif kind == "key":
        engine.keyring.restore(key, value)
    elif kind == "group":
        groups.restore(engine, name, value)
    elif kind == "cron":
        schedules.restore(engine, name, value, now)
    elif kind == "metric":
        engine.tallies.restore(name, value)
    elif kind == "webhook":
        engine.webhooks.restore(engine, name, value)
    elif kind == "user":
        engine.users.restore(name, value)
