"""The public names of states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands.desk import Desk

from tandemq.commands.states import NAMES, STATES, in_state, name_of, states_of
from tandemq.engine.queue import Queue
from tandemq.model.message import Message, State

PUBLIC = ["waiting", "prioritized", "delayed", "active", "completed", "failed", "paused"]


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_name_and_a_name_leads_back(state: State) -> None:
    name = NAMES[state]
    assert (name == "unknown") == (state in (State.NEW, State.GONE))
    assert name == "unknown" or STATES[name] is state


@pytest.mark.parametrize(
    ("priority", "state", "name"),
    [
        (0, State.READY, "waiting"),
        (-1, State.READY, "waiting"),
        (1, State.READY, "prioritized"),
        (1, State.DELAYED, "delayed"),
        (1, State.LEASED, "active"),
    ],
)
def test_only_a_ready_job_with_a_priority_above_0_is_prioritized(
    priority: int, state: State, name: str
) -> None:
    assert name_of(Message("i", "q", "n", b"", 1, 0, 0, priority, state=state)) == name


def test_a_queue_that_does_not_exist_counts_nothing() -> None:
    assert set(states_of(None).values()) == {0}


@given(
    st.lists(st.integers(-1, 1), max_size=6),
    st.sets(st.sampled_from([*PUBLIC, "wait", "rubbish"])),
    st.booleans(),
    st.booleans(),
)
def test_what_is_listed_under_names_is_what_bears_one_of_them(
    priorities: list[int], names: set[str], paused: bool, descending: bool
) -> None:
    desk = Desk()
    for priority in priorities:
        desk.push(priority=priority)
    late = desk.push(delay=5)
    if paused:
        desk.do("Pause", queue="q")
    q = desk.engine.queues["q"]
    found = in_state(desk.engine, q, sorted(names), 0, 100, descending)
    expected = []
    for m in sorted(desk.engine.messages.values(), key=lambda m: m.seq, reverse=descending):
        shown = "paused" if paused and m.id != late else name_of(m)
        if shown in names:
            expected.append(m.id)
    assert [m.id for m in found] == expected
    page = in_state(desk.engine, q, sorted(names), 1, 2, descending)
    assert [m.id for m in page] == expected[1:3]


def test_counts_add_up_however_a_queue_is_seen() -> None:
    desk = Desk()
    for priority in (0, 1, 1, -1):
        desk.push(priority=priority)
    q = desk.engine.queues["q"]
    assert sum(states_of(q).values()) == 4
    desk.do("Pause", queue="q")
    assert states_of(q)["paused"] == sum(states_of(q).values()) == 4


@pytest.mark.parametrize(
    "names", [["waiting"], ["prioritized"], ["waiting", "delayed"], ["active"]]
)
def test_a_page_beyond_the_last_job_looks_at_none(
    names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk()
    for priority in (0, 0, 0, 1, 1):
        desk.push(priority=priority)
    desk.push(delay=5)
    q = desk.engine.queues["q"]
    found = in_state(desk.engine, q, names, 0, 100, False)
    for n, m in enumerate(found):
        assert in_state(desk.engine, q, names, n, 1, False) == [m]
    monkeypatch.setattr(Queue, "within", None)
    for offset in (len(found), len(found) + 1, 10**9):
        assert in_state(desk.engine, q, names, offset, 100, False) == []
    assert in_state(desk.engine, q, names, 0, 0, False) == []
