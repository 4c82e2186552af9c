"""The end of a message: everybody who waits for it is told, in one place.

Whatever ends a message, well or badly, calls ``ended`` after it has moved to DONE, DEAD or GONE.
"""

from __future__ import annotations

from tandemq.engine.core import Engine
from tandemq.model.message import Message


def ended(engine: Engine, m: Message, now: int, *, well: bool) -> None:
    """Tell of an end: ``well`` if the message was completed, whether or not it is kept."""
    q = engine.queues.get(m.queue)
    if q is not None and q.ring:
        engine.match(q, now)  # its place may be what somebody waits for
