"""What becomes of a message whose unique key is held by another one: a pure decision.

Sources: bunqueue semantics 9 for ``extend`` and ``replace``; the four policies are ours.
"""

from __future__ import annotations

from enum import Enum

from tandemq.model.message import Options, State

POLICIES = ("drop", "replace", "coalesce", "queue-one")


class Verdict(Enum):
    """What becomes of the new message, and of the owner of the key."""

    DROP = "the owner stays, the new message is not accepted"
    EXTEND = "as DROP, and the owner's time begins anew"
    REFUSE = "the owner runs, so its time cannot be extended"
    REPLACE = "the owner goes, the new message takes its key"
    SUCCEED = "the owner runs on without its key, the new message has it"
    FOLLOW = "the new message waits until the owner has ended; an older follower goes"
    COALESCE = "the owner gets the new data, the new message is not accepted"


def verdict(options: Options, owner: State) -> Verdict:
    """Decide about a message with ``options`` whose key is held by a live one in state ``owner``.

    A policy decides alone; without one the flags of the reference do, ``replace`` first.
    """
    runs = owner is State.LEASED
    policy = options.dedup_policy
    if policy == "queue-one":
        return Verdict.FOLLOW if runs else Verdict.REPLACE
    if policy == "coalesce":
        return Verdict.SUCCEED if runs else Verdict.COALESCE
    if policy == "replace" or (policy is None and options.dedup_replace):
        return Verdict.SUCCEED if runs else Verdict.REPLACE
    if policy is None and options.dedup_extend and options.dedup_ttl:
        return Verdict.REFUSE if runs else Verdict.EXTEND
    return Verdict.DROP


def keeps(options: Options) -> bool:
    """Whether a message holds its key until its end, and not only through its first attempt."""
    return options.dedup_keep or options.dedup_policy == "queue-one"


def held_until(options: Options, now: int) -> int | None:
    """Return when the key of a message that takes it now is free again; None: when it ends.

    ``queue-one`` promises that only one runs, so no clock takes its key away.
    """
    ttl = options.dedup_ttl
    return now + int(ttl) if ttl and options.dedup_policy != "queue-one" else None
