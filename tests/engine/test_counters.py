"""What the engine counts."""

from __future__ import annotations

from dataclasses import asdict

from tests.engine.making import NOW, hold, make_engine, pass_time, put, token_of

from tandemq.engine import consume, settle
from tandemq.engine.counters import Counters


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
