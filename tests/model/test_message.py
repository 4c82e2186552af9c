"""The record: what is stored by number, what is shared, and what is not."""

from __future__ import annotations

import gc

import pytest
from msgspec.structs import replace

from tandemq.model.message import DEFAULTS, Lease, Message, Options, Run, State, Step


def message(**fields) -> Message:
    return Message("m", "q", "n", b"body", 1, 10, 20, **fields)


def test_the_numbers_of_the_states_stand_in_data_files_and_never_change() -> None:
    assert {state.name: int(state) for state in State} == {
        "NEW": 0,
        "PARKED": 1,
        "DELAYED": 2,
        "READY": 3,
        "LEASED": 4,
        "DONE": 5,
        "DEAD": 6,
        "GONE": 7,
    }


def test_a_message_begins_new_with_nothing_behind_it() -> None:
    m = message()
    assert (m.state, m.born, m.attempts, m.leases, m.gen) == (State.NEW, State.NEW, 0, 0, 0)
    assert (m.lease, m.run, m.stored, m.priority) == (None, None, False, 0)
    assert m.options is DEFAULTS


def test_what_nobody_asks_for_is_three_attempts_a_second_apart() -> None:
    assert (DEFAULTS.max_attempts, DEFAULTS.backoff, DEFAULTS.backoff_type) == (3, 1000, None)
    assert DEFAULTS.ttl is DEFAULTS.timeout is DEFAULTS.stall_timeout is None
    flags = (DEFAULTS.lifo, DEFAULTS.durable, DEFAULTS.remove_on_complete, DEFAULTS.remove_on_fail)
    assert not any(flags)


def test_options_are_shared_so_nobody_changes_them() -> None:
    with pytest.raises(AttributeError):
        DEFAULTS.lifo = True  # type: ignore[misc]
    assert Options() == DEFAULTS
    assert hash(Options(tags=("a",))) == hash(Options(tags=("a",)))
    assert replace(DEFAULTS, lifo=True).lifo


def test_what_happens_to_one_message_does_not_happen_to_another() -> None:
    one, other = Run(), Run()
    one.history.append(Step(State.LEASED, 1))
    assert other.history == []


def test_records_that_exist_by_the_million_are_not_tracked() -> None:
    m = message(lease=Lease("t", 1, 2, 3), run=Run())
    assert not any(map(gc.is_tracked, (m, m.lease, m.run, m.options)))


def test_a_step_tells_of_a_failure_only_if_there_was_one() -> None:
    assert Step(State.READY, 5)[:4] == (State.READY, 5, None, 0)
