"""Rules for groups: who is woken, what is stored, and messages given back for later."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, hold, make_engine, put, wait

from tandemq.engine import clock, consume, groups
from tandemq.engine.core import Engine
from tandemq.engine.lane import NO_GROUP, NO_RULE, GroupRule, Terms
from tandemq.model.errors import GroupFull, NotLeased, WrongToken
from tandemq.model.message import State


def answered(engine: Engine) -> list[list[str]]:
    return [[m.id for m in reply.messages] for reply in engine.take().effects]


def test_resuming_a_group_wakes_who_waits() -> None:
    engine = make_engine()
    put(engine, "a", group="g")
    assert groups.change(engine, "q", "g", NOW, paused=True)
    assert not groups.change(engine, "q", "g", NOW, paused=True)
    wait(engine, "r")
    assert answered(engine) == []
    assert groups.change(engine, "q", "g", NOW, paused=False)
    assert answered(engine) == [["a"]]


def test_the_end_of_a_closure_wakes_who_waits_and_is_forgotten() -> None:
    engine = make_engine()
    put(engine, "a", group="g")
    groups.close(engine, "q", "g", 100, NOW)
    assert groups.opens_in(engine, "q", "g", None, NOW + 40) == 60
    wait(engine, "r")
    assert clock.next_wake(engine) == NOW + 100
    engine.take()
    clock.tick(engine, NOW + 100)
    outcome = engine.take()
    assert [r.messages[0].id for r in outcome.effects] == ["a"]
    assert outcome.facts == {"group/q\0g": None}
    assert groups.opens_in(engine, "q", "g", None, NOW + 100) == -2


def test_the_end_of_a_window_wakes_who_waits() -> None:
    engine, terms = make_engine(), Terms(max=1, duration=100)
    put(engine, "a", group="g")
    put(engine, "b", group="g")
    assert [m.id for m in consume.take(engine, "q", 1, 5, None, NOW, terms)] == ["a"]
    assert groups.opens_in(engine, "q", "g", None, NOW + 1) == 99
    assert groups.opens_in(engine, "q", "g", 2, NOW + 1) == 0
    wait(engine, "r", terms=terms)
    clock.tick(engine, NOW + 99)
    assert answered(engine) == []
    clock.tick(engine, NOW + 100)
    assert answered(engine) == [["b"]]


def test_a_rule_is_a_fact_and_comes_back_from_it() -> None:
    engine = make_engine()
    groups.change(engine, "q", "a/b", NOW, paused=True, weight=4)
    (key, fact) = engine.take().facts.popitem()
    other = make_engine()
    groups.restore(other, key.removeprefix(groups.FACT), fact)
    assert groups.rule_of(other, "q", "a/b") == GroupRule(paused=True, weight=4)
    groups.restore(other, key.removeprefix(groups.FACT), None)
    assert groups.rule_of(other, "q", "a/b") == NO_RULE
    assert not other.queues, "a queue without anything is forgotten"


def test_a_rule_that_is_undone_lets_those_have_who_waited() -> None:
    engine = make_engine()
    put(engine, "a", group="g")
    groups.change(engine, "q", "g", NOW, paused=True)
    wait(engine, "r")
    groups.restore(engine, "q\0g", None)
    clock.tick(engine, NOW)
    assert answered(engine) == [["a"]]


def test_all_rules_of_a_queue_can_be_forgotten() -> None:
    engine = make_engine()
    for group in ("a", "b"):
        groups.change(engine, "q", group, NOW, paused=True)
    engine.take()
    groups.forget_rules(engine, engine.queues["q"])
    assert engine.take().facts == {"group/q\0a": None, "group/q\0b": None}


def test_a_full_group_refuses_and_what_came_before_stays() -> None:
    engine = make_engine()
    put(engine, "a", group="g", group_max=1)
    with pytest.raises(GroupFull):
        put(engine, "b", group="g", group_max=1)
    put(engine, "c", group="g", group_max=2, delay=1000)
    assert put(engine, "a", group="g", group_max=1).id == "a", "the same job is not one more"
    assert groups.waiting(engine, "q", "g") == groups.waiting(engine, "q") == 2


def test_a_leased_message_does_not_count_as_waiting() -> None:
    engine = make_engine()
    put(engine, "a", group="g", group_max=1)
    hold(engine)
    put(engine, "b", group="g", group_max=1)
    assert (groups.leased(engine, "q", "g"), groups.waiting(engine, "q", "g")) == (1, 1)


def test_holding_back_charges_nothing_and_closes_only_that_group() -> None:
    engine = make_engine()
    for id, group in (("a1", "a"), ("b1", "b"), ("a2", "a")):
        put(engine, id, group=group, max_attempts=3)
    for n in range(20):
        now = NOW + 1000 * n
        a = hold(engine, now=now) if n else hold(engine)
        assert a.id == "a1", "it takes its old place"
        assert groups.hold_back(engine, "a1", a.lease.token, 1000, now, "429")  # type: ignore[union-attr]
        assert (a.state, a.attempts) == (State.READY, 0)
        if not n:
            assert hold(engine).id == "b1", "other groups go on"
        assert consume.take(engine, "q", 1, 1, None, now) == []
        clock.tick(engine, now + 1000)


def test_holding_back_without_a_group_closes_what_has_none() -> None:
    engine = make_engine()
    put(engine, "a")
    put(engine, "b")
    put(engine, "c", group="g")
    m = hold(engine, span=None)
    assert groups.hold_back(engine, m.id, None, 500, NOW)
    assert hold(engine).id == "c"
    wait(engine, "r")
    engine.take()
    assert groups.rule_of(engine, "q", NO_GROUP).closed_until == NOW + 500
    clock.tick(engine, NOW + 500)
    assert answered(engine) == [["a"]]


def test_holding_back_needs_the_lease() -> None:
    engine = make_engine()
    put(engine, "a", group="g")
    with pytest.raises(NotLeased):
        groups.hold_back(engine, "a", None, 10, NOW)
    hold(engine)
    with pytest.raises(WrongToken):
        groups.hold_back(engine, "a", "wrong", 10, NOW)


def test_a_pull_for_one_group_does_not_stand_in_the_way_of_others() -> None:
    engine = make_engine()
    wait(engine, "picky", terms=Terms(affinity="x"))
    wait(engine, "any")
    put(engine, "a", group="g")
    assert [r.req for r in engine.take().effects] == ["any"]
    put(engine, "b", group="x")
    assert [r.req for r in engine.take().effects] == ["picky"]
