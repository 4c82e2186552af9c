"""Read-only views: pages in the order of publication, whatever the state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.making import NOW, hold, make_engine, put, token_of

from tandemq.engine import inspect, settle
from tandemq.engine.core import Engine
from tandemq.engine.queue import Queue
from tandemq.model.message import State

READY, DELAYED, LEASED, DONE, DEAD = (
    State.READY,
    State.DELAYED,
    State.LEASED,
    State.DONE,
    State.DEAD,
)


@pytest.fixture
def engine() -> Engine:
    """Eight messages, a to h, in five states."""
    engine = make_engine()
    for n, id in enumerate("abcdefgh"):
        put(engine, id, priority=n % 3, delay=5 if id in "cf" else 0)
    for n in range(3):
        m = hold(engine)
        if n == 0:
            settle.ack(engine, m.id, token_of(m), NOW)
        elif n == 1:
            settle.fail(engine, m.id, token_of(m), NOW, unrecoverable=True)
    return engine


def ids(engine: Engine, *states: State, offset=0, limit=100, descending=False) -> str:
    found = inspect.page(engine, "q", states, offset, limit, descending)
    return "".join(m.id for m in found)


def test_a_state_is_listed_in_the_order_of_publication_not_of_delivery(engine) -> None:
    everything = {state.name: ids(engine, state) for state in State if ids(engine, state)}
    assert everything == {"DELAYED": "cf", "READY": "adg", "LEASED": "h", "DONE": "b", "DEAD": "e"}


def test_several_states_are_listed_as_one(engine) -> None:
    assert ids(engine, READY, DELAYED) == "acdfg"
    assert ids(engine, DELAYED, READY, descending=True) == "gfdca"
    assert ids(engine, *State) == "abcdefgh"
    assert ids(engine) == ""


def test_a_page_begins_and_ends_where_it_should(engine) -> None:
    assert ids(engine, *State, offset=2, limit=3) == "cde"
    assert ids(engine, *State, offset=2, limit=3, descending=True) == "fed"
    assert ids(engine, *State, offset=-5, limit=2) == "ab"
    assert ids(engine, *State, offset=7, limit=5) == "h"
    assert ids(engine, *State, offset=8) == ids(engine, *State, limit=0) == ""
    assert ids(engine, *State, limit=-1) == ""


@pytest.mark.parametrize("states", [(READY,), (READY, DELAYED), tuple(State), ()])
def test_a_page_beyond_the_last_message_looks_at_none(engine, states, monkeypatch) -> None:
    size = len(ids(engine, *states))
    monkeypatch.setattr(Queue, "within", None)
    for offset in (size, size + 1, 10**9):
        assert ids(engine, *states, offset=offset) == ""


@given(st.integers(0, 10), st.integers(0, 10))
def test_pages_put_together_are_the_whole_list(offset, limit) -> None:
    engine = make_engine()
    for n in range(9):
        put(engine, str(n), priority=n % 2, delay=n % 3)
    found = ids(engine, READY, DELAYED, offset=offset, limit=limit)
    assert found == "012345678"[offset : offset + limit]


def test_a_large_state_is_listed_in_the_order_in_which_it_was_reached(engine, monkeypatch) -> None:
    monkeypatch.setattr(inspect, "SORTED", 2)
    put(engine, "i", priority=9)
    assert ids(engine, READY) == "iadg"
    assert ids(engine, READY, descending=True) == "gdai"
    assert ids(engine, DELAYED, descending=True) == "fc"
    settle.fail(engine, hold(engine).id, "id-4", NOW)
    assert ids(engine, DELAYED) == "cfi"
    for id in "dag":
        engine.shift(engine.messages[id], "reschedule", DELAYED)
    assert ids(engine, DELAYED) == "cfidag"
    assert ids(engine, DELAYED, descending=True) == "gadifc"


def test_what_waits_is_counted(engine) -> None:
    assert inspect.count(engine, "q") == 5  # ready and delayed
    assert inspect.count(engine, "no such queue") == 0


def test_looking_changes_nothing(engine) -> None:
    engine.take()
    inspect.page(engine, "no such queue", tuple(State), 0, 10)
    inspect.page(engine, "q", tuple(State), 0, 10)
    inspect.count(engine, "no such queue")
    assert engine.quiet
    assert list(engine.queues) == ["q"]
