"""Pausing and resuming: what a closed queue still does, and how its settings survive."""

from __future__ import annotations

from tests.engine.making import NOW, answers, hold, make_engine, put, token_of, wait

from tandemq.engine import consume, control, settle
from tandemq.engine.queue import NO_SETTINGS
from tandemq.model.policy import Stall


def test_a_paused_queue_hands_out_nothing_and_takes_everything() -> None:
    engine = make_engine()
    put(engine, "a")
    m = hold(engine)
    control.pause(engine, "q")
    wait(engine, "r")
    put(engine, "b")
    assert consume.take(engine, "q", 1, 1, None, NOW) == []
    assert settle.ack(engine, "a", token_of(m), NOW)
    assert answers(engine) == {}


def test_resuming_serves_those_who_wait() -> None:
    engine = make_engine()
    control.pause(engine, "q")
    put(engine, "a")
    wait(engine, "r")
    control.resume(engine, "q", NOW)
    assert answers(engine) == {"r": ["a"]}


def test_settings_are_facts_while_they_differ_from_the_default() -> None:
    engine = make_engine()
    control.pause(engine, "q")
    kept = engine.take().facts["queue/q"]
    assert kept is not None
    control.pause(engine, "q")
    assert engine.take().facts == {}  # nothing changed, nothing to write
    control.resume(engine, "q", NOW)
    assert engine.take().facts == {"queue/q": None}
    assert engine.queues == {}


def test_a_setting_stays_when_another_one_is_changed() -> None:
    engine = make_engine()
    q = engine.queue("q")
    control.configure(engine, q, stall=Stall(max_stalls=7))
    control.pause(engine, "q")
    control.resume(engine, "q", NOW)
    assert q.settings.stall.max_stalls == 7
    assert engine.queues["q"] is q
    assert engine.take().facts["queue/q"] is not None


def test_settings_come_back_as_they_were_stored() -> None:
    engine, again = make_engine(), make_engine()
    control.configure(engine, engine.queue("q"), paused=True, stall=Stall(interval=5))
    control.restore(again, "q", engine.take().facts["queue/q"])
    assert again.queues["q"].settings == engine.queues["q"].settings
    assert again.quiet
    control.restore(again, "q", None)
    assert again.queues == {}


def test_a_pause_that_is_undone_no_longer_keeps_anybody_waiting() -> None:
    engine = make_engine()
    put(engine, "a")
    control.pause(engine, "q")
    wait(engine, "r")
    control.restore(engine, "q", None, NOW)
    assert answers(engine) == {"r": ["a"]}
    assert engine.queues["q"].settings == NO_SETTINGS


def test_resuming_a_queue_that_does_not_exist_does_not_make_it() -> None:
    engine = make_engine()
    control.resume(engine, "q", NOW)
    assert engine.queues == {}
    assert engine.quiet
