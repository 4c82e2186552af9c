"""The table of a life: every edge that it has, and every edge that it does not have."""

from __future__ import annotations

import pytest

from tandemq.engine.lifecycle import EDGES, IllegalMove, move
from tandemq.model.message import Lease, Message, State

NEW, PARKED, DELAYED, READY, LEASED, DONE, DEAD, GONE = State
VERBS = sorted({verb for edges in EDGES.values() for verb in edges})

# Architecture 5.2, row by row: who may cause what, from where, and where it leads to.
ROWS = {
    ("publish", NEW): {PARKED, DELAYED, READY},
    ("overflow", NEW): {DEAD},
    ("settled", PARKED): {DELAYED, READY, DONE, DEAD, GONE},
    ("child-failed", PARKED): {DEAD},
    ("due", DELAYED): {READY},
    ("promote", DELAYED): {READY},
    ("reschedule", DELAYED): {DELAYED, READY},
    ("reschedule", READY): {DELAYED, READY},
    ("reschedule", LEASED): {DELAYED, READY},
    ("lease", READY): {LEASED},
    ("fan-out", READY): {PARKED},
    ("hand-off", READY): {GONE},
    ("overflow", READY): {GONE},
    ("park", DELAYED): {PARKED},
    ("park", READY): {PARKED},
    ("park", LEASED): {PARKED},
    ("ack", LEASED): {DONE, GONE},
    ("ack", READY): {DONE, GONE},
    ("ack", DELAYED): {DONE, GONE},
    ("fail", LEASED): {DELAYED, READY, DEAD, GONE},
    ("release", LEASED): {READY, DEAD, GONE},
    ("extend", LEASED): {LEASED},
    ("redeliver", LEASED): {LEASED},  # ours: nobody answered, and the same subscriber is asked
    ("expire", PARKED): {DEAD, GONE},
    ("expire", DELAYED): {DEAD, GONE},
    ("expire", READY): {DEAD, GONE},
    ("cancel", PARKED): {GONE},
    ("cancel", DELAYED): {GONE},
    ("cancel", READY): {GONE},
    ("cancel", LEASED): {GONE},
    ("discard", PARKED): {DEAD},
    ("discard", DELAYED): {DEAD},
    ("discard", READY): {DEAD},
    ("discard", LEASED): {DEAD},
    ("dead-letter", NEW): {GONE},
    ("dead-letter", PARKED): {GONE},
    ("dead-letter", DELAYED): {GONE},
    ("dead-letter", READY): {GONE},
    ("dead-letter", LEASED): {GONE},
    ("retry", DONE): {READY},
    ("retry", DEAD): {READY},
    ("forget", DONE): {GONE},
    ("forget", DEAD): {GONE},
}


def message(state: State) -> Message:
    lease = Lease("t", 5, 5, 1) if state is LEASED else None
    return Message("m", "q", "n", b"", 1, 0, 0, state=state, lease=lease)


def test_the_table_has_the_rows_of_the_design_and_no_others() -> None:
    edges = {(verb, state): set(to) for state, verbs in EDGES.items() for verb, to in verbs.items()}
    assert edges == ROWS


@pytest.mark.parametrize("state", State, ids=lambda state: state.name)
@pytest.mark.parametrize("verb", [*VERBS, "no such verb"])
def test_only_edges_of_the_table_can_be_taken(state: State, verb: str) -> None:
    for to in State:
        m = message(state)
        if to in ROWS.get((verb, state), ()):
            move(m, verb, to)
            assert (m.state, m.gen) == (to, 1)
        else:
            with pytest.raises(IllegalMove, match=f"m: {state.name} --{verb}--> {to.name}"):
                move(m, verb, to)
            assert (m.state, m.gen, m.lease) == (state, 0, message(state).lease)


def test_the_end_is_the_end() -> None:
    assert EDGES[GONE] == {}


def test_every_other_state_can_be_left_and_reached() -> None:
    assert all(EDGES[state] for state in State if state is not GONE)
    reached = {to for verbs in EDGES.values() for targets in verbs.values() for to in targets}
    assert reached == set(State) - {NEW}


@pytest.mark.parametrize(
    ("verb", "to"),
    [(verb, to) for (verb, state), ts in ROWS.items() if state is LEASED for to in ts],
)
def test_the_lease_ends_with_the_state_and_only_with_it(verb: str, to: State) -> None:
    m = message(LEASED)
    move(m, verb, to)
    assert (m.lease is not None) == (to is LEASED)
