"""Publishing letters: what a queue becomes through its first message, and what a letter is."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, put
from tests.engine.office import HAND_OVER, PRIORITY, A, Office

from tandemq.engine import post
from tandemq.model.broker import Policy
from tandemq.model.errors import NotFound
from tandemq.model.message import DEFAULTS


def policy(office: Office, queue: str = "q") -> Policy | None:
    return office.engine.queues[queue].settings.broker


def test_the_first_letter_makes_a_broker_of_a_queue() -> None:
    office = Office()
    office.post("m1")
    assert policy(office) == Policy(created=NOW)
    put(office.engine, "job")
    assert policy(office) == Policy(created=NOW)


def test_the_first_job_makes_a_job_queue_of_it() -> None:
    office = Office()
    put(office.engine, "job")
    office.post("m1", level=3)
    assert policy(office) is None
    letter = office.engine.queues["q"].ready.pop()
    assert letter is not None
    assert letter.letter is not None
    assert (letter.priority, letter.options) == (2, DEFAULTS)


def test_to_subscribe_decides_nothing() -> None:
    office = Office()
    office.subscribe(A)
    assert policy(office) is None
    assert post.exists(office.engine, "q")
    post.opened(office.engine, "q", office.now, Policy(**HAND_OVER))
    assert policy(office) == Policy(created=NOW, **HAND_OVER)


def test_a_decision_stays() -> None:
    office = Office()
    office.make(**PRIORITY)
    office.now += 5
    office.make(**HAND_OVER)
    assert policy(office) == Policy(created=NOW, **PRIORITY)


def test_a_queue_is_not_made_where_that_is_off() -> None:
    office = Office()
    assert not post.exists(office.engine, "q")
    with pytest.raises(NotFound):
        post.opened(office.engine, "q", office.now, None)
    assert not office.engine.queues
    office.subscribe(A)
    post.opened(office.engine, "q", office.now, None)
    assert policy(office) == Policy(created=NOW)


def test_a_queue_without_messages_goes_on_existing() -> None:
    office = Office()
    office.post("m1")
    office.subscribe(A)
    office.ack(A, "m1")
    office.leave(A)
    assert policy(office) == Policy(created=NOW)
    assert office.engine.take().facts.keys() >= {"queue/q"}
