"""Flows as a whole: accepted at once or not at all, and pruned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

from tandemq.engine import flows, manage
from tandemq.engine.core import Engine
from tandemq.engine.publish import begin, check_space
from tandemq.model.errors import GroupFull
from tandemq.model.message import DEFAULTS, WAITING, Message, State

PARKED, DELAYED, READY = State.PARKED, State.DELAYED, State.READY

_id = attrgetter("id")


def taken(engine: Engine, ids: Sequence[str]) -> str | None:
    """Return the first id that names a message, or one that was completed and is remembered."""
    messages, remembers = engine.messages, engine.dependents.remembers
    if messages.keys().isdisjoint(ids) and not engine.dependents.remembers_any(ids):
        return None
    return next((id for id in ids if id in messages or remembers(id)), None)


def publish_flow(engine: Engine, drafts: Sequence[Message], now: int) -> None:
    """Accept drafts whose ids are free and whose dependencies are all among them.

    They are one change, whatever their number, and are handed out only when all are there. Those
    that begin at the same moment stand in the order of their ids (bunqueue semantics 2).

    Raises:
        GroupFull, MustWait, QueueFull: nothing was accepted.
    """
    if any(m.options is not DEFAULTS and m.options.group_max is not None for m in drafts):
        _check_room(engine, drafts)
    check_space(engine, _places(engine, drafts))
    queues = {name: engine.queue(name) for name in dict.fromkeys(m.queue for m in drafts)}
    for m in sorted(drafts, key=_id):
        first = DELAYED if m.due > now else READY
        links = m.links
        if links is not None and links.depends_on:
            links.open = links.depends_on
            first = PARKED
        begin(engine, queues[m.queue], m, first, now)
    engine.owes_sync = True  # a flow is kept before it is answered
    for q in queues.values():
        if q.ring:
            engine.match(q, now)


def _places(engine: Engine, drafts: Sequence[Message]) -> dict[str, int]:
    """Return how many will wait in each queue that is bounded."""
    names = {m.queue for m in drafts}
    bounded = [n for n in names if (q := engine.queues.get(n)) is not None and q.bounded]
    places = dict.fromkeys(bounded, 0)
    for m in drafts if bounded else ():
        if m.queue in places and (m.links is None or not m.links.depends_on):
            places[m.queue] += 1
    return places


def _check_room(engine: Engine, drafts: Sequence[Message]) -> None:
    comes: Counter[tuple[str, str]] = Counter()
    for m in drafts:
        group, most = m.options.group, m.options.group_max
        if group is None:
            continue
        q = engine.queues.get(m.queue)
        waits = q.groups.waiting(group) if q is not None and q.groups is not None else 0
        if most is not None and waits + comes[m.queue, group] >= most:
            raise GroupFull(group, most)
        if m.links is None or not m.links.depends_on:
            comes[m.queue, group] += 1


def remove_unprocessed(engine: Engine, parent: Message, now: int) -> None:
    """Take away the children that have not begun, and what they wait for in their turn.

    Those that run or have ended stay; the parent waits only for them (quirk 51: improved).
    """
    doomed = _unprocessed(engine, parent)
    waiters = {w.seq: w for id in doomed for w in engine.dependents.of(id) if w.id not in doomed}
    for child in doomed.values():
        manage.remove(engine, child, now)
    for id in doomed:
        for waiter in waiters.values():
            if waiter.state is PARKED and waiter.links is not None and id in waiter.links.open:
                flows.satisfy(engine, waiter, id, now)


def queues_of_unprocessed(engine: Engine, parent: Message) -> set[str]:
    """Return the queues of what ``remove_unprocessed`` would take away."""
    return {m.queue for m in _unprocessed(engine, parent).values()}


def _unprocessed(engine: Engine, parent: Message) -> dict[str, Message]:
    """Return the children that have not begun, and theirs."""
    line, doomed = [parent], {}
    while line:
        links = line.pop().links
        for id in links.children if links is not None else ():
            child = engine.messages.get(id)
            if child is not None and child.state in WAITING and id not in doomed:
                doomed[id] = child
                line.append(child)
    return doomed
