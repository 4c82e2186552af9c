"""Subscriptions: in turn, asked again, given back, and beside pulls. Numbers are scenarios."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, hold, put, wait, where
from tests.engine.office import BURY, PRIORITY, A, B, C, Office

from tandemq.engine import clock, settle
from tandemq.engine.subscriptions import Subscriber
from tandemq.model.message import Message, State
from tandemq.model.outcome import Reply
from tandemq.model.policy import BATCH_BYTES


@pytest.fixture
def office() -> Office:
    return Office()


# -- in turn ---------------------------------------------------------------------------------------


def test_a_letter_is_delivered_acknowledged_and_gone(office: Office) -> None:
    """S-020."""
    office.subscribe(A)
    assert office.post("m1") == ["ACCEPTED"]
    assert office.told() == [(A, "m1")]
    assert office.in_flight == 1
    assert office.ack(A, "m1", "m1") == [True, False]
    assert office.in_flight == 0
    counters = office.engine.counters
    assert (counters.published, counters.delivered, counters.acknowledged) == (1, 1, 1)
    assert not office.engine.messages
    assert not office.engine.leased_by


def test_two_subscribers_take_turns_and_the_first_is_first(office: Office) -> None:
    """S-040."""
    office.subscribe(A, B)
    office.post("m1", "m2", "m3", "m4")
    assert office.told() == [(A, "m1"), (B, "m2"), (A, "m3"), (B, "m4")]


def test_three_subscribers_share_evenly(office: Office) -> None:
    """S-041."""
    office.subscribe(A, B, C)
    office.post(*(f"m{n}" for n in range(300)))
    told = office.told()
    assert [sum(conn == who for conn, _ in told) for who in (A, B, C)] == [100] * 3
    assert len({id for _, id in told}) == 300


def test_a_joiner_is_appended(office: Office) -> None:
    """S-042: B's turn comes after A's."""
    office.subscribe(A)
    office.post("m1")
    office.subscribe(B)
    office.post("m2", "m3", "m4")
    assert office.told() == [(A, "m1"), (A, "m2"), (B, "m3"), (A, "m4")]


def test_a_leaver_does_not_disturb_whose_turn_it_is(office: Office) -> None:
    office.subscribe(A, B, C)
    office.post("m1")
    office.leave(A)
    office.told()
    office.ack(B, "m1")
    office.post("m2", "m3")
    assert office.told() == [(C, "m2"), (B, "m3")]


def test_what_a_leaver_held_goes_to_the_others_before_anything_newer(office: Office) -> None:
    """S-043: the attempts stay as they were."""
    office.subscribe(A, B)
    office.post("m1", "m2", "m3")
    office.told()
    office.leave(A)
    assert office.told() == [(B, "m1"), (B, "m3")]
    office.leave(B)
    assert office.waiting() == ["m1", "m2", "m3"]
    assert all(m.attempts == 0 for m in office.engine.messages.values())
    office.post("m4")
    office.subscribe(C)
    assert office.told() == [(C, "m1"), (C, "m2"), (C, "m3"), (C, "m4")]


def test_a_backlog_is_delivered_to_a_late_subscriber(office: Office) -> None:
    """S-036, S-037, S-046, S-058."""
    office.post("m1", "m2", "m3")
    assert office.told() == []
    office.subscribe(A)
    office.post("m4")
    assert office.told() == [(A, "m1"), (A, "m2"), (A, "m3"), (A, "m4")]


def test_to_subscribe_twice_changes_nothing(office: Office) -> None:
    """S-034."""
    office.subscribe(A, A)
    office.post("m1")
    assert office.told() == [(A, "m1")]
    office.unsubscribe(A)
    assert not office.engine.queues["q"].subscriptions


def test_after_unsubscribing_nothing_comes(office: Office) -> None:
    """S-027, S-028."""
    office.subscribe(A)
    office.unsubscribe(A)
    office.unsubscribe(A, "never")
    office.unsubscribe(B)
    office.post("m1")
    assert office.told() == []
    assert office.waiting() == ["m1"]
    assert not office.engine.subscribers


def test_unsubscribing_gives_back_what_is_held_and_charges_nothing(office: Office) -> None:
    office.subscribe(A)
    office.post("m1", "m2")
    office.unsubscribe(A)
    assert office.waiting() == ["m1", "m2"]
    assert all(m.run and m.run.interruptions == 0 for m in office.engine.messages.values())


def test_a_name_that_only_a_subscription_needed_is_forgotten_with_it(office: Office) -> None:
    office.subscribe(A)
    office.leave(A)
    assert not office.engine.queues
    assert not office.engine.subscribers


# -- windows and slow readers ----------------------------------------------------------------------


def test_a_subscriber_holds_no_more_than_its_window(office: Office) -> None:
    office.subscribe(A, window=2)
    office.post("m1", "m2", "m3", "m4")
    assert office.told() == [(A, "m1"), (A, "m2")]
    office.ack(A, "m1")
    assert office.told() == [(A, "m3")]
    assert office.waiting() == ["m4"]


def test_large_messages_come_in_smaller_numbers(office: Office) -> None:
    office.make(max_size=10)
    large = b'"' + b"x" * (BATCH_BYTES - 2) + b'"'
    office.post("m1", "m2", body=large)
    office.post("m3")
    office.subscribe(A)
    assert office.told() == [(A, "m1")]
    office.ack(A, "m1")
    assert office.told() == [(A, "m2")]
    office.ack(A, "m2")
    assert office.told() == [(A, "m3")]


def test_a_full_subscriber_is_skipped(office: Office) -> None:
    office.subscribe(A, window=1)
    office.subscribe(B, window=9)
    office.post("m1", "m2", "m3", "m4")
    assert office.told() == [(A, "m1"), (B, "m2"), (B, "m3"), (B, "m4")]
    office.ack(A, "m1")
    office.post("m5", "m6")
    assert office.told() == [(B, "m5"), (A, "m6")]


def test_who_does_not_read_is_skipped_until_it_does(office: Office) -> None:
    """S-097."""
    office.subscribe(A, B)
    office.stall(A)
    office.post("m1", "m2")
    assert office.told() == [(B, "m1"), (B, "m2")]
    office.stall(B)
    office.post("m3")
    assert office.told() == []
    office.stall(A, False)
    assert office.told() == [(A, "m3")]
    office.stall(C)  # never subscribed


def test_what_a_stalled_subscriber_did_not_answer_goes_to_another(office: Office) -> None:
    office.subscribe(A, B)
    office.post("m1")
    office.stall(A)
    office.told()
    assert office.later(30) == [(B, "m1")]
    assert office.ack(A, "m1") == [False]


# -- priority --------------------------------------------------------------------------------------


def test_the_most_urgent_goes_first_and_equals_in_order(office: Office) -> None:
    """S-071, and the picture of the seed."""
    office.make(**PRIORITY)
    for id, level in (("low", 0), ("n1", 1), ("h1", 2), ("n2", 1), ("c", 3), ("h2", 2)):
        office.post(id, level=level)
    office.subscribe(A)
    assert [id for _, id in office.told()] == ["c", "h1", "h2", "n1", "n2", "low"]


def test_other_modes_ignore_priority(office: Office) -> None:
    """S-074."""
    for id, level in (("a", 0), ("b", 3), ("c", 1)):
        office.post(id, level=level)
    assert office.waiting() == ["a", "b", "c"]


# -- time-outs -------------------------------------------------------------------------------------


def test_the_same_subscriber_is_asked_again_and_in_the_end_no_more(office: Office) -> None:
    """S-080, S-081, S-084, S-090: at 30, at 34 s; at 42 s it is a dead letter."""
    office.make(**BURY)
    office.subscribe(A, B)
    office.post("m1")
    assert office.told() == [(A, "m1")]
    assert office.later(29.999) == []
    assert office.later(0.001) == [(A, "m1")]
    assert office.later(3.999) == []
    assert office.later(0.001) == [(A, "m1")]
    assert office.later(7.999) == []
    assert [m.letter.id for m in office.dead() if m.letter] == []
    assert office.later(0.001) == []
    (dead,) = office.dead()
    assert dead.letter is not None
    assert dead.letter.id == "m1"
    assert dead.letter.death is not None
    assert (dead.letter.death.attempts, dead.letter.death.reason) == (3, 0)
    counters = office.engine.counters
    assert (counters.retried, counters.dead_lettered, counters.delivered) == (2, 1, 1)
    assert office.in_flight == 0


def test_the_waits_double_up_to_two_minutes(office: Office) -> None:
    """S-083."""
    office.make(max_attempts=9)
    office.subscribe(A)
    office.post("m1")
    office.told()
    moments, start = [], office.now
    while office.in_flight:
        wake = clock.next_wake(office.engine)
        assert wake is not None
        if office.later((wake - office.now) / 1000):
            moments.append((office.now - start) / 1000)
    assert moments == [30, 34, 42, 58, 90, 154, 274, 394]
    assert (office.now - start) / 1000 == 514


def test_an_answer_after_the_first_repetition_ends_it(office: Office) -> None:
    """S-084."""
    office.subscribe(A)
    office.post("m1")
    office.later(30)
    assert office.ack(A, "m1") == [True]
    assert office.later(600) == []


def test_only_the_holder_can_answer(office: Office) -> None:
    """S-086, S-087."""
    office.subscribe(A, B)
    office.post("m1")
    office.told()
    assert office.ack(B, "m1") == [False]
    assert office.ack(C, "m1") == [False]
    assert office.ack(A, "no such message") == [False]
    assert office.later(30) == [(A, "m1")]
    (m,) = office.engine.messages.values()
    with pytest.raises(settle.NotLeased):
        settle.ack(office.engine, "m1", None, office.now)
    with pytest.raises(settle.TokenRequired):
        settle.ack(office.engine, m.id, None, office.now)


def test_two_letters_of_one_name_are_two_deliveries(office: Office) -> None:
    """S-035: the one that was delivered first is settled first."""
    office.subscribe(A)
    office.post("same", "same", "same")
    assert office.told() == [(A, "same")] * 3
    assert office.in_flight == 3
    assert office.ack(A, "same") == [True]
    office.leave(A)
    assert [m.seq for m in office.engine.queues["q"].ready] == [2, 3]


def test_what_is_too_old_is_not_asked_for_again(office: Office) -> None:
    """S-101."""
    office.make(ttl=10_000, **BURY)
    office.subscribe(A)
    office.post("m1")
    office.told()
    assert office.later(30) == []
    (dead,) = office.dead()
    assert dead.letter is not None
    assert dead.letter.headers is not None
    assert dead.letter.headers["x-death-reason"] == "MessageExpired"


def test_what_waits_too_long_is_never_delivered(office: Office) -> None:
    """S-100."""
    office.make(ttl=10_000)
    office.post("m1")
    office.later(10)
    assert office.waiting() == ["m1"]
    office.later(1)
    office.subscribe(A)
    assert office.told() == []
    assert office.engine.counters.dropped == 1


def test_a_waiting_answer_keeps_its_span_when_the_clock_is_set(office: Office) -> None:
    office.subscribe(A)
    office.post("m1")
    office.told()
    office.now += 3_600_000
    clock.shift_spans(office.engine, 3_600_000)
    assert office.later(29) == []
    assert office.later(1) == [(A, "m1")]


# -- broken connections ----------------------------------------------------------------------------


def test_the_oldest_message_is_charged_for_a_broken_connection(office: Office) -> None:
    office.subscribe(A)
    office.post("m1", "m2")
    office.leave(A)
    assert _interruptions(office) == [1, 0]
    office.subscribe(A)
    office.leave(A, broken=False)
    assert _interruptions(office) == [1, 0]


def _interruptions(office: Office) -> list[int]:
    return [m.run.interruptions for m in office.engine.queues["q"].ready if m.run]


def test_one_that_takes_ten_connections_with_it_is_a_dead_letter(office: Office) -> None:
    office.make(**BURY)
    office.post("bad", "good")
    for _ in range(10):
        office.subscribe(A)
        office.leave(A)
    assert office.waiting() == ["good"]
    (dead,) = office.dead()
    assert dead.letter is not None
    assert dead.letter.headers is not None
    assert dead.letter.headers["x-death-reason"] == "WorkerLost"


def test_without_dead_letters_it_goes_to_the_tail(office: Office) -> None:
    office.post("bad", "good")
    for _ in range(10):
        office.now += 1
        office.subscribe(A)
        office.leave(A)
    assert office.waiting() == ["good", "bad"]


# -- given back ------------------------------------------------------------------------------------


def test_what_is_given_back_goes_to_the_next_in_turn(office: Office) -> None:
    office.subscribe(A, B)
    office.post("m1")
    office.told()
    assert office.nack(A, "m1")
    assert office.told() == [(B, "m1")]
    assert not office.nack(A, "m1")
    assert not office.nack(C, "m1")


def test_what_is_given_back_with_a_delay_comes_after_it(office: Office) -> None:
    office.subscribe(A)
    office.post("m1")
    office.told()
    assert office.nack(A, "m1", 5_000)
    assert office.later(4.999) == []
    assert office.later(0.001) == [(A, "m1")]


def test_what_is_given_back_too_often_is_dead(office: Office) -> None:
    office.make(**BURY)
    office.subscribe(A)
    office.post("m1")
    for _ in range(3):
        assert office.nack(A, "m1")
    (dead,) = office.dead()
    assert dead.letter is not None
    assert dead.letter.headers is not None
    assert dead.letter.headers["x-death-reason"] == "HandlerException"


# -- two kinds of consumers, two kinds of messages -------------------------------------------------


def test_pulls_and_subscriptions_share_a_queue_in_turn(office: Office) -> None:
    office.subscribe(A)
    wait(office.engine, "r1", conn=B)
    wait(office.engine, "r2", conn=C)
    office.post("m1", "m2", "m3", "m4")
    deliveries = office.engine.take().effects
    assert [type(effect).__name__ for effect in deliveries] == [
        "Deliver", "Reply", "Reply", "Deliver",
    ]  # fmt: skip
    assert [e.req for e in deliveries if isinstance(e, Reply)] == ["r1", "r2"]


def test_a_job_reaches_a_subscriber_under_its_id_and_is_completed_by_its_answer(
    office: Office,
) -> None:
    office.subscribe(A)
    put(office.engine, "job-1", body=b"\x81\xa1a\x01")
    (effect,) = office.engine.take().effects
    assert effect.payload == b'{"a":1}'  # type: ignore[union-attr]
    assert office.ack(A, "job-1") == [True]
    assert office.engine.messages["job-1"].state is State.DONE


def test_a_job_that_json_cannot_carry_is_a_dead_letter_and_says_why(office: Office) -> None:
    put(office.engine, "bin", body=b"\xc4\x01x")
    put(office.engine, "good", body=b"\x01")
    office.subscribe(A)
    assert office.told() == [(A, "good")]
    m = office.engine.messages["bin"]
    assert m.state is State.DEAD
    assert m.run is not None
    assert m.run.error == "JSON cannot carry binary data"


def test_thousands_that_cannot_be_carried_do_not_stand_in_the_way(office: Office) -> None:
    for n in range(3_000):
        put(office.engine, f"bin{n}", body=b"\xc4\x01x")
    office.subscribe(A)
    assert where(office.engine) == {"DEAD": 3_000}


def test_a_worker_pulls_a_letter_and_what_it_acknowledges_is_gone(office: Office) -> None:
    office.post("m1")
    m = hold(office.engine)
    assert m.letter is not None
    settle.ack(office.engine, m.id, m.lease.token if m.lease else None, NOW)
    assert not office.engine.messages


def test_a_letter_that_a_worker_fails_moves_to_the_dead_letters(office: Office) -> None:
    office.make(max_attempts=1, **BURY)
    office.post("m1")
    m = hold(office.engine)
    settle.fail(office.engine, m.id, m.lease.token if m.lease else None, NOW, error="boom")
    (dead,) = office.dead()
    assert dead.letter is not None
    assert dead.letter.headers is not None
    assert dead.letter.headers["x-death-text"] == "boom"


def test_an_unanswered_job_stays_a_dead_letter_of_its_queue(office: Office) -> None:
    office.subscribe(A)
    put(office.engine, "job-1", body=b"\x01")
    office.later(30)
    office.later(4)
    office.later(8)
    assert where(office.engine) == {"DEAD": 1}
    m = office.engine.messages["job-1"]
    assert m.run is not None
    assert m.run.cause == "max_attempts_exceeded"


def test_a_job_that_waits_for_an_answer_is_not_taken_for_stalled(office: Office) -> None:
    office.make(ack_wait=600_000)
    office.subscribe(A)
    put(office.engine, "job-1", body=b"\x01", timeout=1_000, stall_timeout=1_000)
    office.told()
    assert office.later(599) == []
    assert where(office.engine) == {"LEASED": 1}


def test_ready_order_is_kept_for_a_letter_that_comes_back(office: Office) -> None:
    office.subscribe(A, window=3)
    office.post("m1", "m2", "m3", "m4")
    office.unsubscribe(A)
    assert office.waiting() == ["m1", "m2", "m3", "m4"]


def test_names_are_settled_in_the_order_of_delivery() -> None:
    who = Subscriber(1)
    one, two, three = (Message(f"{n}", "q", "", b"", n, 0, 0) for n in range(3))
    for m in (one, two, three):
        who.add("same", m)
    who.drop("same", two)
    assert list(who.everything()) == [one, three]
    who.drop("same", one)
    assert who.held == {"same": three}
    who.drop("same", three)
    who.drop("same", three)
    assert (who.held, who.later) == ({}, {})
