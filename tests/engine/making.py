"""Engines and messages for tests: ids in order, no dice, a moment to begin at."""

from __future__ import annotations

from itertools import count
from typing import Any

from tandemq.engine import clock, consume, publish
from tandemq.engine.consumers import Consumer
from tandemq.engine.core import Engine
from tandemq.engine.finished import Rules
from tandemq.engine.lane import Terms
from tandemq.model.message import Message, Options, State

NOW = 1_700_000_000_000


def make_engine(uniform: float = 0.5, **rules: Any) -> Engine:
    """An engine whose ids are "id-1", "id-2" and so on, in the order in which they are made."""
    numbers = count(1)
    return Engine(
        new_id=lambda _: f"id-{next(numbers)}", uniform=lambda: uniform, rules=Rules(**rules)
    )


def put(
    engine: Engine,
    id: str = "",
    *,
    queue: str = "q",
    body: bytes = b"x",
    priority: int = 0,
    delay: int = 0,
    created: int | None = None,
    now: int = NOW,
    **options: Any,
) -> Message:
    """Publish a message."""
    draft = publish.draft(queue, "job", body, now, priority, delay, Options(**options), id, created)
    return publish.publish(engine, draft, now)


def hold(
    engine: Engine,
    *,
    queue: str = "q",
    conn: int | None = 1,
    span: int | None = 30_000,
    now: int = NOW,
) -> Message:
    """Take one message; with `span` None without a token."""
    [m] = consume.take(engine, queue, conn, 1, span, now)
    return m


def token_of(m: Message) -> str | None:
    assert m.lease is not None, "it is leased"
    return m.lease.token


def wait(
    engine: Engine,
    req: str,
    *,
    queue: str = "q",
    conn: int = 1,
    count: int = 1,
    span: int | None = None,
    detach: bool = False,
    until: int = NOW + 60_000,
    terms: Terms | None = None,
) -> Consumer:
    """Let a pull wait."""
    c = Consumer(conn, queue, count, req, span, detach, until, terms=terms)
    consume.wait(engine, c)
    return c


def answers(engine: Engine) -> dict[str, list[str]]:
    """What waiting pulls have been told: the request and the ids of its messages."""
    return {reply.req: [m.id for m in reply.messages] for reply in engine.take().effects}


def ready(engine: Engine, queue: str = "q") -> list[str]:
    """The ids of the ready messages in the order in which they would be handed out."""
    return [m.id for m in engine.queues[queue].ready]


def where(engine: Engine, queue: str = "q") -> dict[str, int]:
    """How many messages of a queue are in each state."""
    q = engine.queues.get(queue)
    return {state.name: n for state, n in zip(State, q.counts, strict=True) if n} if q else {}


def pass_time(engine: Engine, until: int) -> None:
    """Let the clock ring at every deadline up to a moment, as a server does."""
    while (wake := clock.next_wake(engine)) is not None and wake <= until:
        clock.tick(engine, wake)
    clock.tick(engine, until)
