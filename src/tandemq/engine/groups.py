"""Rules for the groups of a queue: pause, limits, closures, weights; and giving back for later.

A rule exists apart from the messages it is for: it is stored as a fact of its own, so that setting
one costs the same however many there are. Counts and levels are not stored.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tandemq.engine import admission, settle
from tandemq.engine.core import Engine
from tandemq.engine.lane import NO_GROUP, NO_RULE, GroupRule
from tandemq.engine.queue import Queue
from tandemq.engine.timeline import end_run
from tandemq.model.message import Message, State
from tandemq.model.policy import cut, lease_of

READY = State.READY

FACT = "group/"  # + queue + NUL + group: the key of a rule; no group has a NUL in its name
NO_WINDOW = -2  # ms until a group's rate limit begins anew, where none has begun

_decode = msgspec.msgpack.Decoder(GroupRule).decode


def rule_of(engine: Engine, queue: str, group: str) -> GroupRule:
    """Return what is set for a group."""
    q = engine.queues.get(queue)
    return NO_RULE if q is None or q.groups is None else q.groups.rules.get(group, NO_RULE)


def change(engine: Engine, queue: str, group: str, now: int, **changes: object) -> bool:
    """Change the rule of a group and remember it; True when that made a difference.

    Those who wait get what has opened.
    """
    before = rule_of(engine, queue, group)
    rule = replace(before, **changes)
    if rule == before:
        return False
    q = engine.queue(queue)
    _set(engine, q, group, rule)
    engine.match(q, now)
    engine.tidy(q)
    return True


def close(engine: Engine, queue: str, group: str, span: int, now: int) -> None:
    """Hand out nothing of a group for ``span`` ms, whatever pulls ask for.

    The group ``NO_GROUP`` stands for what has none.
    """
    change(engine, queue, group, now, closed_until=now + span)


def forget_rules(engine: Engine, q: Queue) -> None:
    """Forget every rule of a queue's groups."""
    for group in list(q.groups.rules) if q.groups is not None else ():
        _set(engine, q, group, NO_RULE)


def lapse(engine: Engine, q: Queue, now: int) -> None:
    """Open what time has opened, and forget closures that are over."""
    lanes = q.groups
    if lanes is None:
        return
    lanes.advance(now)
    lapsed, lanes.lapsed = lanes.lapsed, []
    for group in dict.fromkeys(lapsed):
        rule = lanes.rules.get(group)
        if rule is not None and 0 < rule.closed_until <= now:
            _set(engine, q, group, replace(rule, closed_until=0))


def _set(engine: Engine, q: Queue, group: str, rule: GroupRule) -> None:
    admission.open_lanes(q).set_rule(group, rule)
    admission.arm(engine, q)
    fact = None if rule == NO_RULE else msgspec.msgpack.encode(rule)
    engine.record(f"{FACT}{q.name}\0{group}", fact)


def restore(engine: Engine, name: str, fact: bytes | None) -> None:
    """Take the rule of a group as it was stored; None is no rule. ``name`` is the key's rest."""
    queue, _, group = name.rpartition("\0")
    q = engine.queue(queue)
    admission.open_lanes(q).set_rule(group, NO_RULE if fact is None else _decode(fact))
    admission.arm(engine, q)
    admission.ring_at(engine, q, 0)  # somebody may have waited for what is undone now
    engine.tidy(q)


# -- reading -------------------------------------------------------------------------------------


def waiting(engine: Engine, queue: str, group: str | None = None) -> int:
    """Return how many messages of a group, or of all groups, are ready or delayed."""
    q = engine.queues.get(queue)
    if q is None or q.groups is None:
        return 0
    return q.groups.grouped + q.groups.delayed if group is None else q.groups.waiting(group)


def leased(engine: Engine, queue: str, group: str) -> int:
    """Return how many messages of a group somebody holds."""
    q = engine.queues.get(queue)
    lane = q.groups.lanes.get(group) if q is not None and q.groups is not None else None
    return lane.leased if lane is not None else 0


def opens_in(engine: Engine, queue: str, group: str, used: float | None, now: int) -> int:
    """Return the ms until a closure or the rate window of a group is over, -2 for neither.

    With ``used`` it is 0 while less than that was handed out in the window.
    """
    rule = rule_of(engine, queue, group)
    if rule.closed_until > now:
        return rule.closed_until - now
    q = engine.queues.get(queue)
    lane = q.groups.lanes.get(group) if q is not None and q.groups is not None else None
    if lane is None or lane.window_ends <= now:
        return NO_WINDOW
    return lane.window_ends - now if used is None or lane.used >= used else 0


# -- giving back ---------------------------------------------------------------------------------


def hold_back(
    engine: Engine, id: str, token: str | None, span: int, now: int, error: str | None = None
) -> bool:
    """Give a message back uncharged and close its group for ``span`` ms; False as for ``fail``.

    For workers that were told "not now" by what they call: the message takes its old place, and
    its group waits, no other. Without a group that is all messages of the queue without one.

    Raises:
        NotLeased, TokenRequired, WrongToken
    """
    m, how = settle.claim(engine, id, token)
    if how is not settle.HELD:
        return False
    _give_back(engine, m, error)
    if engine.listening:
        engine.say("waiting", m, now, prev="active")
    close(engine, m.queue, m.options.group or NO_GROUP, span, now)
    engine.match(engine.queues[m.queue], now)  # with a span of 0 nothing has closed
    return True


def _give_back(engine: Engine, m: Message, error: str | None) -> None:
    run, _ = lease_of(m)
    end_run(run)
    run.error = run.error if error is None else cut(error)
    run.started = 0
    engine.shift(m, "release", READY)
