"""A broker without wires: connections are numbers, what they are told is a list."""

from __future__ import annotations

from typing import Any

from tests.engine.making import NOW, make_engine

from tandemq.engine import clock, consume, dlq, post, subscriptions
from tandemq.engine.core import Engine
from tandemq.model.broker import NORMAL, Mode, Overflow, Policy
from tandemq.model.crossing import name_of
from tandemq.model.errors import MustWait, QueueFull
from tandemq.model.message import Letter, Message
from tandemq.model.outcome import Deliver

A, B, C, D = 1, 2, 3, 4


class Office:
    """An engine, a clock, and one queue named q unless somebody says otherwise."""

    def __init__(self, **rules: Any) -> None:
        self.engine: Engine = make_engine(**rules)
        self.now = NOW
        self.facts: dict[str, bytes | None] = {}  # as a store would have them

    def make(self, queue: str = "q", **policy: Any) -> None:
        """Make a queue with a policy."""
        post.opened(self.engine, queue, self.now, Policy(**policy))

    def post(
        self,
        *ids: str,
        queue: str = "q",
        body: bytes = b"1",
        level: int = NORMAL,
        headers: dict[str, str] | None = None,
    ) -> list[str]:
        """Publish letters; return what became of each: ACCEPTED, BLOCKED or FULL."""
        ends = []
        for id in ids:
            q = post.opened(self.engine, queue, self.now, Policy())
            try:
                post.post(self.engine, q, Letter(id, headers), body, level, self.now)
                ends.append("ACCEPTED")
            except QueueFull as refused:
                ends.append("BLOCKED" if isinstance(refused, MustWait) else "FULL")
        return ends

    def subscribe(self, *conns: int, queue: str = "q", window: int = 1_000) -> None:
        for conn in conns:
            subscriptions.subscribe(self.engine, queue, conn, window, self.now, f"peer {conn}")

    def unsubscribe(self, conn: int, queue: str = "q") -> None:
        subscriptions.unsubscribe(self.engine, queue, conn, self.now)

    def ack(self, conn: int, *ids: str) -> list[bool]:
        return [subscriptions.acknowledge(self.engine, conn, [id], self.now) == 1 for id in ids]

    def nack(self, conn: int, id: str, delay: int = 0) -> bool:
        return subscriptions.refuse(self.engine, conn, id, delay, self.now)

    def stall(self, conn: int, stalled: bool = True) -> None:
        subscriptions.stall(self.engine, conn, self.now, stalled=stalled)

    def leave(self, conn: int, *, broken: bool = True) -> None:
        consume.disconnect(self.engine, conn, self.now, broken=broken)

    def told(self) -> list[tuple[int, str]]:
        """Which deliveries were made since the last look: to whom, and the message's name."""
        outcome = self.engine.take()
        self.facts.update(outcome.facts)
        return [
            (conn, name_of(effect.message))
            for effect in outcome.effects
            if isinstance(effect, Deliver)
            for conn in effect.conns
        ]

    def later(self, seconds: float) -> list[tuple[int, str]]:
        """Let time go by; return what was delivered meanwhile."""
        end = self.now + round(seconds * 1000)
        while (wake := clock.next_wake(self.engine)) is not None and wake <= end:
            self.now = max(self.now, wake)
            clock.tick(self.engine, self.now)
        self.now = end
        return self.told()

    def waiting(self, queue: str = "q") -> list[str]:
        """The names of what waits in a queue, in order."""
        q = self.engine.queues.get(queue)
        return [name_of(m) for m in q.ready] if q is not None else []

    def dead(self, queue: str = "q") -> list[Message]:
        return list(dlq.letters(self.engine, queue))

    @property
    def in_flight(self) -> int:
        return sum(sub.held for who in self.engine.subscribers.values() for sub in _subs(who))


def _subs(who: subscriptions.Subscriber) -> list[Any]:
    return list(who.subscriptions.values())


FAN_OUT = {"mode": Mode.FAN_OUT_WITH_ACK}
HAND_OVER = {"mode": Mode.FAN_OUT_WITHOUT_ACK}
PRIORITY = {"mode": Mode.PRIORITY_BASED}
BURY = {"dead_letters": True}
NEWEST = {"overflow": Overflow.DROP_NEWEST}
BLOCK = {"overflow": Overflow.BLOCK_PUBLISHER}
REDIRECT = {"overflow": Overflow.REDIRECT_TO_DLQ}
