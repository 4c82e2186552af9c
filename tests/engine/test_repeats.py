"""Messages that come again after they were completed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import NOW, hold, put, token_of
from tests.support.restart import Machine

from tandemq.engine import manage, publish, repeats, settle
from tandemq.model.errors import GroupFull, MustWait, QueueFull
from tandemq.model.message import Message, Options, Repeat, State

DAY = 86_400_000


@pytest.fixture
def machine() -> Machine:
    return Machine(NOW)


def push(machine: Machine, options: dict[str, Any] | None = None, **repeat: Any) -> Message:
    draft = publish.draft("q", "j", b"\x07", machine.now, 3, 0, Options(**(options or {})))
    draft.repeat = Repeat(**repeat)
    return publish.publish(machine.engine, draft, machine.now)


def complete(machine: Machine, after: int = 10) -> Message:
    """Take the next job, complete it a little later, and return its successor."""
    m = hold(machine.engine, now=machine.now)
    machine.now += after
    settle.ack(machine.engine, m.id, token_of(m), machine.now)
    machine.keep()
    assert m.repeat is not None
    return machine.engine.messages[m.repeat.next or ""]


def dues(machine: Machine, count: int) -> list[int]:
    found = []
    for _ in range(count):
        m = complete(machine)
        found.append(m.due - NOW)
        machine.pass_time(m.due)
    return found


def test_an_interval_counts_from_the_planned_moment(machine: Machine) -> None:
    push(machine, every=1_000.0)
    assert dues(machine, 4) == [1_000, 2_000, 3_000, 4_000]


def test_an_interval_leaves_out_what_has_passed(machine: Machine) -> None:
    push(machine, every=1_000.0)
    assert complete(machine, 3_500).due == NOW + 4_000


def test_a_pattern_names_the_next_moment(machine: Machine) -> None:
    push(machine, pattern="0 12 * * *", tz="Europe/Rome")
    m = complete(machine)
    assert m.due % DAY == 11 * 3_600_000
    assert m.state is State.DELAYED


def test_a_run_that_was_promoted_does_not_come_again_at_its_planned_moment(
    machine: Machine,
) -> None:
    push(machine, pattern="0 12 * * *")
    m = complete(machine)
    planned = m.due
    machine.engine.shift(m, "promote", State.READY)
    assert complete(machine).due == planned + DAY


def test_an_offset_moves_patterns_always_and_a_line_of_intervals_once(machine: Machine) -> None:
    push(machine, every=1_000.0, offset=250.0)
    assert dues(machine, 3) == [1_250, 2_250, 3_250]
    other = Machine(NOW)
    push(other, pattern="0 12 * * *", offset=60_000.0)
    assert complete(other).due % DAY == 12 * 3_600_000 + 60_000


def test_a_limit_is_the_number_of_successors(machine: Machine) -> None:
    push(machine, every=1_000.0, limit=2.0)
    assert len(dues(machine, 2)) == 2
    m = hold(machine.engine, now=machine.now)
    settle.ack(machine.engine, m.id, token_of(m), machine.now)
    assert [m.state for m in machine.jobs()] == [State.DONE] * 3


def test_no_run_is_planned_before_the_start_or_after_the_end(machine: Machine) -> None:
    push(machine, every=1_000.0, start=NOW + 60_500.0, end=NOW + 61_500.0)
    assert dues(machine, 2) == [60_500, 61_500]
    m = hold(machine.engine, now=machine.now)
    settle.ack(machine.engine, m.id, token_of(m), machine.now)
    assert m.repeat is not None
    assert m.repeat.next is None
    other = Machine(NOW)
    push(other, pattern="0 12 * * *", start=NOW + 10.0 * DAY)
    assert complete(other).due == NOW - NOW % DAY + 11 * DAY + DAY // 2


def test_a_successor_has_what_its_predecessor_had(machine: Machine) -> None:
    first = push(machine, {"max_attempts": 7, "tags": ("a",)}, every=1_000.0, count=4)
    m = complete(machine)
    assert (m.name, m.body, m.priority, m.options) == ("j", b"\x07", 3, first.options)
    assert (m.attempts, m.run) == (0, None)
    assert m.repeat is not None
    assert (m.repeat.count, m.repeat.previous, m.repeat.next) == (5, m.due, None)


def test_a_dead_end_ends_the_chain(machine: Machine) -> None:
    m = push(machine, {"max_attempts": 1}, every=1_000.0)
    settle.fail(machine.engine, hold(machine.engine).id, token_of(m), machine.now)
    assert machine.jobs() == [m]


def test_a_job_that_is_not_kept_has_its_successor_too(machine: Machine) -> None:
    m = push(machine, {"remove_on_complete": True}, every=1_000.0)
    complete(machine)
    assert m.state is State.GONE
    assert len(machine.jobs()) == 1


def test_a_job_that_is_completed_again_has_no_second_successor(machine: Machine) -> None:
    m = push(machine, every=DAY * 1.0)
    complete(machine)
    machine.engine.shift(m, "retry", State.READY)
    settle.ack(machine.engine, hold(machine.engine).id, token_of(m), machine.now)
    assert len(machine.jobs()) == 2


def test_new_data_of_a_completed_job_reaches_the_run_that_waits(machine: Machine) -> None:
    first = push(machine, every=1_000.0)
    machine.pass_time(complete(machine).due)
    last = complete(machine)
    assert repeats.pending(machine.engine, first) is last
    assert manage.update(machine.engine, first, b"\x08")
    assert last.body == b"\x08"


def test_new_data_do_not_reach_a_run_that_has_begun(machine: Machine) -> None:
    first = push(machine, every=1_000.0)
    successor = complete(machine)
    machine.pass_time(successor.due)
    hold(machine.engine, now=machine.now)
    assert repeats.pending(machine.engine, first) is None
    assert manage.update(machine.engine, first, b"\x08")
    assert successor.body == b"\x07"


@pytest.mark.parametrize("full", [GroupFull("g", 1), QueueFull("q"), MustWait("q")], ids=repr)
def test_a_full_place_does_not_end_a_chain(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, full: Exception
) -> None:
    admit = publish.publish

    def crowded(engine: Any, m: Message, now: int, *, room: bool = True) -> Message:
        if room:
            raise full
        return admit(engine, m, now, room=room)

    push(machine, {"group_max": 1}, every=1_000.0)
    monkeypatch.setattr(publish, "publish", crowded)
    assert complete(machine).options.group_max == 1


@pytest.mark.parametrize("kill", [False, True])
def test_a_chain_goes_on_after_a_restart(machine: Machine, kill: bool) -> None:
    push(machine, every=1_000.0, limit=5.0)
    due = complete(machine).due
    machine.restart(kill=kill)
    assert len(machine.jobs()) == 2
    machine.pass_time(due)
    m = complete(machine)
    assert m.repeat is not None
    assert (m.repeat.count, m.due) == (2, NOW + 2_000)


@pytest.mark.parametrize("repeat", [{"every": 1e300}, {"every": 0.25}, {"pattern": "0 0 * * *"}])
def test_odd_figures_are_no_trouble(machine: Machine, repeat: dict[str, Any]) -> None:
    m = push(machine, **repeat, previous=-(2.0**60), offset=-(2.0**52))
    settle.ack(machine.engine, hold(machine.engine).id, token_of(m), machine.now)
    for successor in machine.jobs()[1:]:
        assert successor.due > machine.now - 2**53


def test_a_pattern_of_a_zone_that_is_gone_ends_quietly(machine: Machine) -> None:
    m = push(machine, pattern="0 0 * * *", tz="Mars/Olympus")
    settle.ack(machine.engine, hold(machine.engine).id, token_of(m), machine.now)
    assert machine.jobs() == [m]


def test_a_message_that_does_not_repeat_has_no_successor(machine: Machine) -> None:
    m = put(machine.engine)
    settle.ack(machine.engine, hold(machine.engine).id, token_of(m), NOW)
    assert machine.jobs() == [m]
    assert repeats.pending(machine.engine, m) is None
