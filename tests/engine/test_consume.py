"""Demand: who gets what, for how long, and what a lost connection means."""

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

from tandemq.engine import clock, consume, limits, settle
from tandemq.model.message import State
from tandemq.model.policy import BATCH_BYTES, INTERRUPTIONS

READY, LEASED, DEAD = State.READY, State.LEASED, State.DEAD


# -- taking ----------------------------------------------------------------------------------------


def test_a_pull_takes_what_is_best_up_to_what_it_asks_for() -> None:
    engine = make_engine()
    for id, priority in (("a", 0), ("b", 1), ("c", 2)):
        put(engine, id, priority=priority)
    assert [m.id for m in consume.take(engine, "q", 1, 2, None, NOW)] == ["c", "b"]
    assert [m.id for m in consume.take(engine, "q", 1, 5, None, NOW)] == ["a"]
    assert consume.take(engine, "q", 1, 5, None, NOW) == []


@pytest.mark.parametrize("how", ["taken", "waited for", "limited"])
def test_large_messages_come_in_smaller_numbers_but_always_one(how: str) -> None:
    engine = make_engine()
    third, larger = bytes(BATCH_BYTES // 3 + 1), bytes(BATCH_BYTES + 1)
    bodies = [third] * 4 + [larger, b"x"]

    def take() -> int:
        if how == "taken":
            return len(consume.take(engine, "q", 1, 100, None, NOW))
        wait(engine, "r", count=100)
        engine.match(engine.queues["q"], NOW)
        return len(answers(engine)["r"])

    if how == "limited":
        limits.set_concurrency(engine, "q", 1_000, NOW)
    for body in bodies:
        put(engine, body=body)
    assert [take() for _ in range(3)] == [3, 2, 1]


@pytest.mark.parametrize("count", [0, -1])
def test_a_pull_that_asks_for_nothing_gets_nothing(count: int) -> None:
    engine = make_engine()
    put(engine)
    assert consume.take(engine, "q", 1, count, None, NOW) == []


def test_asking_makes_no_queue() -> None:
    engine = make_engine()
    assert consume.take(engine, "q", 1, 1, None, NOW) == []
    assert engine.queues == {}


def test_a_lease_is_a_token_until_a_moment_on_a_connection() -> None:
    engine = make_engine()
    m = put(engine)
    assert hold(engine, conn=7, span=500) is m
    assert m.lease is not None
    assert (m.lease.token, m.lease.until, m.lease.span) == ("id-2", NOW + 500, 500)
    assert (m.lease.conn, m.lease.renewals) == (7, 0)
    assert m.run is not None
    assert (m.state, m.leases, m.run.started, m.run.heartbeat) == (LEASED, 1, NOW, NOW)
    assert engine.leased_by == {7: {m.seq: m}}


def test_a_lease_without_owner_has_no_token_and_no_end() -> None:
    engine = make_engine()
    m = put(engine)
    hold(engine, span=None)
    assert m.lease is not None
    assert (m.lease.token, m.lease.until) == (None, 0)


def test_a_message_is_handed_out_only_once_at_a_time_and_never_with_the_same_token() -> None:
    engine = make_engine()
    m = put(engine, backoff=0, max_attempts=50)
    tokens = set()
    for n in range(20):
        hold(engine)
        assert consume.take(engine, "q", 2, 1, 1_000, NOW) == []
        assert m.leases == n + 1
        tokens.add(token_of(m))
        settle.fail(engine, m.id, token_of(m), NOW)
    assert len(tokens) == 20


def test_a_message_past_its_time_is_never_handed_out() -> None:
    engine = make_engine()
    put(engine, "old", ttl=100)
    put(engine, "new", ttl=101)
    assert [m.id for m in consume.take(engine, "q", 1, 5, None, NOW + 101)] == ["new"]
    assert engine.counters.expired == 1
    put(engine, "alone", ttl=0, queue="p")
    assert consume.take(engine, "p", 1, 5, None, NOW + 1) == []
    assert "p" not in engine.queues


def test_nothing_is_handed_out_while_the_server_winds_down() -> None:
    engine = make_engine()
    engine.granting = False
    put(engine)
    wait(engine, "r")
    assert consume.take(engine, "q", 1, 1, None, NOW) == []
    put(engine)
    assert answers(engine) == {}


# -- waiting ---------------------------------------------------------------------------------------


def test_pulls_that_wait_are_served_first_come_first_served() -> None:
    engine = make_engine()
    for req, conn in (("r1", 1), ("r2", 2), ("r3", 1)):
        wait(engine, req, conn=conn)
    for id in "ab":
        put(engine, id)
    assert answers(engine) == {"r1": ["a"], "r2": ["b"]}
    assert [c.req for c in engine.waiting[1]] == ["r3"]
    assert 2 not in engine.waiting


def test_a_pull_that_waits_gets_the_lease_it_asked_for() -> None:
    engine = make_engine()
    wait(engine, "owned", conn=3, span=700)
    wait(engine, "detached", conn=3, detach=True)
    owned, detached = put(engine), put(engine)
    assert owned.lease is not None
    assert (owned.lease.until, owned.lease.conn) == (NOW + 700, 3)
    assert detached.lease is not None
    assert (detached.lease.token, detached.lease.conn) == (None, None)


def test_a_pull_takes_several_at_once_but_does_not_wait_for_more() -> None:
    engine = make_engine()
    wait(engine, "r", count=3)
    put(engine, "a")
    put(engine, "b")
    assert answers(engine) == {"r": ["a"]}


def test_a_pull_whose_time_is_over_is_answered_with_nothing() -> None:
    engine = make_engine()
    c = wait(engine, "r", until=NOW + 100)
    pass_time(engine, NOW + 99)
    assert answers(engine) == {}
    pass_time(engine, NOW + 100)
    assert answers(engine) == {"r": []}
    assert (engine.waiting, engine.queues, c.closed) == ({}, {}, True)
    put(engine)
    assert answers(engine) == {}


def test_a_pull_that_is_woken_too_early_goes_on_waiting() -> None:
    engine = make_engine()
    c = wait(engine, "r", until=NOW + 100)
    engine.timers.set(c, NOW + 10)
    clock.tick(engine, NOW + 10)
    assert answers(engine) == {}
    assert clock.next_wake(engine) == NOW + 100


def test_a_queue_with_others_who_wait_outlives_one_that_gives_up() -> None:
    engine = make_engine()
    wait(engine, "short", until=NOW + 10)
    wait(engine, "long", until=NOW + 20)
    pass_time(engine, NOW + 10)
    put(engine, "a")
    assert answers(engine) == {"short": [], "long": ["a"]}


# -- disconnecting ---------------------------------------------------------------------------------


def test_what_a_lost_connection_held_goes_back_to_its_place_uncharged() -> None:
    engine = make_engine()
    for id in "abc":
        put(engine, id)
    a, b = hold(engine, conn=1), hold(engine, conn=2)
    consume.disconnect(engine, 1, NOW + 50)
    assert ready(engine) == ["a", "c"]
    assert a.run is not None
    assert (a.attempts, a.run.stalls, a.run.interruptions) == (0, 0, 1)
    assert (a.lease, a.run.started) == (None, 0)
    assert [step.state for step in a.run.history] == [LEASED]
    assert b.lease is not None
    assert list(engine.leased_by) == [2]


def test_the_best_of_what_a_lost_connection_held_goes_to_those_who_wait() -> None:
    engine = make_engine()
    for id, priority in (("low", 0), ("high", 9), ("middle", 5)):
        put(engine, id, priority=priority)
        hold(engine, conn=1)
    wait(engine, "one", conn=2, until=NOW + 500)
    wait(engine, "rest", conn=3, count=5, until=NOW + 500)
    consume.disconnect(engine, 1, NOW)
    assert answers(engine) == {"one": ["high"], "rest": ["middle", "low"]}


def test_the_pulls_of_a_lost_connection_wait_no_longer() -> None:
    engine = make_engine()
    wait(engine, "r1", conn=1)
    wait(engine, "r2", conn=2)
    wait(engine, "r3", conn=1, queue="another")
    consume.disconnect(engine, 1, NOW)
    put(engine, "a")
    assert answers(engine) == {"r2": ["a"]}
    assert list(engine.queues) == ["q"]
    assert 1 not in engine.waiting


def test_what_it_held_is_not_handed_to_its_own_waiting_pull() -> None:
    engine = make_engine()
    m = put(engine)
    hold(engine, conn=1)
    wait(engine, "r", conn=1)
    consume.disconnect(engine, 1, NOW)
    assert m.state is READY
    assert answers(engine) == {}


def test_a_lease_that_was_renewed_outlives_its_connection() -> None:
    engine = make_engine()
    m = put(engine)
    hold(engine, conn=1, span=1_000)
    settle.extend(engine, m.id, token_of(m), NOW + 1)
    engine.take()
    consume.disconnect(engine, 1, NOW + 2)
    assert m.lease is not None
    assert (m.state, m.lease.conn) == (LEASED, None)
    assert engine.leased_by == {}
    assert engine.take().changed == {m.seq: m}  # its row names the connection
    assert settle.ack(engine, m.id, token_of(m), NOW + 3)


def test_what_a_guest_was_given_outlives_its_connection() -> None:
    engine = make_engine()
    m, other = put(engine, "a"), put(engine, "b")
    hold(engine, conn=1, span=1_000)
    hold(engine, conn=2, span=1_000)
    engine.take()
    consume.keep(engine, 1)
    assert engine.take().changed == {m.seq: m}  # its row names the connection
    consume.disconnect(engine, 1, NOW + 2)
    consume.disconnect(engine, 2, NOW + 2)
    assert (m.state, other.state) == (LEASED, READY)
    assert settle.ack(engine, m.id, token_of(m), NOW + 3)


def test_a_detached_job_outlives_its_connection() -> None:
    engine = make_engine()
    m = put(engine)
    hold(engine, conn=None, span=None)
    consume.disconnect(engine, 1, NOW)
    assert m.state is LEASED


def test_a_connection_that_held_nothing_is_forgotten_without_a_trace() -> None:
    engine = make_engine()
    put(engine)
    engine.take()
    consume.disconnect(engine, 9, NOW)
    assert engine.quiet


@pytest.mark.parametrize("removed", [False, True])
def test_a_job_that_takes_too_many_connections_with_it_becomes_a_dead_letter(removed) -> None:
    engine = make_engine()
    m = put(engine, "killer", max_attempts=1, remove_on_fail=removed)
    for n in range(INTERRUPTIONS):
        assert m.state is READY
        hold(engine, conn=n)
        consume.disconnect(engine, n, NOW + n)
    assert m.run is not None
    assert (m.attempts, m.run.interruptions, m.run.cause) == (0, 10, "worker_lost")
    assert m.run.error == "Connection lost 10 times while it was running"
    assert m.run.finished == NOW + INTERRUPTIONS - 1
    assert engine.counters.failed == 1
    assert where(engine) == ({} if removed else {"DEAD": 1})


# -- stopping --------------------------------------------------------------------------------------


def test_a_clean_stop_gives_back_what_is_leased_and_charges_nothing() -> None:
    engine = make_engine()
    for id in "abcd":
        put(engine, id, queue="q" if id < "c" else "p")
    held = [hold(engine), hold(engine, span=None, queue="p")]
    wait(engine, "r", queue="empty")
    consume.release_all(engine, NOW + 5)
    assert ready(engine) == ["a", "b"]
    assert ready(engine, "p") == ["c", "d"]
    for m in held:
        assert m.run is not None
        assert (m.attempts, m.run.stalls, m.run.interruptions) == (0, 0, 0)
    assert not engine.granting
    assert answers(engine) == {}
    assert engine.leased_by == {}


def test_what_is_held_may_be_settled_until_the_stop() -> None:
    engine = make_engine()
    m = put(engine)
    hold(engine)
    engine.granting = False
    assert settle.ack(engine, m.id, token_of(m), NOW)
    consume.release_all(engine, NOW)
    assert where(engine) == {"DONE": 1}


def test_a_job_may_set_how_many_connections_it_may_lose() -> None:
    engine = make_engine()
    m = put(engine, max_interruptions=2)
    for n in range(2):
        hold(engine, conn=n)
        consume.disconnect(engine, n, NOW)
    assert m.run is not None
    assert (m.state, m.run.cause) == (DEAD, "worker_lost")


def test_without_a_limit_a_lost_connection_never_ends_a_job() -> None:
    engine = make_engine()
    m = put(engine, max_interruptions=0)
    for n in range(INTERRUPTIONS + 5):
        hold(engine, conn=n)
        consume.disconnect(engine, n, NOW)
    assert m.run is not None
    assert (m.state, m.attempts, m.run.interruptions) == (READY, 0, INTERRUPTIONS + 5)


def test_what_may_not_be_taken_any_more_is_waited_for_no_longer() -> None:
    engine = make_engine()
    wait(engine, "a", queue="a", conn=1)
    wait(engine, "b", queue="b", conn=1)
    wait(engine, "other", queue="b", conn=2)
    consume.withdraw(engine, 1, lambda queue: queue == "a", NOW)
    assert answers(engine) == {"b": []}
    put(engine, "x", queue="b")
    put(engine, "y", queue="a")
    assert answers(engine) == {"other": ["x"], "a": ["y"]}
    consume.withdraw(engine, 3, lambda queue: False, NOW)
    assert not engine.take().effects


def test_a_queue_nobody_waits_for_any_more_is_forgotten() -> None:
    engine = make_engine()
    wait(engine, "r", queue="made up", conn=1)
    consume.withdraw(engine, 1, lambda queue: False, NOW)
    assert not engine.queues
    assert not engine.waiting
