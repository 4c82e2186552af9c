"""Why a message is not running: what holds it up now, then what would hold it up next.

Asking changes nothing, and looks at a bounded number of messages however many there are. What is
found comes as codes and figures; how they read is the business of whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import UNSET, Struct

from tandemq.engine import admission, deadletters
from tandemq.engine.core import Engine
from tandemq.engine.fanout import Fanout
from tandemq.engine.lane import NO_GROUP, NO_RULE, Lane, Terms
from tandemq.engine.queue import Queue
from tandemq.engine.timers import FAR
from tandemq.model.broker import Mode
from tandemq.model.message import Message, Run, State
from tandemq.model.policy import (
    deadline,
    expires,
    lease_of,
    most_interruptions,
    most_stalls,
)

PARKED, DELAYED, READY, LEASED, DONE, DEAD = (
    State.PARKED,
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
)
LOOK = 1_000  # messages that are looked at to find a place, or what is stuck
NAMED = 20  # messages that are named


class Reason(Struct, frozen=True):
    """One thing that is to be known about a message that should run."""

    code: str
    blocks: bool = True  # it alone keeps the message from running now
    until: int | None = None  # a moment at which time alone ends it; None: time does not
    facts: dict[str, Any] = {}
    jobs: tuple[tuple[str, Message | None], ...] = ()  # named by their ids; None: not there


class Count(Struct, frozen=True):
    """How often something has happened to a message, and how often it may."""

    count: int
    limit: int  # the message is a dead letter when it is reached; 0: there is none


def explain(engine: Engine, m: Message, now: int) -> list[Reason]:
    """Return why a message is not running, what counts most first; if it runs, who has it."""
    q, state = engine.queues[m.queue], m.state
    if state is DONE:
        found = [Reason("completed", facts={"at": _run(m).finished})]
    elif state is DEAD:
        found = [*_failed(engine, q, m, now)]
    elif state is LEASED:
        found = [_active(engine, q, m)]
    else:
        found = [*_own(engine, m, now), *_gates(engine, q, m, now)]
        if state is READY:
            found += [*_demand(engine, q, m, now), _place(q, m)]
        if (end := expires(m)) is not None:
            found.append(Reason("ttl", blocks=False, until=end))
    found += _key(engine, m, now)
    return found


def unknown(engine: Engine, id: str) -> Reason:
    """Return what is known of an id that names no message."""
    return Reason("removed" if engine.dependents.remembers(id) else "unknown")


def counters(engine: Engine, m: Message) -> dict[str, Count]:
    """Return how often a message has failed, stalled and lost its connection."""
    run = m.run or Run()
    stall = engine.queues[m.queue].settings.stall
    return {
        "failures": Count(m.attempts, m.options.max_attempts),
        "crashes": Count(run.stalls, most_stalls(m.options, stall)),
        "interruptions": Count(run.interruptions, most_interruptions(m.options)),
    }


def _run(m: Message) -> Run:
    return m.run or Run()


# -- it has ended, or it runs ----------------------------------------------------------------------


def _failed(engine: Engine, q: Queue, m: Message, now: int) -> Iterator[Reason]:
    run, rules = _run(m), q.settings.burial
    facts = {"at": run.finished, "cause": run.cause or "unknown", "error": run.error}
    yield Reason("failed", facts={**facts, "attempts": m.attempts})
    if not deadletters.may_return(engine, m, now):
        yield Reason("key-taken", facts={"key": m.options.unique_key})
    elif (at := deadletters.next_retry(m, rules)) is not None:
        yield Reason("automatic-retry", blocks=False, until=at)
    if (at := deadletters.expires(m, rules)) is not None:
        yield Reason("forgotten", blocks=False, until=at)


def _active(engine: Engine, q: Queue, m: Message) -> Reason:
    run, lease = lease_of(m)
    facts = {
        "since": run.started,
        "heartbeat": run.heartbeat,
        "progress": run.progress,
        "leasedUntil": None if lease.token is None else lease.until,
        "renewals": lease.renewals,
        "connection": lease.conn,
        "workers": [w.id for w in islice(engine.workers.of(lease.conn), NAMED)],
        **_subscriber(q, m),
    }
    return Reason("active", blocks=False, until=deadline(m, q.settings.stall), facts=facts)


def _subscriber(q: Queue, m: Message) -> dict[str, str]:
    """Name the subscriber that holds a message, if it is one."""
    if m.lease is None or not m.lease.delivered:
        return {}
    holder = next((sub for sub in q.subscriptions if sub.conn == m.lease.conn), None)
    return {} if holder is None else {"subscriber": holder.name}


# -- what concerns this message alone --------------------------------------------------------------


def _own(engine: Engine, m: Message, now: int) -> Iterator[Reason]:
    if m.seq in engine.fanouts:
        yield _out(engine.fanouts[m.seq])
    elif m.state is PARKED:
        yield from _waits(engine, m, now)
    elif m.state is DELAYED and _backs_off(m):
        tried = _run(m).tries[-1]
        facts = {"attempts": m.attempts, "maxAttempts": m.options.max_attempts}
        yield Reason("back-off", until=m.due, facts={**facts, "error": tried.error})
    elif m.state is DELAYED:
        yield Reason("delayed", until=m.due)


def _out(fanout: Fanout) -> Reason:
    """Tell who has a copy and has not answered, those first whom it has reached."""
    copies = sorted(fanout.copies.values(), key=lambda copy: not copy.out)
    facts = {
        "count": len(copies),
        "waiting": sum(not copy.out for copy in copies),
        "acknowledged": fanout.acked,
        "failed": fanout.failed[:NAMED],
        "subscribers": [copy.sub.name for copy in copies[:NAMED]],
    }
    until = min((copy.until for copy in copies if copy.out), default=None)
    return Reason("copies", until=until, facts=facts)


def _backs_off(m: Message) -> bool:
    """Whether a delay follows a failed attempt, and not a run that was put off."""
    run = _run(m)
    last = next((step.at for step in reversed(run.history) if step.state is LEASED), None)
    return bool(run.tries) and m.attempts > 0 and run.tries[-1].started == last


def _waits(engine: Engine, m: Message, now: int) -> Iterator[Reason]:
    open = m.links.open if m.links is not None else ()
    owner = _leader(engine, m, now)
    if open:
        jobs = [(id, engine.messages.get(id)) for id in islice(open, LOOK)]
        yield Reason("dependencies", facts={"count": len(open)}, jobs=tuple(jobs[:NAMED]))
        stuck = [(id, on) for id, on in jobs if on is None or on.state is DEAD]
        if stuck:
            yield Reason("stuck", facts={"count": len(stuck)}, jobs=tuple(stuck[:NAMED]))
    elif owner is None:
        yield Reason("no-children")
    if owner is not None:
        jobs = [(owner, engine.messages.get(owner))]
        yield Reason("follows", facts={"key": m.options.unique_key}, jobs=tuple(jobs))


def _leader(engine: Engine, m: Message, now: int) -> str | None:
    """Return whose end a message waits for because that one has its unique key."""
    key = m.options.unique_key
    holder = engine.keyring.holder(engine, m.queue, key, now) if key is not None else None
    return holder.id if holder is not None and holder.next == m.id else None


def _key(engine: Engine, m: Message, now: int) -> Iterator[Reason]:
    key = m.options.unique_key
    holder = engine.keyring.holder(engine, m.queue, key, now) if key is not None else None
    if holder is not None:
        facts = {"key": key, "owner": holder.id, "own": holder.id == m.id, "next": holder.next}
        yield Reason("unique-key", blocks=False, until=holder.until, facts=facts)


# -- what shuts its queue or its group -------------------------------------------------------------


def _gates(engine: Engine, q: Queue, m: Message, now: int) -> Iterator[Reason]:
    if not engine.granting:
        yield Reason("stopping")
    if q.settings.paused:
        yield Reason("paused", facts={"queue": q.name})
    yield from _group(q, m, now)
    if admission.full(q):
        facts = {"limit": q.settings.concurrency, "active": len(q.members[LEASED])}
        yield Reason("concurrency", facts=facts)
    rate, bucket = q.settings.rate, admission.bucket_at(q, now)
    if rate is not None and bucket is not None:
        opens = min(bucket.opens_at(m.options.cost), FAR if rate.ends is None else rate.ends)
        if opens > now:
            facts = {"max": rate.max, "duration": rate.duration, "cost": m.options.cost}
            yield Reason("rate", until=None if opens >= FAR else opens, facts=facts)


def _group(q: Queue, m: Message, now: int) -> Iterator[Reason]:
    lanes, group = q.groups, m.options.group
    if lanes is None:
        return
    rule = lanes.rules.get(NO_GROUP if group is None else group, NO_RULE)
    if rule.paused:
        yield Reason("group-paused", facts={"group": group})
    if rule.closed_until > now:
        yield Reason("group-closed", until=rule.closed_until, facts={"group": group})
    lane = lanes.lanes.get(group) if group is not None else None
    if lane is not None:
        yield from _lane(lane, [t for t in q.ring.terms if _takes(t, group)], now)


def _lane(lane: Lane, terms: list[Terms | None], now: int) -> Iterator[Reason]:
    """Tell what no waiting pull may exceed; where none waits, what the group's own rule says."""
    rule = lane.rule
    facts: dict[str, Any] = {"group": lane.name}
    most = _highest([None if t is None else t.concurrency for t in terms], rule.concurrency)
    if most is not None and lane.leased >= most:
        yield Reason("group-concurrency", facts={**facts, "limit": most, "active": lane.leased})
    most = _highest([None if t is None else t.max for t in terms], rule.max)
    if most is not None and lane.window_ends > now and lane.used >= most:
        facts |= {"max": most, "used": lane.used}
        yield Reason("group-rate", until=lane.window_ends, facts=facts)


def _highest(limits: list[int | None], rule: int | None) -> int | None:
    """Return the highest limit of those who ask, None if one of them has none.

    The limit of a rule replaces theirs, and holds where nobody asks.
    """
    given = [limit for limit in limits if limit is not None]
    if len(given) < len(limits):
        return None
    return rule or max(given, default=None)


# -- whose turn it is, and whether anybody wants it ------------------------------------------------


def _place(q: Queue, m: Message) -> Reason:
    ahead, exact = q.ready.ahead(m, LOOK)
    facts: dict[str, Any] = {"ahead": ahead, "exact": exact}
    if m.options.group is None or q.groups is None:
        return Reason("place", blocks=ahead > 0, facts=facts)
    others = len(q.groups.plain)
    facts |= {"group": m.options.group, "ungrouped": others}
    return Reason("place-in-group", blocks=ahead + others > 0, facts=facts)


def _demand(engine: Engine, q: Queue, m: Message, now: int) -> Iterator[Reason]:
    facts: dict[str, Any] = {"queue": q.name, "active": len(q.members[LEASED])}
    if q.subscriptions and (q.fans_out or not any(c.willing for c in q.ring)):
        yield from _no_window(q, facts)
    elif q.fans_out:
        yield Reason("no-subscriber", facts=facts)
    elif not q.ring:
        workers = engine.workers.on(q.name, now)
        facts |= {"workers": len(workers)}
        yield Reason("no-pull" if workers else "no-worker", facts=facts)
    elif not any(_takes(terms, m.options.group) for terms in q.ring.terms):
        yield Reason("other-groups", facts={**facts, "pulls": len(q.ring)})


def _no_window(q: Queue, facts: dict[str, Any]) -> Iterator[Reason]:
    """Tell that every subscriber holds as much as it may, or does not read; who fans out waits
    for neither, unless nobody reads and nothing need be acknowledged.
    """
    policy = q.settings.broker
    subs = list(islice(q.subscriptions, LOOK))
    stalled = [sub for sub in subs if sub.stalled]
    if q.fans_out and (
        len(stalled) < len(subs) or (policy is not None and policy.mode is Mode.FAN_OUT_WITH_ACK)
    ):
        return
    yield Reason(
        "no-window",
        facts={
            **facts,
            "count": len(q.subscriptions),
            "held": sum(sub.held for sub in subs),
            "stalled": len(stalled),
            "subscribers": [sub.name for sub in subs[:NAMED]],
        },
    )


def _takes(terms: Terms | None, group: str | None) -> bool:
    """Whether a pull asks for messages of this group at all."""
    wanted = UNSET if terms is None else terms.affinity
    return wanted is UNSET or wanted == group
