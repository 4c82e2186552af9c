"""Schedules with a moved clock: when they run, what is missed, and that nothing runs twice."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import NOW, hold, token_of
from tests.support.restart import Machine

from tandemq.engine import clock, consume, facts, schedules, settle
from tandemq.engine.workers import Worker
from tandemq.model.errors import BadRequest
from tandemq.model.message import State
from tandemq.model.schedule import ALL, ONCE, SKIP, Schedule

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
MIDNIGHT = NOW - NOW % DAY


@pytest.fixture
def machine() -> Machine:
    return Machine(MIDNIGHT)


def add(machine: Machine, name: str = "s", *, immediately: bool = False, **fields: Any) -> Schedule:
    restart = fields.pop("restart", False)
    timing = {} if "pattern" in fields else {"every": MINUTE}
    new = Schedule(
        **{"name": name, "queue": "q", "job_name": "j", "body": b"\x07", **timing, **fields}
    )
    s = schedules.upsert(machine.engine, new, machine.now, immediately=immediately, restart=restart)
    machine.keep()
    return s


def free(**fields: Any) -> dict[str, Any]:
    """A schedule whose runs may overlap."""
    return {"prevent_overlap": False, **fields}


def work(machine: Machine, queue: str = "q") -> None:
    """Take every ready job and complete it."""
    for m in consume.take(machine.engine, queue, None, 1000, None, machine.now):
        settle.ack(machine.engine, m.id, None, machine.now)
    machine.keep()


def minutes(machine: Machine) -> list[float]:
    return [(at - MIDNIGHT) / MINUTE for at in machine.runs()]


# -- when ----------------------------------------------------------------------------------------


def test_an_interval_runs_at_equal_distances_however_late_the_clock_rings(machine: Machine) -> None:
    s = add(machine, **free())
    for late in (0, 3_000, 20, 59_999):
        machine.now = s.next + late
        clock.tick(machine.engine, machine.now)
    assert s.next == MIDNIGHT + 5 * MINUTE
    assert s.executions == 4


def test_a_pattern_runs_at_its_moments(machine: Machine) -> None:
    add(machine, **free(pattern="*/20 1 * * *"))
    machine.pass_time(MIDNIGHT + DAY + 65 * MINUTE)
    assert minutes(machine) == [60, 80, 100, 1500]


def test_seconds_fire_on_their_seconds(machine: Machine) -> None:
    add(machine, **free(pattern="*/2 * * * * *"))
    machine.pass_time(MIDNIGHT + 62_000)
    assert [(at - MIDNIGHT) // 1000 for at in machine.runs()] == list(range(2, 63, 2))


def test_a_new_schedule_may_run_immediately_and_an_old_one_not_again(machine: Machine) -> None:
    add(machine, immediately=True, **free())
    machine.pass_time(MIDNIGHT)
    add(machine, immediately=True, **free())
    machine.pass_time(MIDNIGHT)
    assert minutes(machine) == [0]
    machine.pass_time(MIDNIGHT + 2 * MINUTE)
    assert minutes(machine) == [0, 1, 2]


def test_a_run_has_what_the_schedule_says(machine: Machine) -> None:
    add(machine, priority=4, delay=5_000, job={"max_attempts": 9, "remove_on_complete": True})
    machine.pass_time(MIDNIGHT + MINUTE)
    (m,) = machine.jobs()
    assert (m.queue, m.name, m.body, m.priority) == ("q", "j", b"\x07", 4)
    assert (m.due - m.created, m.state) == (5_000, State.DELAYED)
    assert (m.options.max_attempts, m.options.unique_key) == (9, "cron:s")


def test_after_its_last_run_a_schedule_is_forgotten_when_it_would_be_due(machine: Machine) -> None:
    add(machine, **free(max_runs=2))
    machine.pass_time(MIDNIGHT + 2 * MINUTE)
    assert "s" in machine.engine.schedules
    machine.pass_time(MIDNIGHT + 10 * MINUTE)
    assert minutes(machine) == [1, 2]
    assert "s" not in machine.engine.schedules
    assert "cron/s" not in machine.facts


def test_the_next_runs_can_be_told(machine: Machine) -> None:
    s = add(machine, pattern="0 12 * * *", max_runs=3)
    assert schedules.preview(s, 9) == [MIDNIGHT + n * DAY + DAY // 2 for n in range(3)]
    t = add(machine, "t")
    assert schedules.preview(t, 2) == [MIDNIGHT + MINUTE, MIDNIGHT + 2 * MINUTE]
    assert schedules.preview(t, 0) == []


def test_a_hundred_thousand_schedules_do_nothing_until_they_are_due(machine: Machine) -> None:
    for n in range(1_000):
        add(machine, f"s{n}", every=HOUR + n)
    assert clock.next_wake(machine.engine) == MIDNIGHT + HOUR
    assert len(machine.engine.timers) == 1_000


# -- one at a time -------------------------------------------------------------------------------


def test_while_a_run_waits_or_runs_there_is_no_second_one(machine: Machine) -> None:
    s = add(machine)
    machine.pass_time(MIDNIGHT + 3 * MINUTE)
    assert minutes(machine) == [1]
    m = hold(machine.engine, now=machine.now)
    settle.extend(machine.engine, m.id, token_of(m), machine.now, 10 * MINUTE)
    m.run.heartbeat += 10 * MINUTE  # type: ignore[union-attr]  # it has run
    machine.pass_time(MIDNIGHT + 6 * MINUTE)
    assert minutes(machine) == [1]
    assert s.executions == 1  # what does not take place is not counted
    settle.ack(machine.engine, m.id, token_of(m), machine.now)
    machine.pass_time(MIDNIGHT + 7 * MINUTE)
    assert minutes(machine) == [1, 7]


def test_while_a_run_waits_for_its_next_try_there_is_no_second_one(machine: Machine) -> None:
    add(machine, job={"backoff": 10 * MINUTE, "backoff_type": "fixed"})
    machine.pass_time(MIDNIGHT + MINUTE)
    m = hold(machine.engine, now=machine.now)
    settle.fail(machine.engine, m.id, token_of(m), machine.now)
    machine.pass_time(MIDNIGHT + 8 * MINUTE)
    assert machine.jobs() == [m]


def test_after_a_dead_end_the_next_run_takes_place(machine: Machine) -> None:
    add(machine, job={"max_attempts": 1})
    machine.pass_time(MIDNIGHT + MINUTE)
    m = hold(machine.engine, now=machine.now)
    settle.fail(machine.engine, m.id, token_of(m), machine.now)
    machine.pass_time(MIDNIGHT + 2 * MINUTE)
    assert [m.state for m in machine.jobs()] == [State.DEAD, State.READY]


def test_runs_that_may_overlap_pile_up(machine: Machine) -> None:
    add(machine, **free())
    machine.pass_time(MIDNIGHT + 3 * MINUTE)
    assert minutes(machine) == [1, 2, 3]


def test_an_upsert_that_forbids_overlap_drops_a_run_that_waits_but_none_that_runs(
    machine: Machine,
) -> None:
    add(machine, immediately=True)
    machine.pass_time(MIDNIGHT)
    add(machine, restart=True)
    assert machine.jobs() == []
    machine.pass_time(MIDNIGHT + MINUTE)
    m = hold(machine.engine, now=machine.now)
    add(machine, restart=True)
    assert machine.jobs() == [m]


def test_without_a_worker_for_the_queue_nothing_runs_if_so_wanted(machine: Machine) -> None:
    s = add(machine, skip_if_no_worker=True, **free())

    def register(id: str, queues: object, seen: int) -> None:
        machine.engine.workers.register(
            Worker(id, "w", queues, 1, "h", 1, None, registered=seen, seen=seen)
        )

    register("other", ["r"], MIDNIGHT + MINUTE)
    register("odd", "q", MIDNIGHT + MINUTE)
    machine.pass_time(MIDNIGHT + MINUTE)
    register("stale", ["q"], MIDNIGHT)
    machine.pass_time(MIDNIGHT + 2 * MINUTE)
    assert (minutes(machine), s.executions) == ([], 0)
    register("w", ["a", "q"], MIDNIGHT + 3 * MINUTE)
    machine.pass_time(MIDNIGHT + 3 * MINUTE)
    assert (minutes(machine), s.executions) == ([3], 1)


def test_a_run_that_is_refused_does_not_take_place(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise BadRequest("full")

    s = add(machine)
    with monkeypatch.context() as patched:
        patched.setattr(schedules.publish, "publish", full)
        machine.pass_time(MIDNIGHT + MINUTE)
    assert (machine.jobs(), s.executions) == ([], 0)
    machine.pass_time(MIDNIGHT + 2 * MINUTE)
    assert minutes(machine) == [2]


# -- changed, deleted, restarted -----------------------------------------------------------------


def test_a_change_keeps_what_was_counted_and_the_run_that_is_planned(machine: Machine) -> None:
    add(machine, **free())
    machine.pass_time(MIDNIGHT + 90_000)
    s = add(machine, **free(body=b"\x08"))
    assert (s.executions, s.next, s.body) == (1, MIDNIGHT + 2 * MINUTE, b"\x08")


def test_a_change_of_the_moments_plans_anew(machine: Machine) -> None:
    add(machine, **free())
    machine.pass_time(MIDNIGHT + 90_000)
    s = add(machine, **free(every=10 * MINUTE))
    assert s.next == MIDNIGHT + 90_000 + 10 * MINUTE
    assert schedules.delete(machine.engine, "s")
    assert not schedules.delete(machine.engine, "s")
    machine.pass_time(MIDNIGHT + HOUR)
    assert minutes(machine) == [1]


def test_a_schedule_that_is_deleted_and_added_again_finds_the_run_it_has_left(
    machine: Machine,
) -> None:
    add(machine, immediately=True)
    machine.pass_time(MIDNIGHT)
    m = hold(machine.engine, now=machine.now)
    schedules.delete(machine.engine, "s")
    assert add(machine, immediately=True).last_job == m.id
    settle.fail(machine.engine, m.id, token_of(m), machine.now)
    machine.pass_time(MIDNIGHT)
    assert machine.jobs() == [m]


def test_a_program_that_adds_its_schedule_at_every_start_does_not_put_it_off(
    machine: Machine,
) -> None:
    for n in range(1, 12):
        add(machine, **free(every=10 * MINUTE))
        machine.pass_time(MIDNIGHT + n * MINUTE)
    assert minutes(machine) == [10]


@pytest.mark.parametrize("kill", [False, True])
def test_schedules_survive_a_restart_with_all_they_know(machine: Machine, kill: bool) -> None:
    add(machine, "s", **free(max_runs=9, job={"backoff": 7}))
    add(machine, "t", pattern="0 5 * * *", tz="Europe/Rome")
    machine.pass_time(MIDNIGHT + 2 * MINUTE)
    before = dict(machine.engine.schedules)
    machine.restart(kill=kill)
    for name, s in machine.engine.schedules.items():
        before[name].gen = s.gen
    assert machine.engine.schedules == before
    machine.pass_time(MIDNIGHT + 3 * MINUTE)
    assert minutes(machine) == [1, 2, 3]


@pytest.mark.parametrize("kill", [False, True])
def test_a_deleted_schedule_stays_deleted(machine: Machine, kill: bool) -> None:
    add(machine)
    schedules.delete(machine.engine, "s")
    machine.keep()
    machine.restart(kill=kill)
    machine.pass_time(MIDNIGHT + HOUR)
    assert machine.jobs() == []


# -- missed --------------------------------------------------------------------------------------


def down(machine: Machine, ms: int) -> list[float]:
    """Stop the server for a while, and return when runs took place within a minute after it."""
    before = len(machine.jobs())
    machine.restart(at=machine.now + ms)
    machine.pass_time(machine.now + 1_000)
    return minutes(machine)[before:]


def test_a_run_that_a_restart_of_seconds_has_delayed_takes_place_by_default(
    machine: Machine,
) -> None:
    add(machine, pattern="0 3 * * *")
    machine.pass_time(MIDNIGHT + 3 * HOUR - 5_000)
    assert len(down(machine, 12_000)) == 1


def test_a_run_that_is_older_is_skipped_by_default(machine: Machine) -> None:
    s = add(machine, pattern="0 3 * * *")
    assert down(machine, 5 * HOUR) == []
    assert machine.engine.schedules[s.name].next == MIDNIGHT + DAY + 3 * HOUR


def test_missed_runs_can_be_skipped_strictly(machine: Machine) -> None:
    add(machine, pattern="0 3 * * *", missed=SKIP)
    machine.pass_time(MIDNIGHT + 3 * HOUR - 5_000)
    assert down(machine, 12_000) == []


def test_missed_runs_can_be_made_up_for_once(machine: Machine) -> None:
    add(machine, **free(missed=ONCE))
    assert down(machine, 5 * HOUR + 5_000) == [300 + 5 / 60]
    machine.pass_time(MIDNIGHT + 302 * MINUTE)
    assert minutes(machine)[1:] == [301, 302]


def test_missed_runs_can_be_made_up_for_one_by_one(machine: Machine) -> None:
    s = add(machine, **free(missed=ALL))
    assert len(down(machine, 90 * MINUTE + 5)) == 90
    assert machine.engine.schedules[s.name].next == MIDNIGHT + 91 * MINUTE


def test_missed_runs_of_a_pattern_can_be_made_up_for_one_by_one(machine: Machine) -> None:
    add(machine, **free(pattern="*/5 * * * *", missed=ALL))
    assert len(down(machine, 31 * MINUTE)) == 6


def test_no_run_is_later_than_its_maximum(machine: Machine) -> None:
    add(machine, "once", **free(every=HOUR, missed=ONCE, max_lateness=10 * MINUTE))
    assert down(machine, HOUR + 11 * MINUTE) == []
    assert len(down(machine, 58 * MINUTE)) == 1  # nine minutes late
    other = Machine(MIDNIGHT)
    add(other, **free(missed=ALL, max_lateness=10 * MINUTE))
    assert len(down(other, 90 * MINUTE)) == 11


def test_of_an_interval_of_a_millisecond_no_more_than_a_days_runs_are_made_up_for(
    machine: Machine,
) -> None:
    s = add(machine, **free(every=1, missed=ALL))
    machine.restart(at=MIDNIGHT + 400 * DAY)
    clock.tick(machine.engine, machine.now)
    assert machine.engine.schedules[s.name].next >= machine.now - DAY
    assert len(machine.jobs()) <= clock.SLICE


def test_a_clock_that_is_set_forward_misses_runs_as_a_stop_does(machine: Machine) -> None:
    add(machine, **free(every=HOUR))
    machine.now += 30 * HOUR + 30 * MINUTE
    clock.tick(machine.engine, machine.now)
    assert minutes(machine) == []
    machine.pass_time(MIDNIGHT + 31 * HOUR)
    assert minutes(machine) == [31 * 60]


def test_a_clock_that_is_set_back_does_not_run_anything_again(machine: Machine) -> None:
    s = add(machine, **free())
    machine.pass_time(MIDNIGHT + 5 * MINUTE)
    machine.now -= 3 * MINUTE
    clock.tick(machine.engine, machine.now)
    schedules.due(machine.engine, s, machine.now)
    machine.pass_time(MIDNIGHT + 6 * MINUTE)
    assert s.executions == 6


# -- when the store or the calendar fails --------------------------------------------------------


def test_a_run_that_could_not_be_stored_is_tried_again_a_little_later(machine: Machine) -> None:
    s = add(machine, **free())
    machine.now = s.next
    clock.tick(machine.engine, machine.now)
    undone = machine.engine.take()  # this batch is lost
    for m in undone.changed.values():
        machine.engine.evict(m)
    facts.restore(machine.engine, "cron/s", machine.facts["cron/s"], machine.now)
    assert clock.next_wake(machine.engine) == machine.now + schedules.PAUSE
    machine.pass_time(machine.now + schedules.PAUSE)
    assert machine.engine.schedules["s"].executions == 1
    assert len(machine.jobs()) == 1


def test_a_schedule_that_could_not_be_stored_is_none(machine: Machine) -> None:
    add(machine)
    facts.restore(machine.engine, "cron/s", None, machine.now)
    machine.pass_time(MIDNIGHT + HOUR)
    assert machine.jobs() == []


def test_a_schedule_whose_zone_is_gone_from_the_machine_waits_for_it(machine: Machine) -> None:
    s = add(machine, **free(pattern="0 3 * * *"))
    s.tz = "Mars/Olympus"
    machine.pass_time(MIDNIGHT + DAY)
    assert machine.jobs() == []
    s.tz = None
    machine.pass_time(MIDNIGHT + 2 * DAY)
    assert minutes(machine) == [27 * 60]
