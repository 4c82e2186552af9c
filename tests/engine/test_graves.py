"""Dead letters that stayed and dead letters that moved, as one. Ruling 14."""

from __future__ import annotations

import pytest
from tests.engine.making import hold, put
from tests.engine.office import BURY, A, Office

from tandemq.engine import graves, manage, settle
from tandemq.model.message import Message, State
from tandemq.model.policy import Burial

DEAD = State.DEAD


@pytest.fixture
def office() -> Office:
    """A dead job in its queue, and later a dead letter in another one."""
    office = Office()
    office.make(max_attempts=1, **BURY)
    put(office.engine, "job", max_attempts=1)
    settle.fail(office.engine, hold(office.engine, span=None).id, None, office.now, error="job")
    office.now += 5
    office.post("letter")
    m = hold(office.engine, span=None, now=office.now)
    settle.fail(office.engine, m.id, None, office.now, error="letter")
    office.now += 5
    return office


def both(office: Office) -> tuple[Message, Message]:
    job, letter = graves.listed(office.engine, "q")
    return job, letter


def test_both_are_listed_oldest_first(office: Office) -> None:
    job, letter = both(office)
    assert (job.id, letter.queue) == ("job", "q.dlq")
    assert [graves.ended_at(m) for m in both(office)] == [office.now - 10, office.now - 5]
    assert list(graves.moved(office.engine, "q")) == [letter]
    assert list(graves.listed(office.engine, "other")) == []


def test_both_tell_the_same_of_their_end(office: Office) -> None:
    for m, name in zip(both(office), ("job", "letter"), strict=True):
        assert graves.cause_of(m) == "max_attempts_exceeded"
        assert graves.error_of(m) == name
        (tried,) = graves.tries_of(m)
        assert (tried.attempt, tried.failed, tried.error) == (1, graves.ended_at(m), name)


def test_rules_for_dead_letters_are_for_those_that_stayed(office: Office) -> None:
    rules = Burial(auto_retry=True, max_age=1_000)
    job, letter = both(office)
    assert graves.next_retry(job, rules) is not None
    assert graves.next_retry(letter, rules) is None
    assert graves.expires(job, rules) is not None
    assert graves.expires(letter, rules) is None


def test_each_is_found_by_its_id(office: Office) -> None:
    for m in both(office):
        assert graves.find(office.engine, "q", m.id) is m
        assert graves.find(office.engine, "q.dlq", m.id) is None
    assert graves.find(office.engine, "q", "nothing") is None
    office.post("alive")
    (m,) = office.engine.queues["q"].ready
    assert graves.find(office.engine, "q", m.id) is None


def test_each_goes_back_to_its_queue(office: Office) -> None:
    for m in both(office):
        assert graves.may_return(office.engine, m, office.now)
        assert graves.retry(office.engine, m, office.now)
    assert sorted(office.waiting()) == ["job", "letter"]
    assert list(graves.listed(office.engine, "q")) == []


def test_each_may_be_run_again_as_a_copy(office: Office) -> None:
    for m, body in zip(both(office), (b"\x02", b"2"), strict=True):
        copy = graves.replay(office.engine, m, body, office.now)
        assert (copy.queue, copy.body, copy.state) == ("q", body, State.READY)
        assert m.run is not None
        assert (m.run.replays, m.run.retries) == ((copy.id,), 1)
        assert copy.run is not None
        assert copy.run.replay_of == m.id
    assert len(list(graves.listed(office.engine, "q"))) == 2


def test_each_is_forgotten(office: Office) -> None:
    for m in both(office):
        graves.forget(office.engine, m, office.now)
    assert list(office.engine.messages) == []


def test_a_letter_of_a_job_queue_stays_where_it_is() -> None:
    office = Office()
    put(office.engine, "job")
    office.post("letter")
    (m,) = [m for m in office.engine.messages.values() if m.letter is not None]
    manage.discard(office.engine, m, None, office.now)
    assert (m.state, graves.death_of(m)) == (DEAD, None)
    assert list(graves.listed(office.engine, "q")) == [m]


@pytest.mark.parametrize("dead_letters", [True, False])
def test_a_discarded_letter_of_a_broker_moves_or_is_dropped(dead_letters: bool) -> None:
    office = Office()
    office.make(dead_letters=dead_letters)
    office.post("m1")
    (m,) = office.engine.queues["q"].ready
    assert manage.discard(office.engine, m, None, office.now)
    assert [graves.error_of(m) for m in office.dead()] == ["discarded"] * dead_letters
    assert office.engine.counters.dropped == (not dead_letters)


def test_what_is_read_from_the_grave_is_not_listed_meanwhile(office: Office) -> None:
    office.subscribe(A, queue="q.dlq")
    assert [m.id for m in graves.listed(office.engine, "q")] == ["job"]


def test_many_are_gone_through_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graves, "SORTED", 1)
    office = Office()
    office.make(max_attempts=1, **BURY)
    office.post("a", "b", "c")
    for _ in range(3):
        settle.fail(office.engine, hold(office.engine, span=None).id, None, office.now)
    found = [m.letter.id for m in graves.moved(office.engine, "q") if m.letter is not None]
    assert found == ["a", "b", "c"]
