"""States under the names that job clients know them by.

``prioritized`` is a ready job with a priority above 0, ``paused`` a ready job of a paused queue:
views, not states (bunqueue semantics 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tandemq.engine import inspect
from tandemq.engine.core import Engine
from tandemq.engine.queue import Queue
from tandemq.model.message import Message, State

NAMES = {
    State.PARKED: "waiting-children",
    State.DELAYED: "delayed",
    State.READY: "waiting",
    State.LEASED: "active",
    State.DONE: "completed",
    State.DEAD: "failed",
    State.NEW: "unknown",
    State.GONE: "unknown",
}
STATES = {name: state for state, name in NAMES.items() if name != "unknown"}


def name_of(m: Message) -> str:
    """Return the state of a message under its public name."""
    if m.state is State.READY and m.priority > 0:
        return "prioritized"
    return NAMES[m.state]


def states_of(q: Queue | None) -> dict[str, int]:
    """Return the counts of a queue by public name; a paused queue shows its ready jobs as such."""
    counts = q.counts if q else [0] * len(State)
    ready, prioritized = counts[State.READY], q.prioritized if q else 0
    paused = q is not None and q.settings.paused
    return {
        "waiting": 0 if paused else ready - prioritized,
        "prioritized": 0 if paused else prioritized,
        "delayed": counts[State.DELAYED],
        "active": counts[State.LEASED],
        "completed": counts[State.DONE],
        "failed": counts[State.DEAD],
        "waiting-children": counts[State.PARKED],
        "paused": ready if paused else 0,
    }


def priorities_of(q: Queue | None) -> dict[str, int]:
    """Return how many jobs of each priority are ready or delayed; the priorities are texts."""
    counts = q.priorities if q is not None else {}
    return {str(priority): count for priority, count in sorted(counts.items())}


def in_state(
    engine: Engine, q: Queue, names: Sequence[str], offset: int, limit: int, descending: bool
) -> list[Message]:
    """Return messages whose state bears one of ``names``; unknown names match nothing."""
    wanted = set(names)
    whole = [STATES[name] for name in wanted & STATES.keys() if name != "waiting"]
    ready = _ready_wanted(q, wanted)
    if ready is None:
        return inspect.page(engine, q.name, whole, offset, limit, descending)
    states = [*whole, State.READY]
    if ready == "all":
        return inspect.page(engine, q.name, states, offset, limit, descending)
    start = max(0, offset)
    named = q.prioritized if ready == "prioritized" else len(q.ready) - q.prioritized
    if limit <= 0 or start >= named + sum(q.counts[state] for state in whole):
        return []
    everything = inspect.in_order(q, states, descending)
    hits = (m for m in everything if m.state is not State.READY or name_of(m) == ready)
    return list(islice(hits, start, start + limit))


def _ready_wanted(q: Queue, wanted: set[str]) -> str | None:
    """Return which ready messages are meant: "all", those of one name, or None."""
    if q.settings.paused:
        return "all" if "paused" in wanted else None
    named = wanted & {"waiting", "prioritized"}
    if not named:
        return None
    alone = named if 0 < q.prioritized < len(q.ready) else set()
    if len(named) == 2 or (not alone and ("prioritized" in named) == bool(q.prioritized)):
        return "all"
    return named.pop()
