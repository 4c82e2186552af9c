"""PULL and PULLB: take jobs from a queue, waiting for them if asked to."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from tandemq.commands import fields as check
from tandemq.commands.call import LATER, Call, Later, Pulled
from tandemq.commands.table import ABSENT, Permission, Request, command, together
from tandemq.engine import consume, usual
from tandemq.engine.consumers import Consumer
from tandemq.engine.lane import NO_TERMS, Terms
from tandemq.model.errors import BadRequest
from tandemq.model.policy import LEASE

WAIT_LIMIT = 60_000  # ms
COUNT_LIMIT = 1000
ROOM = 1 << 18  # bytes of jobs that are taken before anybody looks whether their taker reads

Positive = Annotated[int, Meta(ge=1, le=check.SAFE)]
Wait = Annotated[float, Meta(ge=0, le=WAIT_LIMIT)] | None


class Limit(Struct, frozen=True):
    """At most ``max`` jobs of one group in ``duration`` ms."""

    max: Positive
    duration: Positive


class Group(Struct, frozen=True):
    """What a pull asks of groups: whom it takes from, and limits for each group."""

    affinity: str | UnsetType | None = UNSET  # only this group; null: only jobs without one
    concurrency: Positive | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class Pull(Request, tag="PULL", kw_only=True):
    """Take the next job of a queue."""

    queue: str
    timeout: Wait = 0
    owner: Any = None  # anything truthy asks for a lease with a token
    lock_ttl: float | None = None  # ms of that lease
    detach: Any = None  # without an owner: the job survives this connection
    group: Group | UnsetType = UNSET

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Any:
        return cls(**_read_pull(fields), detach=fields.get("detach"))


class PullMany(Request, tag="PULLB", kw_only=True):
    """Take up to ``count`` jobs of a queue."""

    queue: str
    count: Annotated[int, Meta(ge=1, le=COUNT_LIMIT)] | None = None
    timeout: Wait = 0
    owner: Any = None
    lock_ttl: float | None = None
    group: Group | UnsetType = UNSET

    @classmethod
    def read(cls, fields: dict[str, Any]) -> PullMany:
        found = _read_pull(fields)
        count = check.number(fields, "count", 1, COUNT_LIMIT, None)
        return cls(**found, count=None if count is None else math.ceil(count))


@command(Permission.SUBSCRIBE, keeps=False, http="GET /queues/{queue}/jobs 200")
def pull(req: Pull, call: Call) -> Pulled | Later:
    """Take the next job, waiting up to ``timeout`` ms for one."""
    return _pull(req, call, 1, False, bool(req.detach) and not req.owner)


@together(Pull)
def pull_together(reqs: list[Pull], call: Call) -> list[Pulled]:
    """Take the next jobs of one queue which asks nothing else, while there are some."""
    engine, now, queue = call.engine, call.now, reqs[0].queue
    q = engine.queues.get(queue)
    if q is None or q.limited or not q.open or not engine.granting:
        return []
    first, conn = reqs[0], call.caller.id
    if first.group is not UNSET or first.detach:
        return []
    owned = bool(first.owner)
    span = _span_of(first) if owned else None
    most = next((i for i, req in enumerate(reqs) if not _alike(req, first)), len(reqs))
    taken = usual.lease(engine, q, most, ROOM, conn, span, now)
    room = ROOM - sum(len(m.body) for m in taken)
    while len(taken) < most and room >= 0 and (m := engine.next_in_line(q, now)) is not None:
        engine.lease(m, conn, span, now)
        room -= len(m.body)
        taken.append(m)
    return [Pulled([m], False, owned) for m in taken]


def _alike(req: Pull, first: Pull) -> bool:
    """Whether a pull may run with another, which has neither group nor ``detach``."""
    if req.queue != first.queue or req.owner != first.owner or req.lock_ttl != first.lock_ttl:
        return False
    return req.group is UNSET and not req.detach


@command(Permission.SUBSCRIBE, keeps=False, http="POST /queues/{queue}/jobs/pull-batch 200")
def pull_many(req: PullMany, call: Call) -> Pulled | Later:
    """Take up to ``count`` jobs, waiting up to ``timeout`` ms for the first."""
    return _pull(req, call, req.count or 0, True, False)


def _pull(req: Pull | PullMany, call: Call, count: int, many: bool, detach: bool) -> Pulled | Later:
    queue = req.queue
    check.good_queue(queue)
    owned, conn, now = bool(req.owner), call.caller.id, call.now
    span = None
    if owned:
        span = _span_of(req)
    terms = None if req.group is UNSET else _terms_of(req.group)
    taken = consume.take(call.engine, queue, None if detach else conn, count, span, now, terms)
    if many and taken:
        call.remark("batch:pulled", queue, queue=queue, count=len(taken))
    if taken or not req.timeout or not count:
        return Pulled(taken, many, owned)
    until, asked = now + int(req.timeout), (req.req_id, many, owned)
    consume.wait(call.engine, Consumer(conn, queue, count, asked, span, detach, until, terms=terms))
    return LATER


def _terms_of(group: Group) -> Terms | None:
    affinity = group.affinity
    if isinstance(affinity, str) and len(affinity) > check.GROUP_LENGTH:
        return _terms.__wrapped__(group)  # no group has such a name, so nobody asks again
    return _terms(group)


@lru_cache(maxsize=1024)
def _terms(group: Group) -> Terms | None:
    limit = None if group.limit is UNSET else group.limit
    terms = Terms(
        group.affinity,
        None if group.concurrency is UNSET else group.concurrency,
        limit.max if limit else None,
        limit.duration if limit else None,
    )
    return None if terms == NO_TERMS else terms


def _read_group(value: Any) -> Group:
    if not isinstance(value, dict):
        raise BadRequest("group must be an object")
    asked = {name: item for name, item in value.items() if item is not UNSET}
    affinity = asked.get("affinity", UNSET)
    if not (affinity is UNSET or affinity is None or isinstance(affinity, str)):
        raise BadRequest("group.affinity must be a string or null")
    concurrency: int | UnsetType = UNSET
    if "concurrency" in asked:
        concurrency = check.positive(asked["concurrency"], "group.concurrency")
    limit: Limit | UnsetType = UNSET
    if "limit" in asked:
        if not isinstance(asked["limit"], dict):
            raise BadRequest("group.limit must be an object")
        most, duration = asked["limit"].get("max"), asked["limit"].get("duration")
        limit = Limit(
            check.positive(most, "group.limit.max"),
            check.positive(duration, "group.limit.duration"),
        )
    return Group(affinity, concurrency, limit)


def _span_of(req: Pull | PullMany) -> int:
    """Return the ms a lease is asked for; what is no span asks for the default."""
    ttl = req.lock_ttl
    return LEASE if ttl is None or not 0 < ttl <= check.YEAR else max(1, int(ttl))


def _read_pull(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "queue": check.queue_name(fields.get("queue")),
        "timeout": check.number(fields, "timeout", 0, WAIT_LIMIT, 0),
        "owner": fields.get("owner"),
        "lock_ttl": check.loose_number(fields.get("lockTtl")),
        "group": _read_group(fields["group"]) if "group" in fields else UNSET,
        "req_id": fields.get("reqId", ABSENT),
    }
