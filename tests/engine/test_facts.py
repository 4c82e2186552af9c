"""Facts find their way back by their kind."""

from __future__ import annotations

from tests.engine.making import NOW, answers, make_engine, put, wait

from tandemq.engine import control, facts, users
from tandemq.engine.webhooks import Webhook


def test_every_kind_of_fact_is_restored_where_it_belongs() -> None:
    engine, later = make_engine(), make_engine()
    control.pause(engine, "q")
    engine.logs.add(engine, "m", b"line")
    engine.tallies.count(engine, "q", NOW, well=True)
    engine.tallies.flush(engine)
    hook = Webhook("h", "https://h.example/", ("job.pushed",), None, None, NOW)
    engine.webhooks.put(engine, hook)
    users.create(engine, "root", "hash", NOW, superuser=True)
    for key, value in engine.take().facts.items():
        facts.restore(later, key, value)
    assert later.queues["q"].settings.paused
    assert later.logs.of("m") == [b"line"]
    assert later.tallies.of("q").completed.total == 1
    assert later.webhooks.listed() == [hook]
    assert later.users.find("root").superuser


def test_settings_that_come_back_into_a_running_engine_hold_for_those_who_wait() -> None:
    engine = make_engine()
    put(engine, "a")
    control.pause(engine, "q")
    wait(engine, "r")
    facts.restore(engine, "queue/q", None, NOW)
    assert answers(engine) == {"r": ["a"]}


def test_a_fact_of_an_unknown_kind_changes_nothing() -> None:
    engine = make_engine()
    facts.restore(engine, "probe", b"1")
    assert engine.quiet
