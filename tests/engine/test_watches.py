"""Waiting for the end of a message."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import NOW, hold, make_engine, pass_time, put

from tandemq.engine import clock, consume, manage, settle, watches
from tandemq.engine.core import Engine
from tandemq.engine.watches import Watch
from tandemq.model.message import Message


def watch(
    engine: Engine, req: str, id: str = "m", *, conn: int = 1, any_end: bool = False
) -> Watch:
    def answer(m: Message | None, well: bool) -> Any:
        return (m.id if m else None, well)

    w = Watch(conn, req, id, NOW + 1_000, any_end, answer)
    watches.wait(engine, w)
    return w


def told(engine: Engine) -> dict[str, Any]:
    return {effect.req: effect.reply for effect in engine.take().effects}


def test_a_completion_answers_everybody_who_waits_for_it() -> None:
    engine = make_engine()
    put(engine, "m")
    watch(engine, "a")
    watch(engine, "b", conn=2)
    watch(engine, "other", "another")
    hold(engine, span=None)
    settle.ack(engine, "m", None, NOW)
    assert told(engine) == {"a": ("m", True), "b": ("m", True)}
    assert list(engine.watches) == ["another"]
    assert list(engine.watched_by) == [1]


def test_a_message_that_is_not_kept_answers_too() -> None:
    engine = make_engine()
    put(engine, "m", remove_on_complete=True)
    watch(engine, "a")
    hold(engine, span=None)
    settle.ack(engine, "m", None, NOW)
    assert told(engine) == {"a": ("m", True)}


def test_a_failure_answers_only_who_asked_for_any_end() -> None:
    engine = make_engine()
    put(engine, "m", max_attempts=1)
    watch(engine, "patient")
    watch(engine, "curious", any_end=True)
    hold(engine, span=None)
    settle.fail(engine, "m", None, NOW, error="e")
    assert told(engine) == {"curious": ("m", False)}
    pass_time(engine, NOW + 1_000)
    assert told(engine) == {"patient": (None, False)}
    assert engine.watches == {}
    assert engine.watched_by == {}


@pytest.mark.parametrize("verb", [manage.cancel, lambda e, m, now: manage.discard(e, m, None, now)])
def test_what_an_operator_takes_away_is_an_end_too(verb) -> None:
    engine = make_engine()
    m = put(engine, "m")
    watch(engine, "curious", any_end=True)
    verb(engine, m, NOW)
    assert told(engine) == {"curious": ("m", False)}


def test_a_watch_ends_with_its_time_and_not_before() -> None:
    engine = make_engine()
    put(engine, "m")
    watch(engine, "a")
    pass_time(engine, NOW + 999)
    assert told(engine) == {}
    pass_time(engine, NOW + 1_000)
    assert told(engine) == {"a": (None, False)}


def test_a_watch_goes_with_its_connection() -> None:
    engine = make_engine()
    put(engine, "m")
    watch(engine, "a")
    watch(engine, "b", conn=2)
    consume.disconnect(engine, 1, NOW)
    pass_time(engine, NOW + 1_000)
    assert told(engine) == {"b": (None, False)}


def test_a_watch_lasts_as_long_when_the_clock_is_set() -> None:
    engine = make_engine()
    put(engine, "m")
    watch(engine, "a")
    clock.shift_spans(engine, 50_000)
    pass_time(engine, NOW + 50_999)
    assert told(engine) == {}
    pass_time(engine, NOW + 51_000)
    assert told(engine) == {"a": (None, False)}


def test_a_timer_that_rings_too_early_is_set_again() -> None:
    engine = make_engine()
    w = watch(engine, "a")
    watches.give_up(engine, w, NOW)
    assert told(engine) == {}
    assert clock.next_wake(engine) == NOW + 1_000


def test_what_may_not_be_read_any_more_is_waited_for_no_longer() -> None:
    engine = make_engine()
    put(engine, "m", queue="a")
    put(engine, "n", queue="b")
    for req, id in (("kept", "m"), ("ended", "n"), ("of nothing", "gone")):
        watch(engine, req, id)
    watch(engine, "other", "n", conn=2)
    watches.withdraw(engine, 1, lambda queue: queue == "a")
    assert told(engine) == {"ended": (None, False), "of nothing": (None, False)}
    assert [w.req for w in engine.watched_by[1]] == ["kept"]
    assert [w.req for w in engine.watched_by[2]] == ["other"]
