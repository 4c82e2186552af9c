"""Consumers of a queue: one-shot pulls that wait and standing subscriptions, in turn."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tandemq.engine.lane import Terms
from tandemq.model.policy import BATCH_BYTES

if TYPE_CHECKING:
    from tandemq.engine.fanout import Copy
    from tandemq.model.message import Message


@dataclass(slots=True, eq=False)
class Consumer:
    """Somebody who wants messages of one queue: a pull that waits.

    It takes up to ``prefetch`` messages at once and is over.
    """

    conn: int
    queue: str
    prefetch: int
    req: Any = None
    span: int | None = None  # ms of the lease; None: a lease without a token
    detach: bool = False  # what it takes survives its connection
    until: int = 0  # when a pull stops waiting
    gen: int = 0  # a timer set for an older one is dead
    closed: bool = False
    terms: Terms | None = None  # what a pull asks of groups

    @property
    def willing(self) -> bool:
        """Whether it would take a message now."""
        return not self.closed


@dataclass(slots=True, eq=False)
class Subscription(Consumer):
    """Somebody who wants messages of one queue as they come, at most ``prefetch`` at a time.

    Large messages come in smaller numbers, as they do for pulls.
    """

    name: str = ""  # of the subscriber, for whoever reads of a message that it did not answer
    held: int = 0  # messages it has not answered
    held_bytes: int = 0  # of their bodies
    stalled: bool = False  # its connection does not drain
    mailbox: deque[Copy] = field(default_factory=deque)  # copies that wait for a place

    def took(self, m: Message) -> None:
        """A message was delivered."""
        self.held += 1
        self.held_bytes += len(m.body)

    def gave(self, m: Message) -> None:
        """A message is answered, or taken back."""
        self.held -= 1
        self.held_bytes -= len(m.body)

    @property
    def willing(self) -> bool:
        if self.closed or self.stalled or self.held >= self.prefetch:
            return False
        return self.held_bytes < BATCH_BYTES or not self.held


class Ring(OrderedDict[Consumer, None]):
    """Consumers in turn: pulls first come first served, subscriptions round robin.

    Both orders are the same row: a served pull leaves, a served subscription goes to the back.
    """

    __slots__ = ("_terms", "choosy")

    def __init__(self) -> None:
        super().__init__()
        self._terms: dict[Terms, int] = {}  # and how many consumers have them
        self.choosy = 0  # consumers with terms

    def add(self, c: Consumer) -> None:
        self[c] = None
        if c.terms is not None:
            self._terms[c.terms] = self._terms.get(c.terms, 0) + 1
            self.choosy += 1

    def drop(self, c: Consumer) -> None:
        c.closed = True
        c.gen += 1
        if c.terms is not None and c in self:
            self.choosy -= 1
            left = self._terms[c.terms] = self._terms[c.terms] - 1
            if not left:
                del self._terms[c.terms]
        self.pop(c, None)

    def first(self) -> Consumer | None:
        """Return the willing consumer whose turn it is; None when nobody is willing."""
        return next((c for c in self if c.willing), None)

    def willing(self, refused: set[Terms | None]) -> Consumer | None:
        """Return the first willing consumer whose terms are not among ``refused``."""
        if (None in refused or len(self) == self.choosy) and refused >= self._terms.keys():
            return None  # however many there are, none of them needs a look
        return next((c for c in self if c.willing and c.terms not in refused), None)

    @property
    def terms(self) -> list[Terms | None]:
        """What consumers ask of groups, each once; None where one has no terms."""
        return [*self._terms, *([None] if len(self) > self.choosy else [])]

    def served(self, c: Consumer) -> None:
        """``c`` had its turn: send it to the back, or out until it is willing again."""
        if c.willing:
            self.move_to_end(c)
        else:
            del self[c]
