"""What a message remembers of its runs."""

from __future__ import annotations

from tests.engine.making import make_engine, put

from tandemq.engine.timeline import end_run, run_for
from tandemq.model.message import Run, State, Step
from tandemq.model.policy import HISTORY

LEASED, DEAD = State.LEASED, State.DEAD


def test_a_timeline_keeps_its_newest_entries() -> None:
    run = Run(started=1)
    for n in range(HISTORY):
        end_run(run, Step(DEAD, n, "oh", n))
    assert len(run.history) == HISTORY
    assert run.history[-2:] == [Step(LEASED, 1), Step(DEAD, HISTORY - 1, "oh", HISTORY - 1)]


def test_timelines_are_not_shared() -> None:
    one, other = Run(), Run()
    end_run(one)
    assert other.history == []


def test_a_message_that_never_ran_begins_to_remember() -> None:
    m = put(make_engine())
    assert m.run is None
    run = run_for(m)
    assert m.run is run
    assert run_for(m) is run
