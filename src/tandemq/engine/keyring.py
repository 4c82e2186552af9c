"""Which message holds which unique key; the engine tells of every move of a message with a key.

A key belongs to one queue and is stored as the fact ``key/<queue>/<key>``, written in the batch
that changes the message: both survive a restart together, and an undone batch takes both back.
The number of keys is bounded by the number of live messages, and by nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from tandemq.model.message import Message, State
from tandemq.model.uniqueness import held_until, keeps

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

PARKED, DELAYED, READY, LEASED, DONE, DEAD, GONE = (
    State.PARKED,
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
    State.GONE,
)
ENDED = (DONE, DEAD, GONE)
FACT = "key/"  # + queue, a slash and the key; no queue that can be published to has a slash


class Holder(Struct, array_like=True, gc=False):
    """Who has a key."""

    id: str
    until: int | None = None  # a moment; None: until the owner lets go
    next: str | None = None  # who takes over when the owner ends, parked until then


_decode = msgspec.msgpack.Decoder(Holder).decode


def name_of(queue: str, key: str) -> str:
    """Return the name under which a key of a queue is known and stored."""
    return f"{FACT}{queue}/{key}"


class Keyring:
    """The keys that are held."""

    __slots__ = ("_held", "_seen")

    def __init__(self) -> None:
        self._held: dict[str, Holder] = {}
        self._seen = 0  # the last moment we were told, so never later than the present

    def __len__(self) -> int:
        return len(self._held)

    def holder(self, engine: Engine, queue: str, key: str, now: int) -> Holder | None:
        """Return who holds a key now; nobody does when its time is over or its owner has ended."""
        self._seen = now
        holder = self._held.get(name_of(queue, key))
        if holder is None or (holder.until is not None and holder.until <= now):
            return None
        owner = engine.messages.get(holder.id)
        return None if owner is None or owner.state in ENDED else holder

    def owns(self, m: Message) -> bool:
        """Whether a message holds its key, perhaps beyond its time."""
        key = m.options.unique_key
        held = self._held.get(name_of(m.queue, key)) if key is not None else None
        return held is not None and held.id == m.id

    def follows(self, m: Message) -> bool:
        """Whether a message waits for the owner of its key to end."""
        key = m.options.unique_key
        held = self._held.get(name_of(m.queue, key)) if key is not None else None
        return held is not None and held.next == m.id

    def give(self, engine: Engine, m: Message, now: int, next: str | None = None) -> None:
        """Give a message its key, whoever had it."""
        assert m.options.unique_key is not None, "only a message with a key can hold it"
        self._seen = now
        holder = Holder(m.id, held_until(m.options, now), next)
        self.put(engine, name_of(m.queue, m.options.unique_key), holder)

    def put(self, engine: Engine, name: str, holder: Holder | None) -> None:
        """Write down who holds a key; None frees it."""
        if holder is not None:
            self._held[name] = holder
            engine.record(name, msgspec.msgpack.encode(holder))
        elif self._held.pop(name, None) is not None:
            engine.record(name, None)

    def restore(self, name: str, fact: bytes | None) -> None:
        """Take a fact as it was stored; None: nobody has the key."""
        if fact is None:
            self._held.pop(name, None)
        else:
            self._held[name] = _decode(fact)

    # -- what moves do -------------------------------------------------------------------------

    def moved(self, engine: Engine, m: Message, before: State) -> None:
        """A message with a key has moved, and is not indexed under its new state yet.

        It lets go of its key when it ends, and when it comes back from a lease, unless it keeps
        it (bunqueue semantics 9 and quirk 23). A clean stop gives back leases, and no keys.
        """
        assert m.options.unique_key is not None, "only of messages with a key"
        name = name_of(m.queue, m.options.unique_key)
        held = self._held.get(name)
        if m.state in ENDED:
            if before not in (DONE, DEAD):
                self._ended(engine, m, name, held)
        elif before is DONE or before is DEAD:
            if held is None:
                self.put(engine, name, Holder(m.id))
        elif before is LEASED and m.state is not PARKED and engine.granting:
            if held is None or held.id != m.id or held.next is not None or keeps(m.options):
                return
            self.put(engine, name, None)

    def _ended(self, engine: Engine, m: Message, name: str, held: Holder | None) -> None:
        if held is None:
            return
        if held.next == m.id:
            self.put(engine, name, Holder(held.id, held.until))
        elif held.id == m.id:
            self.hand_over(engine, name, held)

    def hand_over(self, engine: Engine, name: str, held: Holder) -> None:
        """Give a key to whoever waits for it; who calls lets the queue match."""
        follower = engine.messages.get(held.next) if held.next is not None else None
        if follower is None or follower.state is not PARKED:
            self.put(engine, name, None)
            return
        self.put(engine, name, Holder(follower.id))
        if follower.links is not None and follower.links.open:
            return  # it waits for others too, and is let go by them
        # One that looks delayed because nobody told the time is promoted by its timer at once.
        engine.shift(follower, "settled", READY if follower.due <= self._seen else DELAYED)
