"""Dead letters: their history, their return, their end."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import NOW, answers, hold, make_engine, pass_time, put, ready, wait, where

from tandemq.engine import clock, control, deadletters, recovery, settle
from tandemq.engine.core import Engine
from tandemq.model.message import Message, State, Step, Try
from tandemq.model.policy import HISTORY, TRIES, Burial
from tandemq.stores.base import Row
from tandemq.stores.rows import decode, encode_head

READY, LEASED, DONE, DEAD, GONE = (
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
    State.GONE,
)
DAY = 86_400_000


def dead(engine: Engine, id: str = "m", now: int = NOW, **options: Any) -> Message:
    m = put(engine, id, now=now, max_attempts=1, **options)
    hold(engine, span=None, now=now)
    settle.fail(engine, id, None, now, error="broke")
    assert m.state is DEAD
    return m


def rule(engine: Engine, **changes: Any) -> None:
    control.configure(engine, engine.queue("q"), burial=Burial(**changes))


def fail_once(engine: Engine, m: Message, error: str, now: int = NOW) -> None:
    assert hold(engine, span=None, now=now) is m
    settle.fail(engine, m.id, None, now + 5, error=error)


# -- history ---------------------------------------------------------------------------------------


def test_every_attempt_is_told_with_its_cause() -> None:
    engine = make_engine()
    m = put(engine, "m", max_attempts=2, backoff=0)
    fail_once(engine, m, "one")
    fail_once(engine, m, "two", NOW + 10)
    assert m.run is not None
    assert m.run.tries == [Try(1, NOW, NOW + 5, "explicit_fail", "one")]
    assert deadletters.last_try(m) == Try(2, NOW + 10, NOW + 15, "max_attempts_exceeded", "two")


def test_a_lost_lease_is_an_attempt_too() -> None:
    engine = make_engine()
    m = put(engine, "m", max_attempts=2)
    hold(engine, span=1_000)
    pass_time(engine, NOW + 10_000)
    assert m.run is not None
    [tried] = m.run.tries
    assert (tried.attempt, tried.started, tried.cause) == (1, NOW, "stalled")


def test_what_never_ran_began_with_its_creation() -> None:
    engine = make_engine()
    m = dead(engine)
    m.run.history.clear()
    m.run.started = 0
    assert deadletters.last_try(m).started == m.created


def test_only_the_newest_attempts_are_kept() -> None:
    engine = make_engine()
    m = put(engine, "m", max_attempts=1000, backoff=0)
    for n in range(TRIES + 5):
        fail_once(engine, m, f"error {n}", NOW + 10 * n)
    assert m.run is not None
    assert len(m.run.tries) == TRIES
    assert m.run.tries[-1].error == f"error {TRIES + 4}"
    assert len(m.run.history) <= HISTORY


# -- coming back -----------------------------------------------------------------------------------


def test_a_retried_letter_starts_anew_with_its_history() -> None:
    engine = make_engine()
    m = dead(engine)
    assert deadletters.retry(engine, m, NOW + 9)
    assert (m.state, m.attempts, m.due) == (READY, 0, NOW + 9)
    run = m.run
    assert (run.retries, run.retried, run.started, run.finished) == (1, NOW + 9, 0, 0)
    assert (run.cause, run.error, run.stalls) == (None, "broke", 0)
    assert run.tries == [Try(1, NOW, NOW, "max_attempts_exceeded", "broke")]
    assert run.history[-1] == Step(READY, NOW + 9)


def test_its_history_goes_on_when_it_fails_again() -> None:
    engine = make_engine()
    m = dead(engine)
    deadletters.retry(engine, m, NOW + 9)
    fail_once(engine, m, "again", NOW + 10)
    assert [tried.error for tried in (*m.run.tries, deadletters.last_try(m))] == ["broke", "again"]


def test_a_retried_letter_is_served_to_who_waits() -> None:
    engine = make_engine()
    m = dead(engine)
    wait(engine, "w")
    deadletters.retry(engine, m, NOW)
    assert answers(engine) == {"w": ["m"]}


def test_a_letter_stays_while_another_message_has_its_key() -> None:
    engine = make_engine()
    m = dead(engine, unique_key="k")
    twin = put(engine, "twin", unique_key="k")
    assert not deadletters.may_return(engine, m, NOW)
    assert not deadletters.retry(engine, m, NOW)
    assert m.state is DEAD
    hold(engine, span=None)
    settle.ack(engine, twin.id, None, NOW)
    assert deadletters.retry(engine, m, NOW)


def test_a_completed_message_runs_again_without_its_result() -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine, span=None)
    m.run.progress, m.run.progress_message = 50, "half"
    settle.ack(engine, "m", None, NOW + 1, b"result")
    assert deadletters.run_again(engine, m, NOW + 2)
    run = m.run
    assert (run.result, run.progress, run.progress_message) == (None, 0, None)
    assert run.history == [Step(LEASED, NOW), Step(DONE, NOW + 1), Step(READY, NOW + 2)]
    assert engine.finished.size_bytes == 0


def test_an_edited_copy_runs_and_the_letter_stays() -> None:
    engine = make_engine()
    m = dead(engine, priority=4, timeout=5_000)
    copy = deadletters.replay(engine, m, b"better", NOW + 3)
    assert (copy.body, copy.queue, copy.name, copy.priority) == (b"better", "q", "job", 4)
    assert copy.options.timeout == 5_000
    assert copy.run.replay_of == "m"
    assert m.state is DEAD
    assert m.body == b"x"
    assert (m.run.replays, m.run.retries, m.run.retried) == ((copy.id,), 1, NOW + 3)


def test_a_copy_has_neither_the_id_nor_the_key_of_the_letter() -> None:
    engine = make_engine()
    m = dead(engine, custom_id=True, unique_key="k")
    copy = deadletters.replay(engine, m, b"better", NOW)
    assert copy.id != "m"
    assert not copy.options.custom_id
    assert copy.options.unique_key is None


# -- by themselves ---------------------------------------------------------------------------------


def test_nothing_is_retried_by_itself_unless_asked_for() -> None:
    engine = make_engine()
    m = dead(engine)
    assert deadletters.next_retry(m, Burial()) is None
    pass_time(engine, NOW + DAY)
    assert m.state is DEAD


def test_automatic_retries_take_longer_each_time_and_end() -> None:
    engine = make_engine()
    rule(engine, auto_retry=True, interval=1_000, max_retries=3)
    m, now = dead(engine), NOW
    for span in (1_000, 1_000, 2_000):
        assert deadletters.next_retry(m, engine.queues["q"].settings.burial) == now + span
        pass_time(engine, now + span - 1)
        assert m.state is DEAD
        pass_time(engine, now + span)
        assert m.state is READY
        now += span + 5
        fail_once(engine, m, "again", now - 5)
    assert deadletters.next_retry(m, engine.queues["q"].settings.burial) is None
    pass_time(engine, now + DAY)
    assert m.state is DEAD
    assert m.run.retries == 3


def test_other_rules_hold_for_letters_that_are_there_already() -> None:
    engine = make_engine()
    m = dead(engine)
    rule(engine, auto_retry=True, interval=1_000)
    pass_time(engine, NOW + 1_000)
    assert m.state is READY


def test_a_letter_with_an_edited_copy_is_not_retried_by_itself() -> None:
    engine = make_engine()
    rule(engine, auto_retry=True, interval=1_000)
    m = dead(engine)
    deadletters.replay(engine, m, b"better", NOW)
    pass_time(engine, NOW + DAY)
    assert m.state is DEAD


def test_a_letter_is_forgotten_at_its_age() -> None:
    engine = make_engine()
    rule(engine, max_age=1_000)
    a = dead(engine, "a")
    b = dead(engine, "b", NOW + 400)
    pass_time(engine, NOW + 999)
    assert where(engine) == {"DEAD": 2}
    pass_time(engine, NOW + 1_000)
    assert (a.state, b.state) == (GONE, DEAD)
    pass_time(engine, NOW + 1_400)
    assert engine.messages == {}


def test_the_next_oldest_is_looked_at_when_the_oldest_has_left() -> None:
    engine = make_engine()
    rule(engine, max_age=1_000)
    a = dead(engine, "a")
    dead(engine, "b", NOW + 400)
    engine.forget(a)
    pass_time(engine, NOW + 1_400)
    assert engine.messages == {}


@pytest.mark.parametrize("age", [None, 500])
def test_the_age_can_be_changed_later(age: int | None) -> None:
    engine = make_engine()
    rule(engine, max_age=10_000)
    m = dead(engine)
    rule(engine, max_age=age)
    pass_time(engine, NOW + 500)
    assert m.state is (DEAD if age is None else GONE)
    pass_time(engine, NOW + DAY)
    assert m.state is (DEAD if age is None else GONE)


def test_the_oldest_make_room_for_new_ones() -> None:
    engine = make_engine()
    rule(engine, max_entries=2)
    letters = [dead(engine, id, NOW + n) for n, id in enumerate("abc")]
    assert [m.state for m in letters] == [GONE, DEAD, DEAD]


def test_a_lower_bound_takes_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadletters, "SLICE", 2)
    engine = make_engine()
    for n in range(7):
        dead(engine, f"m{n}", NOW + n)
    rule(engine, max_entries=1)
    assert where(engine) == {"DEAD": 5}  # in steps: a million would take a while
    pass_time(engine, NOW + 100)
    assert list(engine.messages) == ["m6"]


def test_a_queue_that_was_forgotten_leaves_nothing_to_look_at() -> None:
    engine = make_engine()
    m = dead(engine)
    engine.forget(m)
    assert engine.queues == {}
    pass_time(engine, NOW + 8 * DAY)
    assert engine.quiet or where(engine) == {}


def test_letters_are_counted_by_cause() -> None:
    engine = make_engine()
    a = dead(engine, "a")
    dead(engine, "b")
    q = engine.queues["q"]
    assert q.members[DEAD].tally == {"max_attempts_exceeded": 2}
    deadletters.retry(engine, a, NOW)
    assert q.members[DEAD].tally == {"max_attempts_exceeded": 1}


# -- from a store ----------------------------------------------------------------------------------


def test_letters_from_a_store_stand_by_the_moment_of_their_end() -> None:
    first = make_engine()
    put(first, "slow", max_attempts=1)
    hold(first, span=None)
    dead(first, "quick", NOW + 5)
    settle.fail(first, "slow", None, NOW + 900, error="late")
    rows = [Row(m.seq, encode_head(m), m.body) for m in first.messages.values()]
    engine = make_engine()
    for row in rows:
        engine.admit(decode(row))
    control.restore(engine, "q", None)
    recovery.resume(engine, NOW + 1_000)
    assert [m.id for m in engine.queues["q"].members[DEAD].values()] == ["quick", "slow"]
    assert clock.next_wake(engine) == NOW + 5 + Burial().max_age


def test_what_is_known_of_a_letter_is_stored() -> None:
    engine = make_engine()
    m = dead(engine)
    deadletters.retry(engine, m, NOW + 1)
    fail_once(engine, m, "again", NOW + 2)
    deadletters.replay(engine, m, b"better", NOW + 20)
    again = decode(Row(m.seq, encode_head(m), m.body))
    assert again.run == m.run
    assert again.run.tries == m.run.tries


def test_one_letter_is_found_in_its_queue_only() -> None:
    engine = make_engine()
    m = dead(engine)
    put(engine, "live")
    assert deadletters.letter(engine, "q", "m") is m
    assert deadletters.letter(engine, "other", "m") is None
    assert deadletters.letter(engine, "q", "live") is None
    assert ready(engine) == ["live"]
