"""What the engine counts."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from tests.engine.making import NOW, hold, make_engine, pass_time, put, token_of
from tests.engine.office import A, B, Office

from tandemq.engine import consume, settle
from tandemq.engine.counters import Counters
from tandemq.model.broker import Mode


def test_everything_begins_at_zero() -> None:
    assert set(asdict(Counters()).values()) == {0}


def test_each_way_of_a_message_is_counted_once() -> None:
    engine = make_engine()
    counted = asdict(engine.counters)

    def grown() -> dict[str, int]:
        nonlocal counted
        before, counted = counted, asdict(engine.counters)
        return {name: n - before[name] for name, n in counted.items() if n != before[name]}

    put(engine, "a", max_attempts=3, backoff=0)
    assert grown() == {"pushed": 1}
    m = hold(engine)
    assert grown() == {"pulled": 1}
    settle.fail(engine, "a", token_of(m), NOW)
    assert grown() == {"retried": 1}
    hold(engine)
    consume.disconnect(engine, 1, NOW)
    assert grown() == {"pulled": 1, "interrupted": 1}
    hold(engine, span=1_000)
    pass_time(engine, NOW + 2_000)
    assert grown() == {"pulled": 1, "stalled": 1}
    m = hold(engine)
    settle.fail(engine, "a", token_of(m), NOW, unrecoverable=True)
    assert grown() == {"pulled": 1, "failed": 1}
    put(engine, "b")
    m = hold(engine)
    settle.ack(engine, "b", token_of(m), NOW)
    assert grown() == {"pushed": 1, "pulled": 1, "completed": 1}
    put(engine, "c", ttl=10)
    pass_time(engine, NOW + 11)
    assert grown() == {"pushed": 1, "expired": 1}


MODES = (Mode.ROUND_ROBIN, Mode.PRIORITY_BASED, Mode.FAN_OUT_WITH_ACK, Mode.FAN_OUT_WITHOUT_ACK)


@pytest.mark.parametrize("mode", MODES)
def test_the_latency_is_the_wait_for_the_first_delivery(mode: Mode) -> None:
    office = Office()
    office.make(mode=mode, max_attempts=5)
    counters = office.engine.counters
    assert counters.latency == 0
    office.post("a")
    office.now += 40
    office.post("b")
    office.now += 20
    office.subscribe(A)
    assert (counters.delivered, counters.waited) == (2, 80)
    assert counters.latency == 40
    pass_time(office.engine, office.now + 31_000)  # what nobody has answered is delivered again
    assert (counters.delivered, counters.waited) == (2, 80)


def test_each_copy_of_a_fan_out_has_waited() -> None:
    office = Office()
    office.make(mode=Mode.FAN_OUT_WITH_ACK)
    office.subscribe(A, B, window=1)
    office.post("a", "b")
    assert (office.engine.counters.delivered, office.engine.counters.waited) == (2, 0)
    office.now += 30
    office.ack(A, "a")  # who has a place for the other one
    assert (office.engine.counters.delivered, office.engine.counters.waited) == (3, 30)


def test_jobs_have_no_latency_since_publishers_say_when_they_were_made() -> None:
    office = Office()
    put(office.engine, "a", created=0)
    office.subscribe(A)
    counters = office.engine.counters
    assert (counters.delivered, counters.timed, counters.latency) == (1, 0, 0)


def test_a_clock_that_was_set_back_takes_no_wait_away() -> None:
    office = Office()
    office.post("a")
    office.now -= 10_000
    office.subscribe(A)
    assert (office.engine.counters.timed, office.engine.counters.waited) == (1, 0)
