"""Whatever is done to schedules, none has two living runs, and no moment is run twice."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.restart import Machine
from tests.support.server import figure

from tandemq.engine import consume, schedules, settle
from tandemq.model.schedule import ALL, ONCE, SKIP, Schedule, alive

START = 1_780_000_020_000 // 60_000 * 60_000
MINUTE = 60_000
EXCLUSIVE, FREE = "exclusive", "free"

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), st.sampled_from([EXCLUSIVE, FREE]), st.booleans()),
        st.tuples(st.just("delete"), st.sampled_from([EXCLUSIVE, FREE])),
        st.tuples(st.just("pass"), st.integers(0, 5 * MINUTE)),
        st.tuples(st.just("sleep"), st.integers(0, 30 * MINUTE)),
        st.tuples(st.just("pull"), st.sampled_from([1, 2])),
        st.tuples(st.just("settle"), st.booleans()),
        st.tuples(st.just("lose"), st.sampled_from([1, 2])),
        st.tuples(st.just("restart"), st.booleans(), st.integers(0, 10 * MINUTE)),
    ),
    min_size=5,
    max_size=40,
)


def upsert(machine: Machine, name: str, changed: bool, missed: str | None) -> None:
    s = Schedule(
        name=name,
        queue=name,
        job_name="j",
        body=b"\x01" if changed else b"\x02",
        pattern="* * * * *",
        prevent_overlap=name == EXCLUSIVE,
        missed=missed,
    )
    schedules.upsert(machine.engine, s, machine.now, immediately=changed)
    machine.keep()


def settle_one(machine: Machine, well: bool) -> None:
    held = [m for m in machine.engine.messages.values() if m.lease is not None]
    if held:
        m = held[0]
        assert m.lease is not None
        if well:
            settle.ack(machine.engine, m.id, m.lease.token, machine.now)
        else:
            settle.fail(machine.engine, m.id, m.lease.token, machine.now)
    machine.keep()


def check(machine: Machine, moments: dict[int, int]) -> None:
    live = [m for m in machine.jobs(EXCLUSIVE) if alive(m)]
    assert len(live) <= 1, "two runs of a schedule that forbids overlap"
    for m in machine.jobs(FREE):
        moments[m.seq] = m.created
    assert machine.engine.schedules.keys() == {
        key[5:] for key in machine.facts if key[:5] == "cron/"
    }


@settings(max_examples=figure("TANDEMQ_HISTORIES", short=60, long=2_000), deadline=None)
@given(STEPS, st.sampled_from([None, SKIP, ONCE, ALL]))
def test_no_history_doubles_a_run(steps: list[tuple], missed: str | None) -> None:
    machine = Machine(START)
    moments: dict[int, int] = {}
    upsert(machine, EXCLUSIVE, False, missed)
    upsert(machine, FREE, False, missed)
    added = 2
    for kind, *how in steps:
        if kind == "upsert":
            added += FREE not in machine.engine.schedules
            upsert(machine, how[0], how[1], missed)
        elif kind == "delete":
            schedules.delete(machine.engine, how[0])
            machine.keep()
        elif kind == "pass":
            machine.pass_time(machine.now + how[0])
        elif kind == "sleep":
            machine.now += how[0]
            machine.pass_time(machine.now)
        elif kind == "pull":
            for queue in (EXCLUSIVE, FREE):
                consume.take(machine.engine, queue, how[0], 1, 30_000, machine.now)
            machine.keep()
        elif kind == "settle":
            settle_one(machine, how[0])
        elif kind == "lose":
            consume.disconnect(machine.engine, how[0], machine.now)
            machine.keep()
        else:
            machine.restart(kill=how[0], at=machine.now + how[1])
        check(machine, moments)
    minutes = (machine.now - START) // MINUTE + 1
    assert len(moments) <= minutes + added, "more runs than moments"
    if missed != ALL:  # made up for one by one, they are published in one moment
        by_minute = Counter(at // MINUTE for at in moments.values())
        assert max(by_minute.values(), default=0) <= 1 + added
