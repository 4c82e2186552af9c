"""What time alone does: everything that is due, in order, never late, and never all at once."""

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

from tandemq.engine import clock, settle
from tandemq.model.message import State

DELAYED, READY, LEASED, GONE = State.DELAYED, State.READY, State.LEASED, State.GONE


def test_nothing_pending_needs_no_waking() -> None:
    engine = make_engine()
    assert clock.next_wake(engine) is None
    put(engine)
    assert clock.next_wake(engine) is None
    clock.tick(engine, NOW + 10**9)
    assert where(engine) == {"READY": 1}


def test_a_delayed_message_is_ready_at_its_moment() -> None:
    engine = make_engine()
    put(engine, "late", delay=20)
    put(engine, "soon", delay=10)
    assert clock.next_wake(engine) == NOW + 10
    clock.tick(engine, NOW + 9)
    assert where(engine) == {"DELAYED": 2}
    clock.tick(engine, NOW + 10)
    assert ready(engine) == ["soon"]
    assert clock.next_wake(engine) == NOW + 20
    clock.tick(engine, NOW + 500)
    assert ready(engine) == ["soon", "late"]


def test_whoever_waits_gets_what_becomes_due() -> None:
    engine = make_engine()
    put(engine, "a", delay=10)
    wait(engine, "r", until=NOW + 10)  # both at one moment, the message was first
    clock.tick(engine, NOW + 10)
    assert answers(engine) == {"r": ["a"]}


@pytest.mark.parametrize(("ttl", "last"), [(0, 0), (100, 100), (99.9, 99)])
@pytest.mark.parametrize("delay", [0, 1_000])
def test_a_message_that_waits_too_long_is_gone(ttl: float, last: int, delay: int) -> None:
    engine = make_engine()
    m = put(engine, "m", ttl=ttl, delay=delay)
    assert clock.next_wake(engine) == NOW + last + 1
    clock.tick(engine, NOW + last)
    assert m.state is (DELAYED if delay else READY)
    clock.tick(engine, NOW + last + 1)
    assert m.state is GONE
    assert engine.counters.expired == 1
    assert engine.messages == engine.queues == {}
    assert engine.take().changed == {m.seq: m}


def test_a_delay_that_ends_first_makes_it_ready_first() -> None:
    engine = make_engine()
    m = put(engine, "m", ttl=100, delay=40)
    clock.tick(engine, NOW + 40)
    assert m.state is READY
    assert clock.next_wake(engine) == NOW + 101


def test_a_clock_that_comes_late_drops_what_expired_before_anybody_gets_it() -> None:
    engine = make_engine()
    put(engine, "m", ttl=100, delay=40)
    wait(engine, "r", until=NOW + 10**6)
    clock.tick(engine, NOW + 500)
    assert answers(engine) == {}
    assert engine.counters.expired == 1


def test_a_message_that_is_held_does_not_expire() -> None:
    engine = make_engine()
    m = put(engine, "m", ttl=100, backoff=0)
    hold(engine)
    clock.tick(engine, NOW + 5_000)
    assert m.state is LEASED
    settle.fail(engine, "m", token_of(m), NOW + 5_000)
    assert m.state is READY
    assert clock.next_wake(engine) is not None
    clock.tick(engine, NOW + 5_000)
    assert m.state is GONE


def test_a_tick_rings_at_most_so_many_and_asks_for_another(monkeypatch) -> None:
    monkeypatch.setattr(clock, "SLICE", 3)
    engine = make_engine()
    for n in range(7):
        put(engine, str(n), delay=10 + n)
    for left in (4, 1, 0):
        wake = clock.next_wake(engine)
        assert wake is not None
        assert wake <= NOW + 50
        clock.tick(engine, NOW + 50)
        assert where(engine).get("DELAYED", 0) == left
    assert clock.next_wake(engine) is None
    assert ready(engine) == list("0123456")


def test_a_lease_that_lives_on_is_looked_at_again_in_time() -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine, span=20_000)
    rings = []
    while m.state is LEASED:
        wake = clock.next_wake(engine)
        assert wake is not None
        rings.append(wake - NOW)
        clock.tick(engine, wake)
    assert rings[-1] == 20_800
    assert len(rings) <= 3


# -- the wall clock is set (ruling 20) -------------------------------------------------------------


@pytest.mark.parametrize("step", [-3_600_000, 3_600_000])
def test_spans_move_with_a_clock_that_is_set(step: int) -> None:
    engine = make_engine()
    owned = put(engine, "owned", timeout=50_000)
    plain = put(engine, "plain")
    hold(engine, span=20_000)
    hold(engine, span=None)
    c = wait(engine, "r", until=NOW + 10_000)
    engine.take()
    clock.shift_spans(engine, step)
    assert owned.lease is not None
    assert owned.run is not None
    assert (owned.lease.until, owned.run.started) == (NOW + 20_000 + step, NOW + step)
    assert owned.run.heartbeat == NOW + step
    assert plain.lease is not None
    assert plain.lease.until == 0
    assert c.until == NOW + 10_000 + step
    assert set(engine.take().changed) == {owned.seq, plain.seq}  # their rows hold moments
    pass_time(engine, NOW + step + 9_999)
    assert answers(engine) == {}
    pass_time(engine, NOW + step + 10_000)
    assert answers(engine) == {"r": []}
    pass_time(engine, NOW + step + 20_799)
    assert owned.state is LEASED
    pass_time(engine, NOW + step + 20_800)
    assert owned.state is READY
    pass_time(engine, NOW + step + 35_000)
    assert plain.state is DELAYED


def test_moments_stay_where_they_are_when_the_clock_is_set() -> None:
    engine = make_engine()
    delayed, mortal = put(engine, "delayed", delay=500), put(engine, "mortal", ttl=500)
    clock.shift_spans(engine, 3_600_000)
    assert (delayed.due, mortal.created) == (NOW + 500, NOW)
    assert clock.next_wake(engine) == NOW + 500
    assert engine.take().changed.keys() == {delayed.seq, mortal.seq}
    assert engine.quiet
