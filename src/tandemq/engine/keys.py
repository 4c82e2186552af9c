"""Unique keys: what a publication with a key does, and what operators may ask of a key.

Sources: bunqueue semantics 9; the policies ``coalesce`` and ``queue-one`` are ours. The holders
themselves stand in ``keyring.py``.
"""

from __future__ import annotations

from tandemq.engine.core import Engine
from tandemq.engine.keyring import Holder, name_of
from tandemq.engine.watches import told
from tandemq.model.errors import BadRequest
from tandemq.model.message import Message, State
from tandemq.model.uniqueness import Verdict, held_until, verdict

GONE, LEASED = State.GONE, State.LEASED


def judge(engine: Engine, m: Message, now: int) -> tuple[Verdict, Holder] | None:
    """Decide about a draft with a key, without doing anything; None when its key is free.

    Raises:
        BadRequest: the key cannot be extended, or its owner cannot be replaced.
    """
    key = m.options.unique_key
    assert key is not None, "only drafts with a key are judged"
    holder = engine.keyring.holder(engine, m.queue, key, now)
    if holder is None:
        return None
    owner = engine.messages[holder.id]
    found = verdict(m.options, owner.state)
    if found is Verdict.REFUSE:
        raise BadRequest("Duplicate unique_key (extended TTL)")
    if found is Verdict.SUCCEED and holder.next is not None:
        found = Verdict.FOLLOW  # whoever asked that only one runs is kept his promise
    for gone in _goes(found, holder):
        if gone in engine.dependents.waiting:
            raise BadRequest(
                f"Cannot replace deduplicated job {gone} because live jobs depend on it"
            )
    return found, holder


def _goes(found: Verdict, holder: Holder) -> tuple[str, ...]:
    """Return who makes way for a draft: first the follower, so that nothing is handed to it."""
    follower = () if holder.next is None else (holder.next,)
    if found is Verdict.REPLACE:
        return (*follower, holder.id)
    return follower if found is Verdict.FOLLOW else ()


def keep(engine: Engine, m: Message, found: Verdict, holder: Holder, now: int) -> Message:
    """Let the owner of its key stand for a draft, and do to the owner what ``judge`` found."""
    owner = engine.messages[holder.id]
    if found is Verdict.EXTEND:
        until = held_until(m.options, now) if holder.next is None else None
        engine.keyring.put(engine, _name(m), Holder(holder.id, until, holder.next))
    elif found is Verdict.COALESCE:
        owner.name = m.name
        engine.rebody(owner, m.body)
    if engine.listening:
        engine.say("duplicated", owner, now)
    return owner


def take(engine: Engine, m: Message, judged: tuple[Verdict, Holder] | None, now: int) -> bool:
    """Give a draft its key, or the place behind its owner; True if it has to wait for that one."""
    keyring = engine.keyring
    if judged is not None:
        found, holder = judged
        for gone in _goes(found, holder):
            _remove(engine, gone)
        if found is Verdict.FOLLOW:
            # No clock frees the key now: another could take it, and nobody would tell this one.
            keyring.put(engine, _name(m), Holder(holder.id, None, m.id))
            return True
    keyring.give(engine, m, now)
    return False


def _remove(engine: Engine, id: str) -> None:
    """Let a waiting message vanish; nobody depends on it, so no parent has to be told."""
    old = engine.messages.get(id)
    if old is not None and old.state is not LEASED:
        engine.shift(old, "cancel", GONE)
        if engine.logs:
            engine.logs.drop(engine, old.id)
        if engine.watches:
            told(engine, old, well=False)


def _name(m: Message) -> str:
    assert m.options.unique_key is not None, "only of messages with a key"
    return name_of(m.queue, m.options.unique_key)


# -- what operators ask --------------------------------------------------------------------------


def owner(engine: Engine, queue: str, key: str, now: int) -> str | None:
    """Return the id of the message that holds a key."""
    holder = _holder(engine, queue, key, now)
    return None if holder is None else holder.id


def _holder(engine: Engine, queue: str, key: str, now: int) -> Holder | None:
    # A name with a slash is no queue's, but together with a key it might look like another pair.
    return None if "/" in queue else engine.keyring.holder(engine, queue, key, now)


def free(engine: Engine, queue: str, key: str, now: int) -> bool:
    """Take a key from whoever holds it; False when nobody does.

    A message that waited for the owner to end waits no longer.
    """
    holder = _holder(engine, queue, key, now)
    if holder is None:
        return False
    engine.keyring.hand_over(engine, name_of(queue, key), holder)
    engine.match(engine.queues[queue], now)
    return True


def free_own(engine: Engine, m: Message, now: int) -> bool:
    """Take its key from a message; False when it does not hold it."""
    key = m.options.unique_key
    if key is None or not engine.keyring.owns(m):
        return False
    return free(engine, m.queue, key, now)
