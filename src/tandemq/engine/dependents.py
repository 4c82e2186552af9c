"""Who waits for whom: an index of the parked messages, which the engine keeps true.

It is derived from the messages alone: whatever parks or leaves, at start and in an undone batch
too, passes through ``add`` and ``drop``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tandemq.model.message import Message, State

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

PARKED = State.PARKED


class Dependents:
    """The parked messages by what they wait for, and the newest that are completed and gone."""

    __slots__ = ("_limit", "_remembered", "waiting")

    def __init__(self, limit: int) -> None:
        """``limit`` bounds how many ids of removed messages are remembered."""
        self.waiting: dict[str, dict[int, Message]] = {}  # id -> by seq, those that wait for it
        self._remembered: dict[str, None] = {}
        self._limit = limit

    def add(self, m: Message) -> None:
        """A message with links came into its present state."""
        if m.state is PARKED and m.links is not None:
            for id in m.links.open:
                self.waiting.setdefault(id, {})[m.seq] = m

    def drop(self, m: Message) -> None:
        """A message with links is about to leave its state, or to wait for others."""
        if m.state is PARKED and m.links is not None:
            for id in m.links.open:
                self.pull(id, m)

    def pull(self, id: str, m: Message) -> None:
        """A message no longer waits for ``id``."""
        waiters = self.waiting.get(id)
        if waiters is not None:
            waiters.pop(m.seq, None)
            if not waiters:
                del self.waiting[id]

    def of(self, id: str) -> list[Message]:
        """Return those that wait for ``id``."""
        return list(self.waiting.get(id, {}).values())

    def leave_value(self, engine: Engine, m: Message) -> None:
        """Leave the result of a completed child that is not kept with its parent."""
        links, run = m.links, m.run
        if links is None or links.parent is None or run is None or run.result is None:
            return
        parent = engine.messages.get(links.parent)
        if parent is None or parent.links is None or parent.state is State.DONE:
            return
        if m.id in parent.links.children:
            parent.links.values[m.id] = run.result
            engine.touched(parent)

    # -- completed and removed ------------------------------------------------------------------

    def remember(self, id: str) -> None:
        """Know that a message was completed although it is not kept; the oldest are forgotten."""
        remembered = self._remembered
        remembered.pop(id, None)
        remembered[id] = None
        if len(remembered) > self._limit:
            del remembered[next(iter(remembered))]

    def remembers(self, id: str) -> bool:
        """Whether a message was completed and is not kept."""
        return id in self._remembered

    def unlearn(self, id: str) -> None:
        """Take back what was remembered: the completion has been undone."""
        self._remembered.pop(id, None)
