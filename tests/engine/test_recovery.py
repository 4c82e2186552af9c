"""Taking in what a store holds: after a crash, and when a batch could not be written."""

from __future__ import annotations

from copy import deepcopy

import pytest
from tests.engine.making import (
    NOW,
    answers,
    hold,
    make_engine,
    pass_time,
    put,
    ready,
    token_of,
    wait,
    where,
)

from tandemq.engine import clock, consume, control, recovery, settle
from tandemq.engine.core import Engine
from tandemq.model.errors import NotLeased
from tandemq.model.message import Message, State, Step
from tandemq.model.policy import Stall

DELAYED, READY, LEASED, DONE, DEAD = (
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
)


def as_stored(m: Message) -> Message:
    """A message as it comes from a row: nothing of its life in memory."""
    again = deepcopy(m)
    again.gen, again.stored = 0, True
    return again


def crash(engine: Engine, **rules) -> Engine:
    """Another engine that has read what this one held."""
    again = make_engine(**rules)
    for m in sorted(engine.messages.values(), key=lambda m: m.seq):
        again.admit(as_stored(m))
    return again


# -- after a crash ---------------------------------------------------------------------------------


def test_what_is_read_stands_where_it_stood_and_need_not_be_written() -> None:
    engine = make_engine()
    for id, priority, delay in (("a", 0, 0), ("b", 2, 0), ("c", 0, 500)):
        put(engine, id, priority=priority, delay=delay)
    again = crash(engine)
    assert recovery.resume(again, NOW) == 0
    assert again.quiet
    assert ready(again) == ["b", "a"]
    assert where(again) == {"READY": 2, "DELAYED": 1}
    assert clock.next_wake(again) == NOW + 500
    assert put(again, "d").seq == 4  # numbers go on


def test_a_run_that_a_crash_ended_costs_an_attempt_and_a_stall_and_a_back_off() -> None:
    engine = make_engine()
    m = put(engine, "m", backoff=1_000)
    hold(engine, conn=5)
    again = crash(engine)
    assert recovery.resume(again, NOW + 100) == 1
    m = again.messages["m"]
    assert m.run is not None
    assert (m.state, m.attempts, m.run.stalls) == (DELAYED, 1, 1)
    assert (m.due, m.lease, m.run.error) == (NOW + 2_100, None, None)
    assert m.run.started == NOW  # it is shown when it ran last
    assert again.leased_by == {}
    assert again.take().changed == {m.seq: m}
    assert (again.counters.stalled, again.counters.retried) == (0, 1)
    with pytest.raises(NotLeased):
        settle.ack(again, "m", "id-1", NOW + 100)


def test_without_a_back_off_it_is_ready_at_once() -> None:
    engine = make_engine()
    put(engine, "m", backoff=0)
    hold(engine)
    again = crash(engine)
    recovery.resume(again, NOW)
    assert ready(again) == ["m"]


@pytest.mark.parametrize("removed", [False, True])
def test_out_of_attempts_a_crash_makes_a_dead_letter(removed: bool) -> None:
    engine = make_engine()
    m = put(engine, "m", max_attempts=2, remove_on_fail=removed)
    m.attempts = 1
    hold(engine)
    again = crash(engine)
    m = again.messages["m"]
    recovery.resume(again, NOW + 9)
    assert m.run is not None
    assert m.run.error == "Job reached max attempts (2) during startup recovery"
    assert (m.run.cause, m.run.finished) == ("max_attempts_exceeded", NOW + 9)
    assert where(again) == ({} if removed else {"DEAD": 1})


def test_a_job_that_was_running_in_too_many_crashes_is_a_dead_letter() -> None:
    engine = make_engine()
    put(engine, "m", max_attempts=9, backoff=0)
    for _ in range(3):
        hold(engine)
        engine = crash(engine)
        recovery.resume(engine, NOW)
    m = engine.messages["m"]
    assert m.run is not None
    assert (m.state, m.run.cause) == (DEAD, "stalled")
    assert m.run.error == "Job stalled 3 times (recovered at startup)"


def test_where_stalls_have_no_limit_crashes_have_none() -> None:
    engine = make_engine()
    put(engine, "m", max_attempts=9, backoff=0)
    for _ in range(5):
        hold(engine)
        engine = crash(engine)
        control.configure(engine, engine.queues["q"], stall=Stall(max_stalls=0))
        recovery.resume(engine, NOW)
    assert where(engine) == {"READY": 1}


def test_a_late_ack_may_come_after_a_crash_too() -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine, span=10**9)
    token = token_of(m)
    pass_time(engine, NOW + 35_000)
    again = crash(engine)
    recovery.resume(again, NOW + 36_000)
    assert settle.ack(again, "m", token, NOW + 36_000)
    assert where(again) == {"DONE": 1}


def test_a_clean_stop_leaves_nothing_to_decide() -> None:
    engine = make_engine()
    put(engine, "m")
    hold(engine)
    consume.release_all(engine, NOW)
    again = crash(engine)
    assert recovery.resume(again, NOW) == 0
    assert again.messages["m"].attempts == 0


def test_a_message_that_is_read_tells_when_it_last_ran() -> None:
    engine = make_engine()
    m = put(engine, "m", backoff=0)
    recovery.show_last_start(m)
    assert m.run is None
    hold(engine, now=NOW + 5)
    recovery.show_last_start(m)
    assert m.run is not None
    assert m.run.started == NOW + 5
    settle.fail(engine, "m", token_of(m), NOW + 6)
    assert m.run.started == 0
    recovery.show_last_start(m)
    assert m.run.started == NOW + 5
    m.run.started, m.run.history = 0, [Step(READY, NOW)]
    recovery.show_last_start(m)
    assert m.run.started == 0


# -- after a batch that was not written ------------------------------------------------------------


class Undone:
    """An engine with a store that holds what was there at the last `keep`."""

    def __init__(self) -> None:
        self.engine = make_engine()
        self.rows: dict[int, Message] = {}

    def keep(self) -> None:
        for seq, m in self.engine.take().changed.items():
            self.rows[seq] = as_stored(m)
            m.stored = True

    def undo(self) -> None:
        touched = self.engine.take().changed
        stored = [as_stored(self.rows[seq]) for seq in touched if seq in self.rows]
        recovery.roll_back(self.engine, touched.values(), stored, NOW)


def test_what_was_never_written_was_never_there() -> None:
    both = Undone()
    put(both.engine, "new")
    put(both.engine, "later", delay=5, queue="p")
    hold(both.engine)
    both.undo()
    engine = both.engine
    assert engine.messages == engine.queues == engine.leased_by == {}
    assert engine.quiet
    assert clock.next_wake(engine) is None


def test_what_had_moved_on_is_back_where_the_store_knows_it() -> None:
    both = Undone()
    for id in "abcd":
        put(both.engine, id)
    both.keep()
    for verb in ("ack", "fail", "hold"):
        m = hold(both.engine)
        if verb == "ack":
            settle.ack(both.engine, m.id, token_of(m), NOW, remove=True)
        elif verb == "fail":
            settle.fail(both.engine, m.id, token_of(m), NOW)
    both.undo()
    assert ready(both.engine) == ["a", "b", "c", "d"]
    assert both.engine.leased_by == {}
    assert all(m.attempts == 0 for m in both.engine.messages.values())
    assert all(m.stored for m in both.engine.messages.values() if m.id != "d")


def test_an_old_message_is_back_even_if_a_new_one_has_its_id() -> None:
    both = Undone()
    old = put(both.engine, "mine", body=b"old")
    settle.ack(both.engine, "mine", token_of(hold(both.engine)), NOW)
    both.keep()
    put(both.engine, "mine", body=b"new")
    both.undo()
    m = both.engine.messages["mine"]
    assert (m.seq, m.body, m.state) == (old.seq, b"old", DONE)
    assert where(both.engine) == {"DONE": 1}
    assert both.engine.finished.count == 1


def test_a_lease_that_was_written_is_held_again() -> None:
    both = Undone()
    put(both.engine, "m")
    token = token_of(hold(both.engine))
    both.keep()
    settle.ack(both.engine, "m", token, NOW)
    both.undo()
    assert where(both.engine) == {"LEASED": 1}
    assert list(both.engine.leased_by) == [1]
    assert settle.ack(both.engine, "m", token, NOW)


def test_whoever_waits_gets_what_comes_back() -> None:
    both = Undone()
    for id in "ab":
        put(both.engine, id)
    both.keep()
    for _ in range(2):
        hold(both.engine)
    wait(both.engine, "r", count=5)
    both.undo()
    assert answers(both.engine) == {"r": ["a", "b"]}


def test_a_message_that_comes_back_twice_is_no_trouble_for_the_order() -> None:
    """Its old entry and its new one would compare as equal, and messages do not compare."""
    both = Undone()
    put(both.engine, "m", delay=10)
    put(both.engine, "other", delay=10)
    both.keep()
    control.pause(both.engine, "q")
    for _ in range(3):
        pass_time(both.engine, NOW + 10)
        assert ready(both.engine) == ["m", "other"]
        both.undo()
        assert where(both.engine) == {"DELAYED": 2}


def test_a_completed_message_that_comes_back_goes_by_age_again() -> None:
    both = Undone()
    both.engine = make_engine(retention=1_000)
    put(both.engine, "m")
    settle.ack(both.engine, "m", token_of(hold(both.engine)), NOW)
    both.keep()
    pass_time(both.engine, NOW + 1_000)
    assert both.engine.messages == {}
    both.undo()
    both.engine.take()
    assert where(both.engine) == {"DONE": 1}
    pass_time(both.engine, NOW + 1_000)
    assert both.engine.messages == {}


def test_undoing_nothing_changes_nothing() -> None:
    both = Undone()
    put(both.engine, "m")
    both.keep()
    both.undo()
    assert ready(both.engine) == ["m"]


def test_a_job_may_set_how_many_crashes_of_the_server_it_outlives() -> None:
    engine = make_engine()
    put(engine, "m", max_attempts=9, max_stalls=1)
    hold(engine)
    engine = crash(engine)
    recovery.resume(engine, NOW)
    m = engine.messages["m"]
    assert m.run is not None
    assert (m.state, m.run.cause) == (DEAD, "stalled")
