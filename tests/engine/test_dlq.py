"""Dead letter queues: what moves there, what it says of itself, and how it comes back."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, put
from tests.engine.office import BURY, A, B, Office

from tandemq.engine import dlq
from tandemq.model.broker import ENDLESS, Policy, Reason
from tandemq.model.message import Message, State


def bury(office: Office, *ids: str, queue: str = "q", body: bytes = b"1") -> None:
    """Let letters die in a queue."""
    for id in ids:
        office.post(id, queue=queue, body=body, headers={"mine": "kept"})
        m = next(m for m in office.engine.queues[queue].ready if m.letter and m.letter.id == id)
        dlq.end(office.engine, m, office.now, Reason.MAX_RETRIES_EXCEEDED)


@pytest.fixture
def office() -> Office:
    office = Office()
    office.make(**BURY)
    return office


def headers_of(m: Message) -> dict[str, str]:
    assert m.letter is not None
    assert m.letter.headers is not None
    return m.letter.headers


def test_a_dead_letter_says_where_it_is_from_why_when_and_after_what(office: Office) -> None:
    """S-093."""
    bury(office, "m1")
    (dead,) = office.dead()
    assert headers_of(dead) == {
        "mine": "kept",
        "x-death-queue": "q",
        "x-death-reason": "MaxRetriesExceeded",
        "x-death-time": "2023-11-14T22:13:20.000Z",
        "x-attempts": "0",
    }
    assert (dead.queue, dead.body, dead.state) == ("q.dlq", b"1", State.READY)
    assert office.waiting() == []


def test_it_is_an_ordinary_queue_that_drops_nothing_for_silence(office: Office) -> None:
    bury(office, "m1")
    policy = office.engine.queues["q.dlq"].settings.broker
    assert policy == Policy(created=NOW, max_attempts=ENDLESS)
    office.subscribe(A, queue="q.dlq")
    assert office.told() == [(A, "m1")]
    for _ in range(20):
        assert office.later(200) != []
    assert office.in_flight == 1


def test_its_name_can_be_chosen_and_shared(office: Office) -> None:
    office.make("one", dead_letter_queue="my-dlq", **BURY)
    office.make("two", dead_letter_queue="my-dlq", **BURY)
    bury(office, "a", queue="one")
    bury(office, "b", queue="two")
    assert office.waiting("my-dlq") == ["a", "b"]
    assert [m.letter.id for m in office.dead("two") if m.letter] == ["b"]
    assert dlq.first(office.engine, "one", 5) == office.dead("one")


def test_a_subscriber_of_it_is_told_at_once(office: Office) -> None:
    office.subscribe(B, queue="q.dlq")
    bury(office, "m1")
    assert office.told() == [(B, "m1")]
    assert office.ack(B, "m1") == [True]
    assert not office.engine.messages


def test_what_is_brought_back_is_as_it_was_published(office: Office) -> None:
    """S-094, S-095."""
    bury(office, "m1", "m2")
    one, two = office.dead()
    assert dlq.bring_back(office.engine, one, office.now)
    assert not dlq.bring_back(office.engine, one, office.now)
    assert office.waiting() == ["m1"]
    (m,) = office.engine.queues["q"].ready
    assert (headers_of(m), m.attempts) == ({"mine": "kept"}, 0)
    assert office.dead() == [two]
    assert not dlq.bring_back(office.engine, m, office.now)


def test_its_own_queue_is_made_again_where_it_is_gone(office: Office) -> None:
    bury(office, "m1")
    (dead,) = office.dead()
    del office.engine.queues["q"]
    assert dlq.bring_back(office.engine, dead, office.now)
    assert office.waiting() == ["m1"]
    assert office.engine.queues["q"].settings.broker == Policy(created=office.now)


def test_a_letter_without_payload_can_die(office: Office) -> None:
    """S-096."""
    bury(office, "m1", body=b"")
    assert [m.body for m in office.dead()] == [b""]


def test_a_full_one_drops_its_oldest(office: Office) -> None:
    office.make("q.dlq", max_size=2)
    bury(office, "m1", "m2", "m3")
    assert office.waiting("q.dlq") == ["m2", "m3"]


def test_without_one_a_letter_is_dropped_and_counted() -> None:
    office = Office()
    bury(office, "m1")
    assert not office.engine.messages
    assert (office.engine.counters.dropped, office.engine.counters.dead_lettered) == (1, 0)


def test_a_job_stays_where_it_is(office: Office) -> None:
    m = put(office.engine, "job")
    dlq.end(office.engine, m, NOW, Reason.DESERIALIZATION_ERROR, "odd")
    assert (m.state, m.run and m.run.cause) == (State.DEAD, "unknown")
    assert dlq.keeps(office.engine, m)


def test_a_letter_in_a_job_queue_stays_there_too() -> None:
    office = Office()
    put(office.engine, "job")
    office.post("m1")
    m = list(office.engine.messages.values())[-1]
    dlq.end(office.engine, m, NOW, Reason.WORKER_LOST, "gone")
    assert (m.state, m.run and m.run.cause) == (State.DEAD, "worker_lost")


def test_a_long_explanation_is_cut(office: Office) -> None:
    office.post("m1")
    (m,) = office.engine.queues["q"].ready
    dlq.end(office.engine, m, NOW, Reason.HANDLER_EXCEPTION, "x" * 5_000)
    (dead,) = office.dead()
    assert headers_of(dead)["x-death-text"] == "x" * 1_000


def test_nothing_is_known_of_a_queue_that_does_not_exist() -> None:
    assert dlq.first(Office().engine, "nowhere", 3) == []
