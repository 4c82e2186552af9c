"""One queue: what is ready, who wants it, who is where, what is counted."""

from __future__ import annotations

from collections.abc import Reversible

from msgspec import Struct

from tandemq.engine.consumers import Ring
from tandemq.engine.ready import Ready
from tandemq.model.message import Message, State
from tandemq.model.policy import Stall

READY = State.READY


class Settings(Struct, omit_defaults=True, frozen=True):
    """What an operator has set for one queue; stored as a fact, absent while all is default."""

    paused: bool = False
    stall: Stall = Stall()


NO_SETTINGS = Settings()


class Queue:
    """A name, an order, a ring of consumers, settings; the engine keeps its indexes true."""

    __slots__ = ("members", "name", "prioritized", "ready", "ring", "settings")

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready = Ready()
        self.ring = Ring()
        self.settings = NO_SETTINGS
        self.prioritized = 0  # of the ready ones, those with a priority above 0
        # Every message but the ready ones, by state in the order of arrival there.
        self.members: list[dict[int, Message]] = [{} for _ in State]

    @property
    def open(self) -> bool:
        """Whether the queue may hand out messages."""
        return not self.settings.paused

    @property
    def counts(self) -> list[int]:
        """How many messages are in each state."""
        counts = [len(members) for members in self.members]
        counts[READY] = len(self.ready)
        return counts

    @property
    def blank(self) -> bool:
        """Nothing would be lost if the queue were forgotten."""
        if any(self.members) or self.ready or self.ring:
            return False
        return self.settings == NO_SETTINGS

    def within(self, state: State) -> Reversible[Message]:
        """Return the messages in ``state``: ready ones in order of delivery, others of arrival."""
        return self.ready if state is READY else self.members[state].values()
