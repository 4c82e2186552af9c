"""Admission: a message comes into being."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tandemq.engine import flows
from tandemq.engine import ties as bonds
from tandemq.engine.core import Engine
from tandemq.engine.overflow import waiting
from tandemq.engine.pressure import OVERHEAD, weight
from tandemq.engine.queue import Queue
from tandemq.model.broker import Overflow
from tandemq.model.errors import GroupFull, MustWait, QueueFull, TandemqError
from tandemq.model.message import DEFAULTS, ENDED, Message, Options, State

DELAYED, READY = State.DELAYED, State.READY


def draft(
    queue: str,
    name: str,
    body: bytes,
    now: int,
    priority: int = 0,
    delay: int = 0,
    options: Options = DEFAULTS,
    id: str | None = None,
    created: int | None = None,
) -> Message:
    """Return a message that nobody has accepted yet.

    ``created`` may lie in the past or the future; the message is due ``delay`` ms after it.
    """
    start = now if created is None else created
    return Message(id or "", queue, name, body, 0, start, start + delay, priority, options)


def publish(engine: Engine, m: Message, now: int, *, room: bool = True) -> Message:
    """Accept a draft, or return the live message that has the same id; see ``publish_all``.

    ``room`` False lets it enter a full queue.
    """
    q = engine.queue(m.queue)
    try:
        accepted = accept(engine, q, m, now, room=room)
    except TandemqError:
        engine.tidy(q)
        raise
    if q.ring:
        engine.match(q, now)
    elif accepted is not m:
        engine.tidy(q)
    return accepted


def publish_all(engine: Engine, queue: str, drafts: list[Message], now: int) -> list[Message]:
    """Accept drafts for one queue, and hand them out together.

    An id chosen by the publisher names one message over all queues while that message lives: its
    draft is dropped and the live message returned. Once it has ended the id is free, and a new
    message replaces the old record (bunqueue semantics 9).

    Raises:
        GroupFull: as many of its group wait as a draft allows; the drafts before it are accepted.
        BadRequest: what a draft is bound to does not allow it; ``ties.check_all`` tells before.
        MustWait, QueueFull: they do not all fit; none is accepted.
    """
    q = engine.queue(queue)
    if q.bounded:
        check_space(engine, {queue: _places(engine, drafts, now)})
    fresh = {m.id for m in drafts if m.id} if any(m.links is not None for m in drafts) else ()
    try:
        return [accept(engine, q, m, now, fresh) for m in drafts]
    finally:  # what was accepted before a refusal stays
        if q.ring:
            engine.match(q, now)
        else:
            engine.tidy(q)  # all of them may live in another queue


def publish_plain(
    engine: Engine, queue: str, jobs: Sequence[tuple[str, bytes]], now: int
) -> list[str]:
    """Accept messages that ask for nothing, each a name and a body, and return their ids.

    Raises:
        MustWait, QueueFull: they do not all fit; none is accepted.
    """
    q = engine.queue(queue)
    if q.bounded:
        check_space(engine, {queue: len(jobs)})
    messages, changed, enter = engine.messages, engine.changed, q.ready.push
    ids, seq, size = [], engine.seq, 0
    for name, body in jobs:
        seq += 1
        id = engine.new_id(now)
        m = Message(id, queue, name, body, seq, now, now, 0, DEFAULTS, READY, READY)
        messages[id] = changed[seq] = m
        enter(m)  # no more is to be done for one without priority, group and time to live
        size += OVERHEAD + len(body)
        ids.append(id)
    engine.seq = seq
    engine.counters.pushed += len(ids)
    engine.pressure.grow(engine, size)
    if engine.listening:
        for id in ids:
            engine.say("pushed", messages[id], now)
    if q.ring:
        engine.match(q, now)
    return ids


def check_space(engine: Engine, places: Mapping[str, int]) -> None:
    """Jobs enter broker's queues, so many of them each, or queues that they make job queues.

    Raises:
        MustWait, QueueFull: more would wait in one than it may hold, or others wait for room there
            already; nothing has changed.
    """
    undecided = []
    for name, count in places.items():
        q = engine.queue(name)
        policy = q.settings.broker
        if policy is None:
            continue
        if not policy.decided:
            undecided.append(q)
        elif count and (waiting(q) + count > policy.max_size or name in engine.blocked):
            patient = policy.overflow is Overflow.BLOCK_PUBLISHER and count <= policy.max_size
            raise (MustWait if patient else QueueFull)(name)
    for q in undecided:
        from tandemq.engine import control  # which builds on this module

        control.configure(engine, q, broker=None)


def _places(engine: Engine, drafts: Sequence[Message], now: int) -> int:
    """Return how many drafts at the most are new messages, and not names for those that live."""
    named: set[str] = set()
    count = 0
    for m in drafts:
        known = engine.messages.get(m.id)
        if m.id in named or (known is not None and known.state not in ENDED):
            continue
        if m.id:
            named.add(m.id)
        count += m.options.unique_key is None or not bonds.stands_for(engine, m, now)
    return count


def _check_room(engine: Engine, q: Queue, m: Message) -> None:
    group, most = m.options.group, m.options.group_max
    if group is None or most is None or q.groups is None:
        return
    if q.groups.waiting(group) >= most:
        engine.tidy(q)
        raise GroupFull(group, most)


def accept(
    engine: Engine,
    q: Queue,
    m: Message,
    now: int,
    fresh: Collection[str] = (),
    *,
    room: bool = True,
) -> Message:
    """Accept a draft, or return the message that stands for it; who calls lets its queue match.

    ``fresh`` are the ids of all drafts that are published together, whatever their order. ``room``
    False lets it enter whatever is full.

    Raises:
        GroupFull, BadRequest, MustWait, QueueFull: nothing has changed.
    """
    if not m.id:
        m.id = engine.new_id(now)
        known = None
        if m.options is DEFAULTS and m.links is None and not q.bounded:  # as with most
            begin(engine, q, m, DELAYED if m.due > now else READY, now)
            return m
    else:
        known = engine.messages.get(m.id)
    ties = None
    if m.links is not None or m.options.unique_key is not None:
        ties = bonds.check(engine, m, fresh, now)
    if known is not None and known.state not in ENDED:
        return known
    if ties is not None and (twin := bonds.duplicate(engine, m, ties, now)) is not None:
        return twin
    if m.options.group_max is not None and room:
        _check_room(engine, q, m)
    if q.bounded and room:
        check_space(engine, {q.name: 1})
    if known is not None:
        engine.forget(known)
        engine.queues[q.name] = q  # it may have held nothing else
    first = DELAYED if m.due > now else READY
    if ties is not None:
        first = bonds.first_state(engine, m, ties, first, now)
        engine.queues[q.name] = q  # it may have held nothing but what was replaced
    begin(engine, q, m, first, now)
    if ties is not None and ties.parent is not None:
        flows.adopt(engine, ties.parent, m, now)
    return m


def begin(engine: Engine, q: Queue, m: Message, first: State, now: int) -> None:
    """Let the life of a message begin, in its first state."""
    engine.seq = m.seq = engine.seq + 1
    # Born in its first state: an edge of the table that needs no look at where it came from.
    m.state = m.born = first
    engine.messages[m.id] = m
    engine.enter(m, q)
    engine.pressure.grow(engine, weight(m))
    engine.counters.pushed += 1
    if m.options.durable:
        engine.owes_sync = True
    if engine.listening:
        engine.say("pushed", m, now)
