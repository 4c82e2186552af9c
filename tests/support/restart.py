"""An engine and what a store would hold of it: a test ends the one and opens the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from tandemq.engine import clock, consume, facts, recovery
from tandemq.engine.core import Engine
from tandemq.engine.timers import FAR
from tandemq.model.message import Message, State
from tandemq.model.outcome import Outcome
from tandemq.stores.base import Row
from tandemq.stores.rows import decode, encode_head


def keep(outcome: Outcome, rows: dict[int, Row], facts: dict[str, bytes]) -> None:
    """Write what has changed into rows by seq and facts, as a store does."""
    for seq, m in outcome.changed.items():
        if m.state is State.GONE:
            rows.pop(seq, None)
        else:
            rows[seq] = Row(seq, encode_head(m), m.body)
    for key, value in outcome.facts.items():
        if value is None:
            facts.pop(key, None)
        else:
            facts[key] = value


class Machine:
    """A server without sockets: its engine, its clock, its rows and its facts."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.rows: dict[int, Row] = {}
        self.facts: dict[str, bytes] = {}
        self._numbers = count(1)
        self.engine = self._new_engine()

    def _new_engine(self) -> Engine:
        return Engine(new_id=lambda _: f"id-{next(self._numbers)}", uniform=lambda: 0.5)

    def keep(self) -> None:
        """Store what has changed, as a commit does."""
        keep(self.engine.take(), self.rows, self.facts)

    def pass_time(self, until: int) -> None:
        """Let the clock ring at every deadline up to a moment, and store what that changes."""
        while (wake := clock.next_wake(self.engine) or FAR) <= until:
            self.now = max(self.now, wake)
            clock.tick(self.engine, self.now)
            self.keep()
        self.now = until

    def restart(self, *, kill: bool = False, at: int | None = None) -> None:
        """End the engine, cleanly or not, and open another one on what is stored."""
        if not kill:
            consume.release_all(self.engine, self.now)
            self.keep()
        self.now = self.now if at is None else at
        self.engine = self._new_engine()
        for row in list(self.rows.values()):
            self.engine.admit(decode(row))
        for key, value in self.facts.items():
            facts.restore(self.engine, key, value)
        recovery.resume(self.engine, self.now)
        self.keep()

    def jobs(self, queue: str = "q") -> list[Message]:
        """Every message of a queue, in the order of publication."""
        found = [m for m in self.engine.messages.values() if m.queue == queue]
        return sorted(found, key=lambda m: m.seq)

    def runs(self, queue: str = "q") -> Iterator[int]:
        """When the messages of a queue were published."""
        return (m.created for m in self.jobs(queue))
