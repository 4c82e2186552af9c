"""What the engine counts: plain integers, read by whoever reports them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandemq.model.message import Message


@dataclass(slots=True)
class Counters:
    """Totals since the engine was made."""

    pushed: int = 0
    pulled: int = 0
    completed: int = 0
    failed: int = 0  # ended as dead letters
    retried: int = 0
    expired: int = 0
    stalled: int = 0
    interrupted: int = 0  # given back because a connection broke
    published: int = 0  # on a broker's wire, and accepted
    delivered: int = 0  # to subscribers, each copy, but not what is sent again
    acknowledged: int = 0  # by subscribers, each copy
    dead_lettered: int = 0
    errors: int = 0  # requests that were refused, and messages that could not be sent
    dropped: int = 0  # lost by a rule of their queue: full, too old, or out of attempts
    timed: int = 0  # of those delivered, letters: when a job was accepted its publisher may say
    waited: int = 0  # ms from the acceptance of these to their first delivery, all together

    def delivers(self, m: Message, now: int, copies: int = 1) -> None:
        """A message is delivered to so many subscribers, to each of them for the first time."""
        self.delivered += copies
        if m.letter is not None:
            self.timed += copies
            if now > m.created:  # the clock may have been set meanwhile
                self.waited += copies * (now - m.created)

    @property
    def latency(self) -> float:
        """The mean wait of a letter for its first delivery, in ms."""
        return self.waited / self.timed if self.timed else 0.0
