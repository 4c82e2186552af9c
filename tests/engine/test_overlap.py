"""Runs that may not overlap are dropped instead of given back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import NOW, hold, put, token_of, where
from tests.support.restart import Machine

from tandemq.engine import consume, schedules, settle
from tandemq.model.errors import NotLeased
from tandemq.model.message import Message
from tandemq.model.schedule import Schedule

MINUTE = 60_000


@pytest.fixture
def machine() -> Machine:
    return Machine(NOW)


def running(machine: Machine, **fields: Any) -> Message:
    """The run of a schedule that somebody holds over connection 1."""
    s = Schedule(name="s", queue="q", job_name="j", body=b"\x01", every=60 * MINUTE, **fields)
    schedules.upsert(machine.engine, s, machine.now, immediately=True)
    machine.pass_time(machine.now)
    m = hold(machine.engine, now=machine.now)
    machine.keep()
    return m


def test_it_is_dropped_when_its_connection_breaks(machine: Machine) -> None:
    m = running(machine)
    consume.disconnect(machine.engine, 1, machine.now)
    assert where(machine.engine) == {}
    with pytest.raises(NotLeased):
        settle.ack(machine.engine, m.id, None, machine.now)


def test_it_is_dropped_when_its_lease_runs_out(machine: Machine) -> None:
    running(machine)
    machine.pass_time(NOW + 35_000)
    assert where(machine.engine) == {}


def test_it_is_dropped_when_its_worker_goes_silent(machine: Machine) -> None:
    m = running(machine)
    settle.extend(machine.engine, m.id, token_of(m), machine.now, 10 * MINUTE)
    machine.pass_time(NOW + 2 * MINUTE)
    assert where(machine.engine) == {}


@pytest.mark.parametrize("kill", [False, True])
def test_it_is_dropped_when_the_server_ends(machine: Machine, kill: bool) -> None:
    running(machine)
    machine.restart(kill=kill)
    assert where(machine.engine) == {}
    assert machine.rows == {}


def test_the_next_run_takes_place(machine: Machine) -> None:
    running(machine)
    consume.disconnect(machine.engine, 1, machine.now)
    machine.pass_time(NOW + 60 * MINUTE)
    assert where(machine.engine) == {"READY": 1}


def test_a_failure_and_a_time_limit_are_tried_again_as_usual(machine: Machine) -> None:
    m = running(machine, job={"timeout": 5_000})
    machine.pass_time(NOW + 5_001)
    assert m.attempts == 1
    machine.pass_time(NOW + 20_000)
    settle.fail(machine.engine, hold(machine.engine, now=machine.now).id, token_of(m), machine.now)
    assert m.attempts == 2
    assert where(machine.engine) == {"DELAYED": 1}


def test_a_renewed_lease_survives_its_connection(machine: Machine) -> None:
    m = running(machine)
    settle.extend(machine.engine, m.id, token_of(m), machine.now)
    consume.disconnect(machine.engine, 1, machine.now)
    assert where(machine.engine) == {"LEASED": 1}


def test_a_run_that_may_overlap_goes_back_to_its_queue(machine: Machine) -> None:
    running(machine, prevent_overlap=False)
    consume.disconnect(machine.engine, 1, machine.now)
    assert where(machine.engine) == {"READY": 1}


def test_a_run_whose_schedule_is_gone_goes_back_to_its_queue(machine: Machine) -> None:
    running(machine)
    schedules.delete(machine.engine, "s")
    consume.disconnect(machine.engine, 1, machine.now)
    assert where(machine.engine) == {"READY": 1}


def test_a_job_that_only_has_such_a_key_goes_back_to_its_queue(machine: Machine) -> None:
    put(machine.engine, unique_key="cron:s")
    hold(machine.engine)
    consume.disconnect(machine.engine, 1, machine.now)
    assert where(machine.engine) == {"READY": 1}
