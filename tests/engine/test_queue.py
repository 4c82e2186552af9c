"""One queue: what it holds, what it counts, and when nothing would be lost without it."""

from __future__ import annotations

from tests.engine.making import hold, make_engine, put, wait, where

from tandemq.engine import control, settle
from tandemq.engine.queue import NO_SETTINGS, Queue, Settings
from tandemq.model.message import State
from tandemq.model.policy import Stall

READY, DELAYED = State.READY, State.DELAYED


def test_a_new_queue_is_open_blank_and_empty() -> None:
    q = Queue("q")
    assert (q.name, q.open, q.blank, q.settings) == ("q", True, True, NO_SETTINGS)
    assert sum(q.counts) == len(q.ready) == len(q.ring) == q.prioritized == 0


def test_messages_are_counted_by_state() -> None:
    engine = make_engine()
    put(engine, "later", delay=5)
    for id in "abcd":
        put(engine, id)
    settle.ack(engine, hold(engine).id, "id-1", 1)
    settle.fail(engine, hold(engine).id, "id-2", 1, unrecoverable=True)
    hold(engine)
    assert where(engine) == {"DELAYED": 1, "READY": 1, "LEASED": 1, "DONE": 1, "DEAD": 1}


def test_the_messages_of_a_state_are_listed_in_the_order_of_delivery_or_arrival() -> None:
    engine = make_engine()
    for id, priority in (("a", 0), ("b", 5), ("c", 0)):
        put(engine, id, priority=priority)
        put(engine, f"{id}-later", delay=9 - priority)
    q = engine.queues["q"]
    assert [m.id for m in q.within(READY)] == ["b", "a", "c"]
    assert [m.id for m in reversed(q.within(READY))] == ["c", "a", "b"]
    assert [m.id for m in q.within(DELAYED)] == ["a-later", "b-later", "c-later"]
    assert [m.id for m in reversed(q.within(DELAYED))] == ["c-later", "b-later", "a-later"]


def test_ready_messages_with_a_priority_are_counted_wherever_they_go() -> None:
    engine = make_engine()
    for id, priority in (("a", 5), ("b", 0), ("c", -1), ("d", 1)):
        put(engine, id, priority=priority, backoff=0)
    q = engine.queues["q"]
    assert q.prioritized == 2
    a = hold(engine)
    assert (a.id, q.prioritized) == ("a", 1)
    settle.fail(engine, "a", "id-1", 1)
    assert q.prioritized == 2
    engine.shift(a, "discard", State.DEAD)
    assert q.prioritized == 1


def test_a_queue_is_blank_when_nothing_would_be_lost_without_it() -> None:
    engine = make_engine()
    q = engine.queue("q")
    assert q.blank
    m = put(engine)
    assert not q.blank
    hold(engine)
    assert not q.blank
    settle.ack(engine, m.id, "id-2", 1, remove=True)
    assert q.blank
    c = wait(engine, "r", queue="q")
    q = engine.queues["q"]
    assert not q.blank
    q.ring.drop(c)
    assert q.blank
    control.pause(engine, "q")
    assert not q.blank


def test_a_paused_queue_is_closed() -> None:
    q = Queue("q")
    q.settings = Settings(paused=True)
    assert not q.open
    q.settings = Settings(stall=Stall(enabled=False))
    assert q.open
