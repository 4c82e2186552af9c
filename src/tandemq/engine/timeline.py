"""What a message remembers of its runs: the timeline, which keeps its newest entries."""

from __future__ import annotations

from tandemq.model.message import Message, Run, State, Step
from tandemq.model.policy import HISTORY


def end_run(run: Run, *entries: Step) -> None:
    """Write a run that ends without success into the timeline, which keeps its newest entries.

    A run that goes on, or ended well, is not there yet: its moments tell the same.
    """
    add_steps(run, Step(State.LEASED, run.started), *entries)


def add_steps(run: Run, *steps: Step) -> None:
    """Write steps into the timeline; beyond its bound the oldest go."""
    run.history += steps
    del run.history[:-HISTORY]


def run_for(m: Message) -> Run:
    """Return what has happened to a message, which may be nothing so far."""
    run = m.run
    if run is None:
        run = m.run = Run()
    return run
