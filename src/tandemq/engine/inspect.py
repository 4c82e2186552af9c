"""Read-only views: one message, many, counts. Counts cost nothing, pages only their length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from tandemq.engine.queue import Queue
from tandemq.model.message import Message, State

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

SORTED = 10_000  # a state with at most so many messages is listed in exact order of arrival

_by_seq = attrgetter("seq")


def count(engine: Engine, queue: str) -> int:
    """Return how many messages of a queue are ready or will be by time alone."""
    q = engine.queues.get(queue)
    return len(q.ready) + len(q.members[State.DELAYED]) if q else 0


def counts(engine: Engine) -> list[int]:
    """Return how many messages are in each state, over all queues."""
    rows = [q.counts for q in engine.queues.values()]
    return [sum(column) for column in zip(*rows, strict=True)] or [0] * len(State)


def page(
    engine: Engine,
    queue: str,
    states: Sequence[State],
    offset: int,
    limit: int,
    descending: bool = False,
) -> list[Message]:
    """Return messages in any of ``states`` by order of publication.

    In a state with more than 10,000 messages they come in the order in which they reached that
    state, which needs no sorting: a page near the start is found at once however many there are.
    """
    q = engine.queues.get(queue)
    start = max(0, offset)
    if q is None or limit <= 0 or start >= sum(q.counts[state] for state in states):
        return []
    return list(islice(in_order(q, states, descending), start, start + limit))


def in_order(q: Queue, states: Sequence[State], descending: bool = False) -> Iterable[Message]:
    """Yield the messages of a queue in any of ``states``, in the order of ``page``."""
    counts = q.counts
    sources = [_of_state(q, state, descending) for state in states if counts[state]]
    return merge(*sources, key=_by_seq, reverse=descending)


def pending(q: Queue | None) -> Iterator[Message]:
    """Yield what waits in a queue, what may be had now before what is delayed."""
    if q is not None:
        yield from q.ready
        yield from sorted(q.members[State.DELAYED].values(), key=lambda m: m.due)


def _of_state(q: Queue, state: State, descending: bool) -> Iterable[Message]:
    found = q.within(state)
    if q.counts[state] <= SORTED:
        return sorted(found, key=_by_seq, reverse=descending)
    return reversed(found) if descending else found
