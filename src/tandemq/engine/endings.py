"""The end of a message: everybody who waits for it is told, in one place.

Whatever ends a message, well or badly, calls ``ended`` after it has moved to DONE, DEAD or GONE.
"""

from __future__ import annotations

from tandemq.engine import flows, repeats
from tandemq.engine.core import Engine
from tandemq.engine.deadletters import buried
from tandemq.engine.watches import told
from tandemq.model.broker import Reason
from tandemq.model.message import Message, State

DONE, DEAD, GONE = State.DONE, State.DEAD, State.GONE


def ended(engine: Engine, m: Message, now: int, *, well: bool, parent_told: bool = True) -> None:
    """Tell of an end: ``well`` if the message was completed, whether or not it is kept.

    ``parent_told`` is False where an operator took a message away: its parent goes on waiting for
    it, whatever the policy for failed children says (bunqueue quirk 52).
    """
    q = engine.queues.get(m.queue)
    waited = engine.watches or engine.dependents.waiting or (q is not None and q.ring)
    if not waited and m.repeat is None and m.state is DONE:
        return  # nearly always: nobody waits for anything
    _tell(engine, m, now, well=well)
    if engine.dependents.waiting or m.state is GONE:
        for parent in flows.settle(engine, m, now, well=well, parent_told=parent_told):
            _tell(engine, parent, now, well=False)  # its own parent has been told


def expired(engine: Engine, m: Message, now: int, *, popped: bool = False) -> None:
    """A waiting message is past its time to live: it goes, and those who wait for it know."""
    engine.counters.expired += 1
    told = {"ttl": m.options.ttl, "age": now - m.created}
    engine.remark("job:expired", m.queue, now, queue=m.queue, jobId=m.id, **told)
    if m.letter is not None:
        from tandemq.engine import dlq  # which builds on this module

        dlq.end(engine, m, now, Reason.MESSAGE_EXPIRED, popped=popped)
        return
    engine.shift(m, "expire", GONE, popped=popped)
    ended(engine, m, now, well=False, parent_told=False)


def _tell(engine: Engine, m: Message, now: int, *, well: bool) -> None:
    if engine.watches:
        told(engine, m, well=well)
    if m.state is DEAD:
        buried(engine, m)
    if well and m.repeat is not None:
        repeats.succeed(engine, m, now)
    q = engine.queues.get(m.queue)
    if q is not None and q.ring:
        engine.match(q, now)  # its place may be what somebody waits for
