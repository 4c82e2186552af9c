"""What a crash, or a batch that was lost, leaves of subscriptions, copies and dead letters."""

from __future__ import annotations

from copy import deepcopy

import pytest
from tests.engine.making import put
from tests.engine.office import BURY, FAN_OUT, A, B, C, Office

from tandemq.engine import facts, recovery
from tandemq.model.message import Message


def crash(office: Office) -> Office:
    """Another office, with what the store of this one holds."""
    again = Office()
    again.now = office.now
    office.told()
    for key, value in office.facts.items():
        facts.restore(again.engine, key, value)
    for m in sorted(office.engine.messages.values(), key=lambda m: m.seq):
        again.engine.admit(as_stored(m))
    recovery.resume(again.engine, again.now)
    return again


def as_stored(m: Message) -> Message:
    again = deepcopy(m)
    again.gen, again.stored = 0, True
    return again


def test_what_waited_and_what_was_held_is_delivered_in_its_old_order() -> None:
    """S-240, S-243."""
    office = Office()
    office.make()
    office.subscribe(A, window=2)
    office.post("m1", "m2", "m3")
    again = crash(office)
    assert again.waiting() == ["m1", "m2", "m3"]
    again.subscribe(B)
    assert again.told() == [(B, "m1"), (B, "m2"), (B, "m3")]
    assert again.ack(B, "m1", "m2", "m3") == [True] * 3
    assert not again.engine.messages


def test_attempts_are_kept_and_a_crash_charges_none() -> None:
    """S-242."""
    office = Office()
    office.make()
    office.subscribe(A)
    office.post("m1")
    office.later(30)
    (m,) = crash(office).engine.messages.values()
    assert (m.attempts, m.run and m.run.interruptions, m.run and m.run.stalls) == (1, 0, 0)


def test_a_fan_out_begins_again_with_whoever_comes() -> None:
    office = Office()
    office.make(**FAN_OUT)
    office.subscribe(A, B)
    office.post("f1", "f2")
    office.ack(A, "f1")
    again = crash(office)
    assert again.waiting() == ["f1", "f2"]
    again.subscribe(C)
    assert again.told() == [(C, "f1"), (C, "f2")]


def test_options_and_dead_letters_are_there_again() -> None:
    """S-245, S-246."""
    office = Office()
    office.make(max_attempts=1, ttl=60_000, **BURY)
    office.subscribe(A)
    office.post("m1", headers={"k": "v"})
    office.later(30)
    again = crash(office)
    (dead,) = again.dead()
    assert dead.letter is not None
    assert dead.letter.headers is not None
    assert dead.letter.headers["x-death-reason"] == "MaxRetriesExceeded"
    assert again.engine.queues["q"].settings == office.engine.queues["q"].settings


@pytest.mark.parametrize("policy", [{}, FAN_OUT])
def test_an_undone_batch_takes_back_what_was_delivered(policy: dict[str, object]) -> None:
    office = Office()
    office.make(**policy)
    office.subscribe(A)
    office.post("old", "held")
    office.told()
    stored = [as_stored(m) for m in office.engine.messages.values()]
    office.post("new")
    put(office.engine, "job", body=b"\x01")
    office.ack(A, "old")
    touched = list({**office.engine.take().changed, **office.engine.messages}.values())
    every = {id(m): m for m in [*touched, *office.engine.messages.values()]}
    recovery.roll_back(office.engine, every.values(), stored, office.now)
    assert sorted(office.told()) == [(A, "held"), (A, "old")]
    assert office.in_flight == 2
    assert office.ack(A, "old", "held", "new") == [True, True, False]
    assert not office.engine.fanouts
