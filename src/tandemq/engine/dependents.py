"""Who waits for whom: an index of the parked messages, which the engine keeps true.

It is derived from the messages: whatever parks or leaves, at start and in an undone batch too,
passes through ``add`` and ``drop``.

A parent of ten thousand children has a row of a megabyte, which must not be written for each child
that completes. So for wide families that is a fact of its own, ``kid/<seq of parent>/<child>``, and
the row, which names the child among the open ones still, is read together with its facts. They go
when the parent waits no longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from tandemq.model.message import Links, Message, State

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

PARKED = State.PARKED
FACT = "kid/"
WIDE = 64  # dependencies; up to that many the row of the parent is written for each


class Kid(msgspec.Struct, array_like=True, gc=False):
    """One that a wide family need not wait for any more."""

    parent: str
    result: bytes | None = None  # of one that is not kept itself


_decode = msgspec.msgpack.Decoder(Kid).decode


def wide(m: Message) -> bool:
    """Whether a message waits for so many that their ends are facts of their own."""
    return m.state is PARKED and m.links is not None and len(m.links.depends_on) > WIDE


class Dependents:
    """The parked messages by what they wait for, and the newest that are completed and gone."""

    __slots__ = ("_kids", "_limit", "_remembered", "waiting")

    def __init__(self, limit: int) -> None:
        """``limit`` bounds how many ids of removed messages are remembered."""
        self.waiting: dict[str, dict[int, Message]] = {}  # id -> by seq, those that wait for it
        self._kids: dict[int, dict[str, Kid]] = {}  # seq of a wide parent -> what is a fact
        self._remembered: dict[str, None] = {}
        self._limit = limit

    def add(self, m: Message) -> None:
        """A message with links came into its present state."""
        if m.state is PARKED and m.links is not None:
            if m.seq in self._kids:  # it is read together with its facts
                self._subtract(m.links, self._kids[m.seq])
            for id in m.links.open:
                self.waiting.setdefault(id, {})[m.seq] = m

    @staticmethod
    def _subtract(links: Links, kids: dict[str, Kid]) -> None:
        links.open = tuple(id for id in links.open if id not in kids)
        for id, kid in kids.items():
            if kid.result is not None:
                links.values[id] = kid.result

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
            self.keep(engine, parent, m.id)

    # -- wide families --------------------------------------------------------------------------

    def keep(self, engine: Engine, parent: Message, id: str) -> None:
        """Have it written that ``id`` has ended well, for one that waits for it."""
        if not wide(parent) or parent.links is None:
            engine.touched(parent)
            return
        kid = Kid(parent.id, parent.links.values.get(id))
        self._kids.setdefault(parent.seq, {})[id] = kid
        engine.record(f"{FACT}{parent.seq}/{id}", msgspec.msgpack.encode(kid))

    def left(self, engine: Engine, m: Message) -> None:
        """A message waits no longer: its own row tells everything again."""
        for id in self._kids.pop(m.seq, ()):
            engine.record(f"{FACT}{m.seq}/{id}", None)

    def restore(self, engine: Engine, name: str, fact: bytes | None) -> None:
        """Take a fact as it was stored; None: that end has been undone."""
        number, _, id = name.partition("/")
        seq = int(number)
        kids = self._kids.setdefault(seq, {})
        kid = kids.pop(id, None)
        if fact is not None:
            kid = kids[id] = _decode(fact)
        elif not kids:
            del self._kids[seq]
        parent = engine.messages.get(kid.parent) if kid is not None else None
        if parent is not None and parent.seq == seq and parent.state is PARKED:
            self.drop(parent)
            if fact is None and parent.links is not None:
                parent.links.open += (id,)
                parent.links.values.pop(id, None)
            self.add(parent)

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

    def remembers_any(self, ids: Iterable[str]) -> bool:
        """Whether ``remembers`` is true of one of these."""
        return not self._remembered.keys().isdisjoint(ids)

    def unlearn(self, id: str) -> None:
        """Take back what was remembered: the completion has been undone."""
        self._remembered.pop(id, None)
