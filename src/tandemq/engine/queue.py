"""One queue: what is ready, who wants it, who is where, what is counted."""

from __future__ import annotations

from collections.abc import Callable, Reversible
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tandemq.engine.consumers import Ring, Subscription
from tandemq.engine.lanes import Lanes
from tandemq.engine.ready import Ready
from tandemq.engine.timers import FAR
from tandemq.model.broker import Policy
from tandemq.model.message import DEFAULTS, Message, State
from tandemq.model.policy import Burial, Rate, Stall

if TYPE_CHECKING:
    from tandemq.engine.admission import Alarm, Bucket
    from tandemq.engine.deadletters import Graveyard

READY = State.READY


class Settings(Struct, omit_defaults=True, frozen=True):
    """What an operator has set for one queue; stored as a fact, absent while all is default."""

    paused: bool = False
    stall: Stall = Stall()
    burial: Burial = Burial()
    rate: Rate | None = None
    concurrency: float | None = None  # leased messages at a time
    broker: Policy | None = None  # None: a job queue, or nobody has decided yet


NO_SETTINGS = Settings()


class Tallied(dict[int, Message]):
    """Messages by seq, with a count for each value of something they have.

    What is counted may not change while the message is here.
    """

    __slots__ = ("_kind", "tally")

    def __init__(self, kind: Callable[[Message], Any]) -> None:
        super().__init__()
        self._kind = kind
        self.tally: dict[Any, int] = {}

    def __setitem__(self, seq: int, m: Message) -> None:
        super().__setitem__(seq, m)
        kind = self._kind(m)
        self.tally[kind] = self.tally.get(kind, 0) + 1

    def __delitem__(self, seq: int) -> None:
        kind = self._kind(self[seq])
        super().__delitem__(seq)
        left = self.tally[kind] = self.tally[kind] - 1
        if not left:
            del self.tally[kind]


_priority = attrgetter("priority")


def cause_of(m: Message) -> str:
    """Return why a message is a dead letter."""
    return m.run.cause or "unknown" if m.run is not None else "unknown"


class Queue:
    """A name, an order, a ring of consumers, settings; the engine keeps its indexes true."""

    __slots__ = (
        "alarm",
        "audience",
        "bounded",
        "bucket",
        "delayed",
        "fans_out",
        "graveyard",
        "groups",
        "leased",
        "limited",
        "members",
        "name",
        "opens",
        "options",
        "prioritized",
        "ready",
        "ring",
        "rounds",
        "settings",
        "straight",
        "subscriptions",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready: Ready | Lanes = Ready()
        self.groups: Lanes | None = None  # the same as ``ready``, once there was a group
        self.limited = False  # something has to be asked before a message is handed out
        self.bucket: Bucket | None = None  # the tokens of its rate limit
        self.bounded = False  # it takes no more than so many
        self.fans_out = False  # everybody gets every message
        self.straight = False  # its letters may go to who is next without a stop
        self.options = DEFAULTS  # of its letters
        self.rounds = 0  # of the match that is going on
        self.opens = FAR  # when there are tokens for whoever was refused some
        self.alarm: Alarm | None = None
        self.ring = Ring()
        self.subscriptions: dict[Subscription, None] = {}  # all of them, in or out of the ring
        self.audience: list[int] | None = None  # connections of those that read, once asked for
        self.settings = NO_SETTINGS
        self.prioritized = 0  # of the ready ones, those with a priority above 0
        # Every message but the ready ones, by state in the order of arrival there.
        self.members: list[dict[int, Message]] = [{} for _ in State]
        self.members[State.DELAYED] = Tallied(_priority)
        self.members[State.DEAD] = Tallied(cause_of)
        self.leased, self.delayed = self.members[State.LEASED], self.members[State.DELAYED]
        self.graveyard: Graveyard | None = None  # of its dead letters, once it had some

    @property
    def open(self) -> bool:
        """Whether the queue may hand out messages."""
        return not self.settings.paused

    def readers(self) -> list[int]:
        """Return the connections of all subscriptions that read; nobody may change the list."""
        if self.audience is None:
            self.audience = [sub.conn for sub in self.subscriptions if not sub.stalled]
        return self.audience

    @property
    def counts(self) -> list[int]:
        """How many messages are in each state."""
        counts = [len(members) for members in self.members]
        counts[READY] = len(self.ready)
        return counts

    @property
    def blank(self) -> bool:
        """Nothing would be lost if the queue were forgotten."""
        if any(self.members) or self.ready or self.ring or self.subscriptions:
            return False
        return self.settings == NO_SETTINGS and (self.groups is None or self.groups.blank)

    @property
    def priorities(self) -> dict[int, int]:
        """How many messages of each priority are ready or will be by time alone."""
        delayed = self.members[State.DELAYED]
        assert isinstance(delayed, Tallied), "delayed messages are counted by priority"
        counts = self.ready.priorities()
        for priority, n in delayed.tally.items():
            counts[priority] = counts.get(priority, 0) + n
        return counts

    def within(self, state: State) -> Reversible[Message]:
        """Return the messages in ``state``: ready ones in order of delivery, others of arrival."""
        return self.ready if state is READY else self.members[state].values()
