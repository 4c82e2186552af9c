"""GetQueuePolicy and SetQueuePolicy: how a queue delivers, and changing it (ours).

The first message of a queue, or CreateQueue, decides what it is (ruling 11); a later CreateQueue
changes nothing. This is how an operator changes it. What would leave messages in a place where
nothing looks for them any more is refused while there are such messages.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command
from tandemq.engine import control, graves, overflow
from tandemq.engine.queue import Queue
from tandemq.model.broker import JOBS, Mode, Overflow, Policy
from tandemq.model.errors import BadRequest

LARGEST = 0x7FFF_FFFF  # as the broker's wires have it
MODES = {mode.name.replace("_", "-").lower(): mode for mode in Mode}
STRATEGIES = {each.name.replace("_", "-").lower(): each for each in Overflow}

Count = Annotated[int, Meta(ge=1, le=LARGEST)]
Span = Annotated[float, Meta(ge=1, le=check.YEAR)]  # ms


class Changes(Struct, rename="camel", forbid_unknown_fields=True):
    """What is to be changed of a policy."""

    mode: str | UnsetType = UNSET
    max_size: Count | UnsetType = UNSET
    ttl: Span | UnsetType | None = UNSET
    overflow: str | UnsetType = UNSET
    dead_letters: bool | UnsetType = UNSET
    max_attempts: Annotated[int, Meta(ge=0, le=LARGEST)] | UnsetType = UNSET
    ack_wait: Span | UnsetType = UNSET
    retry_base: Span | UnsetType = UNSET
    retry_cap: Span | UnsetType = UNSET
    full_wait: bool | UnsetType = UNSET


class GetQueuePolicy(Request, tag="GetQueuePolicy"):
    """Ask how a queue delivers."""

    queue: Any = None


class SetQueuePolicy(Request, tag="SetQueuePolicy"):
    """Change how a queue delivers."""

    queue: Any = None
    policy: Any = None


@command(Permission.INSPECT, http="GET /queues/{queue}/policy")
def get_queue_policy(req: GetQueuePolicy, call: Call) -> Data:
    """Return how a queue delivers; ``kind`` tells a job queue from a broker's."""
    name = check.any_queue(req.queue)
    q = call.engine.queues.get(name)
    return Data({"policy": _shown(None if q is None else q.settings.broker)})


@command(Permission.CONTROL, http="PUT /queues/{queue}/policy body")
def set_queue_policy(req: SetQueuePolicy, call: Call) -> Data:
    """Change how a queue delivers; what is not named stays. A job queue has to be empty for it."""
    engine, name = call.engine, check.queue_name(req.queue)
    q = engine.queues.get(name) or Queue(name)
    before = q.settings.broker
    after = _changed(before or Policy(created=call.now), req.policy)
    _check(call, q, before, after)
    q = engine.queue(name)
    control.configure(engine, q, broker=after)
    overflow.let_in(engine, q, call.now)
    engine.match(q, call.now)
    return Data({"policy": _shown(after)})


def _changed(policy: Policy, asked: Any) -> Policy:
    """Return a policy with changes.

    Raises:
        BadRequest: they cannot be read, or make no sense.
    """
    try:
        said = msgspec.convert(asked, Changes)
    except msgspec.ValidationError as problem:
        raise BadRequest(f"policy: {problem}") from None
    given = {n: v for n, v in msgspec.structs.asdict(said).items() if v is not UNSET}
    for name, known in (("mode", MODES), ("overflow", STRATEGIES)):
        if name in given:
            if given[name] not in known:
                raise BadRequest(f"policy: {name} must be one of {', '.join(known)}")
            given[name] = known[given[name]]
    for name in ("ack_wait", "retry_base", "retry_cap"):
        if name in given:
            given[name] = int(given[name])
    after = msgspec.structs.replace(policy, decided=True, **given)
    if after.overflow is Overflow.REDIRECT_TO_DLQ and not after.dead_letters:
        raise BadRequest("policy: overflow redirect-to-dlq needs deadLetters")
    return after


def _check(call: Call, q: Queue, before: Policy | None, after: Policy) -> None:
    """Refuse what would lose sight of messages.

    Raises:
        BadRequest
    """
    if before is None and any(q.counts):
        raise BadRequest(
            f"Queue {q.name} holds jobs: only an empty job queue can become a broker's"
        )
    if before is None:
        return
    if after.mode is not before.mode and (any(q.counts) or q.subscriptions):
        raise BadRequest(
            f"The mode of {q.name} cannot change while it holds messages or has subscribers"
        )
    dropped = before.dead_letters and not after.dead_letters
    if dropped and next(iter(graves.listed(call.engine, q.name)), None) is not None:
        raise BadRequest(f"Queue {q.name} has dead letters: retry or purge them first")


def _shown(policy: Policy | None) -> dict[str, Any]:
    kind, policy = ("jobs", JOBS) if policy is None else ("broker", policy)
    return {
        "kind": kind,
        "mode": policy.mode.name.replace("_", "-").lower(),
        "maxSize": policy.max_size,
        "ttl": policy.ttl,
        "overflow": policy.overflow.name.replace("_", "-").lower(),
        "deadLetters": policy.dead_letters,
        "deadLetterQueue": policy.dead_letter_queue,
        "maxAttempts": policy.max_attempts,
        "ackWait": policy.ack_wait,
        "retryBase": policy.retry_base,
        "retryCap": policy.retry_cap,
        "fullWait": policy.full_wait,
    }
