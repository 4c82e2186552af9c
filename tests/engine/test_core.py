"""The engine's inner movements keep every index true, and outcomes tell all that changed."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, answers, hold, make_engine, put, ready, token_of, wait, where

from tandemq.engine import settle
from tandemq.engine.core import Engine
from tandemq.engine.finished import Rules
from tandemq.engine.lifecycle import IllegalMove
from tandemq.model.message import Lease, Message, Run, State

NEW, PARKED, DELAYED, READY, LEASED, DONE, DEAD, GONE = State


def test_a_new_engine_is_quiet_and_empty() -> None:
    engine = Engine(new_id=lambda now: "id", uniform=lambda: 0.5)
    assert engine.quiet
    assert engine.rules == Rules()
    assert engine.queues == engine.messages == engine.leased_by == engine.waiting == {}
    assert (engine.seq, engine.granting, engine.owes_sync) == (0, True, False)


def test_a_queue_begins_with_the_first_trace_and_ends_with_the_last() -> None:
    engine = make_engine()
    q = engine.queue("q")
    assert engine.queue("q") is q
    engine.tidy(q)
    assert engine.queues == {}
    put(engine)
    q = engine.queues["q"]
    engine.tidy(q)
    assert engine.queues == {"q": q}


def test_an_outcome_holds_what_changed_once_and_is_handed_over_once() -> None:
    engine = make_engine()
    m = put(engine)
    settle.ack(engine, m.id, token_of(hold(engine)), NOW)
    engine.record("key", b"value")
    engine.record("key", b"last")
    assert not engine.quiet
    outcome = engine.take()
    assert (outcome.changed, outcome.facts, outcome.effects) == ({1: m}, {"key": b"last"}, [])
    assert engine.quiet
    assert engine.take().changed == {}


@pytest.mark.parametrize("what", ["changed", "fact", "effect"])
def test_whatever_waits_to_be_taken_makes_it_not_quiet(what: str) -> None:
    engine = make_engine()
    if what == "changed":
        engine.touched(Message("m", "q", "n", b"", 1, 0, 0))
    elif what == "fact":
        engine.record("key", None)
    else:
        engine.answer(wait(engine, "r"), [])
    assert not engine.quiet
    engine.take()
    assert engine.quiet


def test_the_table_is_asked_before_anything_is_called_moved() -> None:
    engine = make_engine()
    m = put(engine)
    with pytest.raises(IllegalMove):
        engine.shift(m, "ack", LEASED)


@pytest.mark.parametrize("state", [PARKED, DELAYED, READY, LEASED, DONE, DEAD], ids=str)
def test_a_message_of_any_state_is_admitted_and_evicted_without_a_trace(state: State) -> None:
    engine = make_engine(retention=1_000)
    lease = Lease("t", NOW + 500, 500, 7) if state is LEASED else None
    run = Run(NOW, NOW, NOW, result=b"r") if state >= LEASED else None
    m = Message("m", "q", "n", b"body", 41, NOW, NOW + 9, 3, state=state, lease=lease, run=run)
    engine.admit(m)
    assert engine.quiet
    assert engine.messages == {"m": m}
    assert engine.seq == 41
    assert where(engine) == {state.name: 1}
    assert engine.leased_by == ({7: {41: m}} if lease else {})
    assert engine.finished.count == (state is DONE)
    engine.evict(m)
    assert engine.messages == engine.queues == engine.leased_by == {}
    assert (m.state, engine.finished.count, engine.finished.size_bytes) == (GONE, 0, 0)
    assert engine.quiet
    assert engine.seq == 41
    engine.evict(m)  # a second time there is nothing to do
    assert engine.timers.next_wake() is None


def test_a_message_that_was_never_accepted_cannot_be_evicted() -> None:
    engine = make_engine()
    m = Message("m", "q", "n", b"", 1, 0, 0)
    engine.evict(m)
    assert m.state is NEW


def test_evicting_an_old_message_leaves_the_new_one_of_that_id() -> None:
    engine = make_engine()
    old = put(engine, "mine")
    del engine.messages["mine"]
    new = put(engine, "mine")
    engine.evict(old)
    assert engine.messages == {"mine": new}
    assert ready(engine) == ["mine"]
    engine.shift(new, "cancel", GONE)
    assert engine.messages == {}


def test_an_old_message_that_goes_leaves_the_new_one_of_that_id() -> None:
    engine = make_engine()
    old = put(engine, "mine")
    del engine.messages["mine"]
    new = put(engine, "mine")
    engine.shift(old, "cancel", GONE)
    assert engine.messages == {"mine": new}


def test_numbers_go_on_above_the_highest_that_was_read() -> None:
    engine = make_engine()
    for seq in (7, 3):
        engine.admit(Message(str(seq), "q", "n", b"", seq, 0, 0, state=READY))
    assert put(engine).seq == 8


def test_a_retired_token_ends_with_the_next_lease() -> None:
    engine = make_engine()
    m = put(engine)
    m.run = Run(retired="old")
    hold(engine)
    assert m.run.retired is None


# -- the matchmaker --------------------------------------------------------------------------------


def test_one_match_serves_everybody_it_can() -> None:
    engine = make_engine()
    for conn, count in ((1, 2), (2, 1), (3, 5), (4, 1)):
        wait(engine, f"r{conn}", conn=conn, count=count)
    engine.granting = False
    for id in "abcd":
        put(engine, id)
    engine.granting = True
    engine.match(engine.queues["q"], NOW)
    assert answers(engine) == {"r1": ["a", "b"], "r2": ["c"], "r3": ["d"]}
    assert [c.req for c in engine.queues["q"].ring] == ["r4"]
    assert list(engine.waiting) == [4]


def test_an_answer_leaves_the_other_pulls_of_its_connection() -> None:
    engine = make_engine()
    c, other = wait(engine, "r1", conn=1), wait(engine, "r2", conn=1)
    engine.answer(c, [])
    assert engine.waiting == {1: {other: None}}
    assert answers(engine) == {"r1": []}


# -- events ------------------------------------------------------------------------------------


def test_events_are_built_only_while_somebody_listens() -> None:
    engine = make_engine()
    put(engine, "quietly")
    engine.say("pushed", engine.messages["quietly"], NOW)
    assert engine.take().events == []
    engine.listening = True
    put(engine, "m", priority=1)
    settle.ack(engine, "m", token_of(hold(engine)), NOW, b"r")
    events = engine.take().events
    assert [(e.type, e.queue, e.id, e.at) for e in events] == [
        ("pushed", "q", "m", NOW),
        ("pulled", "q", "m", NOW),
        ("completed", "q", "m", NOW),
    ]
    assert events[-1].fields == {"data": b"r"}
    assert engine.take().events == []
