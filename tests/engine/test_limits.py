"""Limits of a queue: tokens, places, silence; each end of a limit wakes who waits."""

from __future__ import annotations

from tests.engine.making import NOW, hold, make_engine, put, wait

from tandemq.engine import clock, consume, control, limits, settle
from tandemq.engine.core import Engine
from tandemq.engine.lane import Terms
from tandemq.model.policy import Rate, Stall


def taken(engine: Engine, count: int, now: int = NOW) -> list[str]:
    return [m.id for m in consume.take(engine, "q", 1, count, None, now)]


def answered(engine: Engine) -> list[str]:
    return [reply.messages[0].id for reply in engine.take().effects]


def test_a_batch_gets_as_many_as_there_are_tokens_and_refills_evenly() -> None:
    engine = make_engine()
    for id in "abcdef":
        put(engine, id)
    limits.set_rate(engine, "q", 2, 1000, NOW)
    assert taken(engine, 5) == ["a", "b"]
    assert taken(engine, 5, NOW + 499) == []
    assert taken(engine, 5, NOW + 500) == ["c"]
    assert taken(engine, 5, NOW + 60_000) == ["d", "e"], "never more than the bucket holds"


def test_an_empty_pull_costs_no_token() -> None:
    engine = make_engine()
    limits.set_rate(engine, "q", 1, 60_000, NOW)
    assert taken(engine, 1) == taken(engine, 1) == []
    put(engine, "a")
    assert taken(engine, 1) == ["a"]


def test_the_refill_wakes_who_waits() -> None:
    engine = make_engine()
    put(engine, "a")
    put(engine, "b")
    limits.set_rate(engine, "q", 1, 1000, NOW)
    assert taken(engine, 2) == ["a"]
    wait(engine, "r")
    assert clock.next_wake(engine) == NOW + 1000
    clock.tick(engine, NOW + 1000)
    assert answered(engine) == ["b"]


def test_the_end_of_a_limit_wakes_who_waits_and_is_stored() -> None:
    engine = make_engine()
    put(engine, "a")
    limits.set_rate(engine, "q", 0, 1000, NOW, ttl=700)
    wait(engine, "r")
    assert limits.view(engine, "q", 1, NOW + 100).opens_in == 600
    engine.take()
    clock.tick(engine, NOW + 700)
    outcome = engine.take()
    assert [reply.messages[0].id for reply in outcome.effects] == ["a"]
    assert outcome.facts == {"queue/q": None}
    assert limits.view(engine, "q", 1, NOW + 700).rate is None


def test_clearing_a_limit_wakes_who_waits() -> None:
    engine = make_engine()
    put(engine, "a")
    limits.set_rate(engine, "q", 0, 1000, NOW)
    assert limits.view(engine, "q", 1, NOW).opens_in == limits.NEVER_OPENS
    wait(engine, "r")
    limits.clear_rate(engine, "q", NOW)
    assert answered(engine) == ["a"]


def test_a_cost_takes_so_many_tokens_and_one_above_the_bucket_waits_for_a_full_one() -> None:
    engine = make_engine()
    put(engine, "a", cost=3)
    put(engine, "b", cost=8)
    put(engine, "c")
    limits.set_rate(engine, "q", 4, 4000, NOW)
    assert taken(engine, 3) == ["a"]
    assert taken(engine, 3, NOW + 2999) == []
    assert taken(engine, 3, NOW + 3000) == ["b"]
    assert taken(engine, 3, NOW + 3000 + 4999) == [], "its debt is paid first"
    assert taken(engine, 3, NOW + 3000 + 5000) == ["c"]


def test_tokens_left_over_by_a_dear_message_go_to_who_may_take_a_cheap_one() -> None:
    engine = make_engine()
    for id, group, cost in (("a1", "a", 1), ("a2", "a", 5), ("a3", "a", 1)):
        put(engine, id, group=group, cost=cost)
    limits.set_rate(engine, "q", 5, 5000, NOW)
    assert taken(engine, 2) == ["a1"]
    wait(engine, "any")
    wait(engine, "picky", terms=Terms(affinity="b"))
    put(engine, "b1", group="b")
    assert answered(engine) == ["b1"]


def test_everything_leased_counts_whenever_the_limit_was_set() -> None:
    engine = make_engine()
    for id in "abc":
        put(engine, id)
    m = hold(engine)
    limits.set_concurrency(engine, "q", 1, NOW)
    assert limits.view(engine, "q", 1, NOW).full
    wait(engine, "r")
    settle.fail(engine, m.id, m.lease.token, NOW)  # type: ignore[union-attr]
    assert answered(engine) == ["b"], "also where the failed one comes back later"
    limits.set_concurrency(engine, "q", None, NOW)
    assert taken(engine, 5) == ["c"]


def test_a_place_that_becomes_free_in_any_way_rings() -> None:
    engine = make_engine()
    put(engine, "a")
    put(engine, "b")
    limits.set_concurrency(engine, "q", 1, NOW)
    m = hold(engine)
    wait(engine, "r")
    engine.shift(m, "reschedule", type(m.state).DELAYED)
    clock.tick(engine, NOW)
    assert answered(engine) == ["b"]


def test_limits_are_settings_and_levels_are_not() -> None:
    engine = make_engine()
    put(engine, "a")
    limits.set_rate(engine, "q", 1, 60_000, NOW)
    limits.set_concurrency(engine, "q", 3, NOW)
    fact = engine.take().facts["queue/q"]
    assert taken(engine, 1) == ["a"]
    other = make_engine()
    control.restore(other, "q", fact)
    view = limits.view(other, "q", 1, NOW)
    assert (view.rate, view.opens_in, view.concurrency) == (Rate(1, 60_000), 0, 3)


def test_an_equal_limit_set_again_begins_anew() -> None:
    engine = make_engine()
    put(engine, "a")
    put(engine, "b")
    for id in "ab":
        limits.set_rate(engine, "q", 1, 60_000, NOW)
        assert taken(engine, 2) == [id]


def test_tokens_move_with_the_clock() -> None:
    engine = make_engine()
    put(engine, "a")
    put(engine, "b")
    limits.set_rate(engine, "q", 1, 1000, NOW)
    assert taken(engine, 2) == ["a"]
    clock.shift_spans(engine, -60_000)
    assert taken(engine, 1, NOW - 60_000 + 999) == []
    assert taken(engine, 1, NOW - 60_000 + 1000) == ["b"]


def test_a_shorter_stall_interval_takes_effect_for_what_is_leased() -> None:
    engine = make_engine()
    m = put(engine, "a", max_attempts=5, backoff=0)
    hold(engine, span=None)
    clock.tick(engine, NOW + 5_000)  # its timer now waits for the long interval
    limits.set_stall(engine, "q", NOW + 5_000, interval=1_000, grace=0)
    assert limits.stall_of(engine, "q") == Stall(interval=1_000, grace=0)
    clock.tick(engine, NOW + 6_000)
    assert (m.attempts, m.state.name) == (1, "READY")


def test_a_queue_that_nobody_knows_has_no_limits() -> None:
    engine = make_engine()
    assert limits.view(engine, "q", 1, NOW) == (None, limits.NO_LIMIT, None, False)
    assert limits.stall_of(engine, "q") == Stall()
    limits.clear_rate(engine, "q", NOW)
    limits.set_concurrency(engine, "q", None, NOW)
    assert not engine.queues
