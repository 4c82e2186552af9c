"""Fan-out: everybody gets a copy, each answers for itself. Numbers are scenarios."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import put, where
from tests.engine.office import BURY, FAN_OUT, HAND_OVER, A, B, C, D, Office

from tandemq.engine import clock, manage, post, publish, trees
from tandemq.model.broker import Mode, Policy
from tandemq.model.message import State
from tandemq.model.outcome import Deliver


@pytest.fixture
def office() -> Office:
    """Q fans out and wants acknowledgments."""
    office = Office()
    office.make(**FAN_OUT)
    return office


def test_everybody_gets_a_copy(office: Office) -> None:
    """S-050."""
    office.subscribe(A, B, C)
    office.post("f1")
    (effect,) = office.engine.take().effects
    assert isinstance(effect, Deliver)
    assert effect.conns == [A, B, C]
    assert (office.in_flight, office.engine.counters.delivered) == (3, 3)


def test_it_is_complete_when_all_have_acknowledged(office: Office) -> None:
    """S-051, S-052, S-054."""
    office.subscribe(A, B, C)
    office.post("f1")
    assert office.ack(A, "f1", "f1", "f1") == [True, False, False]
    assert office.in_flight == 2
    assert where(office.engine) == {"PARKED": 1}
    office.ack(B, "f1")
    office.ack(C, "f1")
    assert office.in_flight == 0
    assert not office.engine.messages
    assert not office.engine.fanouts
    assert office.engine.counters.acknowledged == 3


def test_only_the_silent_one_is_asked_again(office: Office) -> None:
    """S-053."""
    office.subscribe(A, B, C)
    office.post("f1")
    office.told()
    office.ack(A, "f1")
    office.ack(B, "f1")
    assert office.later(30) == [(C, "f1")]
    assert office.later(4) == [(C, "f1")]


def test_who_never_answers_makes_it_one_dead_letter_that_names_them(office: Office) -> None:
    office.make("dead", **FAN_OUT, **BURY)
    office.subscribe(A, B, C, queue="dead")
    office.post("f1", queue="dead")
    office.ack(B, "f1")
    for seconds in (30, 4):
        office.later(seconds)
    assert not office.dead("dead")
    office.later(8)
    (dead,) = office.dead("dead")
    assert dead.letter is not None
    assert dead.letter.headers is not None
    assert dead.letter.headers["x-death-text"] == "not acknowledged by peer 1, peer 3"
    assert dead.letter.headers["x-attempts"] == "3"
    assert office.engine.counters.dead_lettered == 1


def test_without_dead_letters_it_is_dropped(office: Office) -> None:
    office.subscribe(A)
    office.post("f1")
    for seconds in (30, 4, 8):
        office.later(seconds)
    assert not office.engine.messages
    assert office.engine.counters.dropped == 1


def test_when_all_leave_before_any_answer_it_waits_in_its_old_place(office: Office) -> None:
    """S-056."""
    office.subscribe(A, B)
    office.post("f1", "f2")
    office.told()
    office.leave(A)
    office.leave(B)
    assert office.waiting() == ["f1", "f2"]
    office.post("f3")
    office.subscribe(D)
    assert office.told() == [(D, "f1"), (D, "f2"), (D, "f3")]


def test_it_is_charged_an_interruption_if_a_connection_broke(office: Office) -> None:
    office.subscribe(A)
    office.post("f1", "f2")
    office.leave(A)
    counts = [m.run.interruptions for m in office.engine.queues["q"].ready if m.run]
    assert counts == [1]


def test_one_that_breaks_ten_connections_goes_to_the_tail_or_dies(office: Office) -> None:
    office.post("bad", "good")
    for _ in range(10):
        office.now += 1
        office.subscribe(A)
        office.leave(A)
    assert office.waiting() == ["good", "bad"]
    office.make("dead", **FAN_OUT, **BURY)
    office.post("bad", queue="dead")
    for _ in range(10):
        office.subscribe(A, queue="dead")
        office.leave(A)
    assert len(office.dead("dead")) == 1


def test_a_leaver_settles_its_copy_and_does_not_undo_an_answer(office: Office) -> None:
    office.subscribe(A, B)
    office.post("f1")
    office.ack(A, "f1")
    office.leave(B)
    assert not office.engine.messages


def test_a_late_joiner_gets_nothing_old(office: Office) -> None:
    """S-057."""
    office.subscribe(A)
    office.post("f1")
    office.told()
    office.subscribe(B)
    assert office.told() == []


def test_without_subscribers_it_waits_for_the_first(office: Office) -> None:
    """S-058."""
    office.post("f1")
    office.subscribe(A, B)
    assert office.told() == [(A, "f1")]


def test_a_stuck_subscriber_delays_nobody(office: Office) -> None:
    office.subscribe(A, B)
    office.stall(A)
    office.post("f1", "f2")
    assert office.told() == [(B, "f1"), (B, "f2")]
    office.ack(B, "f1", "f2")
    office.stall(A, False)
    assert office.told() == [(A, "f1"), (A, "f2")]
    office.ack(A, "f2", "f1")
    assert not office.engine.messages


def test_one_that_stops_reading_is_asked_again_when_it_reads(office: Office) -> None:
    office.subscribe(A)
    office.post("f1")
    office.told()
    office.stall(A)
    assert office.later(30) == []
    assert office.in_flight == 0
    office.stall(A, False)
    assert office.told() == [(A, "f1")]


def test_copies_wait_for_a_place_in_the_window(office: Office) -> None:
    office.subscribe(A, window=1)
    office.subscribe(B)
    office.post("f1", "f2", "f3")
    assert office.told() == [(A, "f1"), (B, "f1"), (B, "f2"), (B, "f3")]
    office.ack(A, "f1")
    assert office.told() == [(A, "f2")]
    office.leave(A)
    office.ack(B, "f1", "f2", "f3")
    assert not office.engine.messages


def test_given_back_it_comes_again_to_the_same_subscriber(office: Office) -> None:
    office.subscribe(A, B)
    office.post("f1")
    office.told()
    assert office.nack(A, "f1")
    assert office.told() == [(A, "f1")]
    assert office.nack(A, "f1", 5_000)
    assert office.later(4.9) == []
    assert office.later(0.1) == [(A, "f1")]
    assert office.nack(A, "f1")
    office.ack(B, "f1")
    assert not office.engine.messages
    assert office.engine.counters.dropped == 1


def test_what_is_taken_away_is_asked_of_nobody(office: Office) -> None:
    office.subscribe(A, window=1)
    office.post("f1", "f2")
    office.told()
    first = next(iter(office.engine.messages.values()))
    manage.remove(office.engine, first, office.now)
    assert office.ack(A, "f1") == [False]
    assert office.later(0) == [(A, "f2")]
    office.ack(A, "f2")
    assert not office.engine.messages


def test_time_to_live_does_not_cut_what_is_out_and_ends_its_repetitions(office: Office) -> None:
    office.make("short", ttl=10_000, **FAN_OUT, **BURY)
    office.subscribe(A, queue="short")
    office.post("f1", "f2", queue="short")
    office.told()
    assert office.later(20) == []
    assert office.ack(A, "f1") == [True]
    assert office.later(10) == []
    (dead,) = office.dead("short")
    assert dead.letter is not None
    assert dead.letter.headers is not None
    assert dead.letter.headers["x-death-reason"] == "MessageExpired"


@pytest.mark.parametrize("step", [-60_000, 60_000])
def test_a_copy_that_waits_for_a_place_has_no_span(office: Office, step: int) -> None:
    office.subscribe(A, window=1)
    office.post("m1", "m2")
    assert office.told() == [(A, "m1")]
    office.now += step
    clock.shift_spans(office.engine, step)
    assert office.later(29) == []
    assert office.later(1) == [(A, "m1")]
    office.ack(A, "m1")
    assert office.told() == [(A, "m2")]


def test_the_wait_for_an_answer_keeps_its_span_when_the_clock_is_set(office: Office) -> None:
    office.subscribe(A)
    office.post("f1")
    office.told()
    office.now += 60_000
    clock.shift_spans(office.engine, 60_000)
    assert office.later(29) == []
    assert office.later(1) == [(A, "f1")]


def test_a_job_is_completed_when_its_copies_are_settled(office: Office) -> None:
    office.subscribe(A, B)
    put(office.engine, "job", body=b"\x01")
    office.ack(A, "job")
    assert office.engine.messages["job"].state is State.PARKED
    office.ack(B, "job")
    assert office.engine.messages["job"].state is State.DONE


# -- without acknowledgment ------------------------------------------------------------------------


def test_it_is_handed_over_and_forgotten() -> None:
    """S-060, S-061, S-062."""
    office = Office()
    office.make(**HAND_OVER)
    office.subscribe(A, B)
    office.post("n1")
    assert office.told() == [(A, "n1"), (B, "n1")]
    assert office.in_flight == 0
    assert not office.engine.messages
    assert office.ack(A, "n1") == [False]
    assert office.engine.counters.acknowledged == 0
    assert office.later(600) == []


def test_who_does_not_read_misses_it_and_without_readers_it_waits() -> None:
    office = Office()
    office.make(**HAND_OVER)
    office.post("n1")
    office.subscribe(A, B)
    assert office.told() == [(A, "n1")]
    office.stall(A)
    office.post("n2")
    office.stall(B)
    office.post("n3")
    assert office.told() == [(B, "n2")]
    office.stall(A, False)
    assert office.told() == [(A, "n3")]


def test_thousands_of_jobs_are_handed_over_at_once() -> None:
    office = Office()
    office.make(**HAND_OVER)
    for n in range(3_000):
        put(office.engine, f"j{n}", body=b"\x01")
    office.subscribe(A)
    assert len(office.told()) == 3_000
    assert where(office.engine) == {"DONE": 3_000}


@pytest.mark.parametrize("mode", [FAN_OUT, HAND_OVER])
def test_a_job_that_json_cannot_carry_is_a_dead_letter(mode: dict[str, object]) -> None:
    office = Office()
    office.make(**mode)
    office.subscribe(A)
    put(office.engine, "bin", body=b"\xc4\x01x")
    assert office.told() == []
    assert office.engine.messages["bin"].state is State.DEAD


PUSHES: dict[str, Any] = {
    "letter": lambda office: office.post("m"),
    "job": lambda office: put(office.engine, body=b"\x01"),
    "batch": lambda office: publish.publish_all(
        office.engine, "q", [publish.draft("q", "n", b"\x01", office.now)], office.now
    ),
    "plain jobs": lambda office: publish.publish_plain(
        office.engine, "q", [("n", b"\x01")], office.now
    ),
    "flow": lambda office: trees.publish_flow(
        office.engine, [publish.draft("q", "n", b"\x01", office.now, id="f")], office.now
    ),
}


@pytest.mark.parametrize("push", PUSHES)
@pytest.mark.parametrize("before", [False, True])
def test_copies_are_made_for_who_does_not_read_at_the_moment(push: str, before: bool) -> None:
    """Whether its silence began before the queue was decided about, or later."""
    office, fan_out = Office(), Policy(mode=Mode.FAN_OUT_WITH_ACK)
    post.found(office.engine, "q", office.now, fan_out)
    office.subscribe(A)
    if before:
        office.stall(A)
    post.opened(office.engine, "q", office.now, fan_out)
    office.stall(A)
    PUSHES[push](office)
    assert where(office.engine) == {"PARKED": 1}
    office.stall(A, stalled=False)
    assert [conn for conn, _ in office.told()] == [A]
