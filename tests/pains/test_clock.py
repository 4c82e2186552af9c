"""Reports of leases that went wrong when somebody set the clock; the zones are in test_schedules.

The engine is asked directly, with a clock that the test moves as a server does that finds it set.
"""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, hold, put, token_of, where
from tests.support.restart import Machine

from tandemq.engine import clock, settle
from tandemq.model.errors import NotLeased
from tandemq.model.policy import LEASE_GRACE

HOUR = 3_600_000


def set_clock(machine: Machine, step: int) -> None:
    """Somebody sets the clock of the machine, and the server notices."""
    machine.now += step
    clock.shift_spans(machine.engine, step)
    machine.pass_time(machine.now)


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_lease_is_as_long_as_it_was_whoever_sets_the_clock(step: int) -> None:
    machine = Machine(NOW)
    put(machine.engine)
    m = hold(machine.engine, span=10_000)
    machine.pass_time(machine.now + 4_000)
    set_clock(machine, step)
    machine.pass_time(machine.now + 5_999)
    assert where(machine.engine) == {"LEASED": 1}, "not a moment less"
    machine.pass_time(machine.now + LEASE_GRACE + 2)
    assert where(machine.engine) == {"READY": 1}, "not a moment more"
    assert m.attempts == 1


def test_a_lease_that_is_renewed_survives_every_step_of_the_clock() -> None:
    machine = Machine(NOW)
    put(machine.engine)
    m = hold(machine.engine, span=10_000)
    token = token_of(m)
    for step in (-HOUR, HOUR, HOUR, -HOUR):
        for _ in range(3):
            machine.pass_time(machine.now + 8_000)
            settle.extend(machine.engine, m.id, token, machine.now)
        set_clock(machine, step)
    assert where(machine.engine) == {"LEASED": 1}
    machine.pass_time(machine.now + 10_000 + LEASE_GRACE + 1)
    assert where(machine.engine) == {"READY": 1}
    with pytest.raises(NotLeased):
        settle.ack(machine.engine, m.id, token, machine.now)


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_delay_is_a_moment_and_stays_where_it_is(step: int) -> None:
    machine = Machine(NOW)
    m = put(machine.engine, delay=2 * HOUR)
    set_clock(machine, step)
    machine.pass_time(NOW + 2 * HOUR - 1)
    assert where(machine.engine) == {"DELAYED": 1}
    machine.pass_time(NOW + 2 * HOUR)
    assert where(machine.engine) == {"READY": 1}
    assert m.due == NOW + 2 * HOUR
