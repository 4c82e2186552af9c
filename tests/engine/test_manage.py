"""What is done to one message: taken away, moved, reordered, rewritten."""

from __future__ import annotations

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

from tandemq.engine import manage, settle
from tandemq.engine.core import Engine
from tandemq.model.errors import TokenRequired, WrongToken
from tandemq.model.message import Links, Message, Run, State, Step

PARKED, DELAYED, READY, LEASED, DONE, DEAD, GONE = (
    State.PARKED,
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
    State.GONE,
)


def parked(engine: Engine, id: str = "p") -> Message:
    m = put(engine, id)
    hold(engine, span=None)
    assert manage.move_to_waiting_children(engine, m, None, NOW)
    return m


def done(engine: Engine, id: str = "d") -> Message:
    m = put(engine, id)
    hold(engine, span=None)
    settle.ack(engine, id, None, NOW, b"r")
    return m


def dead(engine: Engine, id: str = "x") -> Message:
    m = put(engine, id, max_attempts=1)
    hold(engine, span=None)
    settle.fail(engine, id, None, NOW, error="e")
    return m


def events(engine: Engine) -> list[tuple[str, dict[str, object]]]:
    return [(event.type, event.fields) for event in engine.take().events]


# -- cancel ----------------------------------------------------------------------------------------


def test_what_waits_can_be_cancelled_wherever_it_waits() -> None:
    engine = make_engine()
    for m in (parked(engine), put(engine), put(engine, delay=5), put(engine, priority=3)):
        assert manage.cancel(engine, m, NOW)
        assert m.state is GONE
    assert engine.messages == {}
    assert engine.queues == {}


def test_what_is_leased_or_has_ended_is_not_cancelled() -> None:
    engine = make_engine()
    ended = [done(engine), dead(engine)]
    m = put(engine, "m")
    hold(engine)
    for held in (m, *ended):
        assert not manage.cancel(engine, held, NOW)
        assert engine.messages[held.id] is held


def test_a_cancelled_message_takes_its_log_along() -> None:
    engine = make_engine()
    m = put(engine, "m")
    engine.logs.add(engine, "m", b"line")
    manage.cancel(engine, m, NOW)
    assert engine.logs.of("m") == []


def test_cancelling_says_that_it_was_waiting_whatever_it_did() -> None:
    engine = make_engine()
    m = put(engine, delay=5)
    engine.listening = True
    manage.cancel(engine, m, NOW)
    assert events(engine) == [("removed", {"prev": "waiting"})]


# -- discard ---------------------------------------------------------------------------------------


def test_a_discarded_message_is_a_dead_letter_without_a_cause() -> None:
    engine = make_engine()
    m = put(engine, "m")
    assert manage.discard(engine, m, None, NOW + 7)
    assert where(engine) == {"DEAD": 1}
    assert m.run is not None
    assert (m.run.cause, m.run.error, m.run.finished, m.attempts) == ("unknown", None, NOW + 7, 0)


@pytest.mark.parametrize("state", [PARKED, DELAYED, READY, LEASED])
def test_everything_live_can_be_discarded(state: State) -> None:
    engine = make_engine()
    m = parked(engine) if state is PARKED else put(engine, delay=9 if state is DELAYED else 0)
    if state is LEASED:
        hold(engine, span=None)
    assert m.state is state
    assert manage.discard(engine, m, None, NOW)
    assert m.state is DEAD


def test_a_discarded_lease_is_over_and_its_run_is_told() -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine)
    assert manage.discard(engine, m, token_of(m), NOW + 3)
    assert m.lease is None
    assert engine.leased_by == {}
    assert m.run is not None
    assert m.run.history == [Step(LEASED, NOW)]


def test_what_has_ended_cannot_be_discarded() -> None:
    engine = make_engine()
    assert not manage.discard(engine, done(engine), None, NOW)
    assert not manage.discard(engine, dead(engine), None, NOW)


# -- tokens ----------------------------------------------------------------------------------------

MOVES = [
    lambda engine, m, token: manage.discard(engine, m, token, NOW),
    lambda engine, m, token: manage.move_to_wait(engine, m, token, NOW),
    lambda engine, m, token: manage.move_to_delayed(engine, m, token, 5, NOW),
    lambda engine, m, token: manage.change_delay(engine, m, token, 5, NOW),
    lambda engine, m, token: manage.move_to_waiting_children(engine, m, token, NOW),
]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(
    ("token", "refusal"), [(None, TokenRequired), ("", TokenRequired), ("made up", WrongToken)]
)
def test_a_lease_with_a_token_is_moved_by_its_holder_only(move, token, refusal) -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine)
    engine.take()
    with pytest.raises(refusal):
        move(engine, m, token)
    assert m.state is LEASED
    assert engine.quiet
    assert move(engine, m, token_of(m))
    assert m.lease is None


@pytest.mark.parametrize("move", MOVES)
def test_a_lease_without_a_token_is_moved_by_anybody(move) -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine, span=None)
    assert move(engine, m, "made up")


@pytest.mark.parametrize("move", MOVES[1:])
def test_a_move_charges_no_attempt_and_ends_the_run(move) -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine, span=None)
    move(engine, m, None)
    assert m.attempts == 0
    assert m.run is not None
    assert m.run.started == 0
    assert m.run.history[0] == Step(LEASED, NOW)


# -- moves -----------------------------------------------------------------------------------------


def test_a_promoted_message_is_due_now_and_served_at_once() -> None:
    engine = make_engine()
    m = put(engine, "m", delay=60_000)
    wait(engine, "w")
    assert manage.promote(engine, m, NOW + 5)
    assert m.due == NOW + 5
    assert answers(engine) == {"w": ["m"]}
    assert not manage.promote(engine, m, NOW)


def test_moving_to_wait_gives_back_a_lease() -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine, span=None)
    engine.listening = True
    assert manage.move_to_wait(engine, m, None, NOW + 4)
    assert (m.state, m.due) == (READY, NOW + 4)
    assert events(engine) == [("waiting", {"prev": "active"})]


def test_moving_to_wait_ends_a_delay_and_leaves_what_waits_alone() -> None:
    engine = make_engine()
    late, soon = put(engine, "late", delay=9), put(engine, "soon")
    engine.listening = True
    assert manage.move_to_wait(engine, late, None, NOW)
    assert manage.move_to_wait(engine, soon, None, NOW)
    assert ready(engine) == ["late", "soon"]
    assert events(engine) == []


def test_moving_to_wait_retries_a_dead_letter() -> None:
    engine = make_engine()
    m = dead(engine)
    assert manage.move_to_wait(engine, m, None, NOW + 1)
    assert (m.state, m.attempts) == (READY, 0)


def test_what_was_completed_or_waits_for_others_cannot_be_moved() -> None:
    engine = make_engine()
    for m in (done(engine), parked(engine)):
        assert not manage.move_to_wait(engine, m, None, NOW)
        assert not manage.move_to_delayed(engine, m, None, 5, NOW)
        assert not manage.change_delay(engine, m, None, 5, NOW)
        assert not manage.change_priority(engine, m, 5, None)
        assert not manage.move_to_waiting_children(engine, m, None, NOW)


def test_only_an_active_message_that_is_delayed_says_so() -> None:
    engine = make_engine()
    m = put(engine, "m")
    engine.listening = True
    assert manage.move_to_delayed(engine, m, None, 5, NOW)
    assert events(engine) == []
    pass_time(engine, NOW + 5)
    hold(engine, span=None)
    engine.take()
    assert manage.move_to_delayed(engine, m, None, 70, NOW + 5)
    assert m.due == NOW + 75
    assert events(engine) == [("delayed", {"delay": 70})]


@pytest.mark.parametrize("delay", [0, 10])
def test_a_changed_delay_counts_from_now(delay: int) -> None:
    engine = make_engine()
    m = put(engine, "m", delay=60_000)
    wait(engine, "w")
    assert manage.change_delay(engine, m, None, delay, NOW + 1)
    assert answers(engine) == ({} if delay else {"w": ["m"]})
    pass_time(engine, NOW + 1 + delay)
    assert m.state is LEASED


def test_waiting_for_children_needs_a_lease_and_lasts() -> None:
    engine = make_engine()
    m = put(engine, "m")
    assert not manage.move_to_waiting_children(engine, m, None, NOW)
    hold(engine, span=None)
    engine.listening = True
    assert manage.move_to_waiting_children(engine, m, None, NOW + 2)
    assert where(engine) == {"PARKED": 1}
    assert m.run is not None
    assert m.run.history == [Step(LEASED, NOW), Step(PARKED, NOW + 2)]
    assert events(engine) == [("waiting-children", {"prev": "active"})]


def test_nothing_is_waited_for_that_has_been_completed() -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine, span=None)
    m.links = Links(depends_on=("gone",))
    assert manage.move_to_waiting_children(engine, m, None, NOW)
    assert m.state is READY


# -- order and body --------------------------------------------------------------------------------


def test_a_priority_is_changed_in_place() -> None:
    engine = make_engine()
    a, b = put(engine, "a"), put(engine, "b")
    late = put(engine, "late", delay=9, priority=1)
    assert manage.change_priority(engine, b, 10, None)
    assert manage.change_priority(engine, late, -1, None)
    assert ready(engine) == ["b", "a"]
    q = engine.queues["q"]
    assert q.prioritized == 1
    assert q.priorities == {10: 1, 0: 1, -1: 1}
    assert late.state is DELAYED
    assert not a.options.lifo


def test_a_message_can_be_put_at_the_other_end_of_its_priority() -> None:
    engine = make_engine()
    put(engine, "a")
    b = put(engine, "b")
    manage.change_priority(engine, b, 0, True)
    assert ready(engine) == ["b", "a"]


def test_the_priority_of_a_leased_message_stays() -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine)
    assert not manage.change_priority(engine, m, 5, None)


def test_the_first_priority_is_remembered_once() -> None:
    engine = make_engine()
    m = put(engine, "m", priority=2)
    manage.change_priority(engine, m, 0, None)
    manage.change_priority(engine, m, 7, None)
    assert m.run == Run(first_priority=2)


def test_the_body_of_everything_but_a_dead_letter_can_be_replaced() -> None:
    engine = make_engine()
    m = put(engine, "m")
    for _ in range(2):
        engine.take()
        assert manage.update(engine, m, b"other")
        assert (m.body, m.rebodied) == (b"other", True)
        assert m.seq in engine.take().changed
        hold(engine) if m.state is READY else None
    assert manage.update(engine, done(engine), b"other")
    assert not manage.update(engine, dead(engine), b"other")


def test_the_size_of_what_is_kept_follows_a_new_body() -> None:
    engine = make_engine()
    m = done(engine)
    manage.update(engine, m, b"a longer body")
    assert engine.finished.size_bytes == len(b"a longer body") + len(b"r")
    engine.forget(m)
    assert engine.finished.size_bytes == 0
