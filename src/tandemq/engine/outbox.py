"""What a call of the engine has changed and what must be said, until somebody takes it."""

from __future__ import annotations

from typing import Any

from tandemq.engine.journal import Journal
from tandemq.model.message import Message
from tandemq.model.outcome import Deliver, Event, Late, Outcome, Remark, Reply


class Outbox:
    """Changes, facts, answers and events, in the order in which they came to be."""

    def __init__(self, journal: Journal) -> None:
        self.owes_sync = False  # something changed whose publisher asked for more than a commit
        self.journal = journal
        self.watched = False  # somebody outside has subscribed to events
        self.listening = False  # watched, or a webhook is on: events are built only then
        self.remarking = False  # somebody looks at the whole server
        self.changed: dict[int, Message] = {}
        self._facts: dict[str, bytes | None] = {}
        self.effects: list[Reply | Late | Deliver] = []
        self._events: list[Event | Remark] = []

    def say(self, type: str, m: Message, now: int, **fields: Any) -> None:
        """Tell those who listen; ask ``listening`` first, where it happens often."""
        if self.listening:
            self._tell(Event(type, m.queue, m.id, now, fields))

    def announce(self, type: str, queue: str, now: int) -> None:
        """Tell those who listen of what concerns a queue as a whole."""
        if self.listening:
            self._tell(Event(type, queue, "", now, {}))

    def remark(self, name: str, queue: str | None, now: int, /, **fields: Any) -> None:
        """Tell those who look at the server of what no event of a job tells."""
        if self.remarking:
            self._events.append(Remark(name, queue, now, fields))

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        self.journal.note(event)

    def heard(self) -> list[Event | Remark]:
        """Hand over the events so far: who listens from now on has not heard them."""
        events, self._events = self._events, []
        return events

    def tell(self, conn: int, req: Any, reply: Any) -> None:
        """Answer a request that had waited for something else than messages."""
        self.effects.append(Late(conn, req, reply))

    def deliver(self, conns: list[int], m: Message, payload: bytes) -> None:
        """Send a message to subscribers."""
        self.effects.append(Deliver(conns, m, payload))

    def record(self, key: str, value: bytes | None) -> None:
        """Remember a fact that is not part of a message; None forgets it."""
        self._facts[key] = value

    def hand_over(self) -> Outcome:
        """Return everything so far; from now on there is nothing."""
        outcome = Outcome(self.changed, self._facts, self.effects, self._events)
        self.changed, self._facts, self.effects, self._events = {}, {}, [], []
        self.owes_sync = False
        return outcome

    @property
    def quiet(self) -> bool:
        """Nothing waits to be taken."""
        return not (self.changed or self._facts or self.effects)
