"""A batch could not be stored: what memory has more than the store goes, and everybody is told.

Memory is a cache of the store. So what was in the batch, and everything that grew on it, is read
again from there; nothing of it was ever said to anybody.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tandemq.engine import recovery
from tandemq.model.errors import StorageFailed
from tandemq.model.message import Message
from tandemq.server.events import TOLD
from tandemq.server.meter import now_ms
from tandemq.stores.base import StoreFailed
from tandemq.stores.rows import decode

if TYPE_CHECKING:
    from tandemq.server.runtime import Runtime

log = logging.getLogger("tandemq.server")


def undo(
    runtime: Runtime,
    touched: dict[int, Message],
    keys: set[str],
    held: list[Any],
    failure: StoreFailed,
) -> None:
    """A batch was not stored: what memory has more than the store goes, all are told."""
    outcome = runtime.engine.take()
    touched = {**touched, **outcome.changed}
    try:
        rows = runtime.store.fetch(touched)
        kept = runtime.store.fetch_facts(keys | set(outcome.facts))
    except StoreFailed as exc:
        log.critical("the store can be neither written nor read: %s", exc)
        runtime.broken.set_result(exc)  # memory is ahead of it for good: the process must end
        return
    well = not runtime.outage
    runtime.outage.began(failure, now_ms())
    if well:
        runtime.feed.store_changed()
    for effect in outcome.effects:
        runtime.effects.serve([effect])
    held, runtime.held = held + runtime.held, []  # what was just handed out is taken back too
    recovery.roll_back(
        runtime.engine,
        touched.values(),
        map(decode, rows),
        now_ms(),
        lost=lambda conn: conn not in runtime.connections,
    )
    for key in keys | set(outcome.facts):
        runtime.restore(key, kept.get(key))
    runtime.accounts.undone()
    refused = StorageFailed(str(failure))
    runtime.observers.collected([])  # nothing is told of what is undone
    for connection, answer, req in held:
        if connection.id in runtime.connections and req is not TOLD:
            connection.owed -= len(answer)
            runtime.say(connection, connection.session.refuse(refused, req))
    runtime.begin()
