"""The record of a schedule: what it decides without a calendar, and how it is stored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tandemq.model.message import DEFAULTS, Message, State
from tandemq.model.schedule import (
    ALL,
    LATE,
    LONG_AGO,
    ONCE,
    RESTART,
    SKIP,
    Schedule,
    alive,
    options_of,
)


def make(**fields: Any) -> Schedule:
    return Schedule(**{"name": "n", "queue": "q", "job_name": "j", "body": b"\x01", **fields})


def test_runs_that_may_not_overlap_share_a_key() -> None:
    assert make().key == "cron:n"
    assert make().exclusive


def test_runs_that_may_overlap_have_none() -> None:
    assert make(prevent_overlap=False).key is None
    assert not make(prevent_overlap=False).exclusive
    assert options_of(make(prevent_overlap=False)) is DEFAULTS


def test_a_key_of_ones_own_is_kept_and_decides_alone() -> None:
    s = make(job={"unique_key": "mine"})
    assert s.key == "mine"
    assert not s.exclusive
    assert options_of(s).unique_key == "mine"


def test_a_run_that_may_not_overlap_keeps_its_key_through_its_tries() -> None:
    assert options_of(make()).dedup_keep
    assert not options_of(make(job={"unique_key": "mine"})).dedup_keep


def test_options_of_a_later_version_are_left_out() -> None:
    assert options_of(make(job={"max_attempts": 7, "unheard_of": 1})).max_attempts == 7


@pytest.mark.parametrize(
    ("fields", "tolerance"),
    [
        ({}, RESTART),
        ({"missed": SKIP}, LATE),
        ({"missed": SKIP, "max_lateness": 0}, 0),
        ({"missed": SKIP, "max_lateness": 5_000}, LATE),
        ({"missed": ONCE}, None),
        ({"missed": ONCE, "max_lateness": 5_000}, 5_000),
        ({"missed": ALL}, LONG_AGO),
        ({"missed": ALL, "max_lateness": 7}, 7),
        ({"max_lateness": 7}, 7),
    ],
)
def test_a_run_may_be_so_late(fields: dict[str, Any], tolerance: int | None) -> None:
    assert make(**fields).tolerance == tolerance


def test_a_schedule_is_spent_after_its_last_run() -> None:
    assert not make(executions=5).spent
    assert not make(max_runs=2, executions=1).spent
    assert make(max_runs=2, executions=2).spent


def test_two_schedules_name_the_same_moments_if_pattern_interval_and_zone_are_equal() -> None:
    one = make(pattern="0 0 * * *", tz="Europe/Rome")
    assert one.same_moments(make(pattern="0 0 * * *", tz="Europe/Rome", priority=4))
    assert not one.same_moments(make(pattern="0 0 * * *"))
    assert not one.same_moments(make(every=5))


def test_a_stored_schedule_comes_back_as_it_was_with_the_types_of_its_numbers() -> None:
    s = make(
        every=60_000, job={"backoff": 1000, "timeout": 1.5}, executions=3, next=7, body=b"\xc0"
    )
    back = msgspec.msgpack.decode(msgspec.msgpack.encode(s), type=Schedule)
    assert back == s
    assert [type(v) for v in back.job.values()] == [int, float]


@pytest.mark.parametrize("state", list(State))
def test_a_message_is_alive_until_it_has_ended(state: State) -> None:
    m = Message("id", "q", "j", b"", 1, 0, 0, state=state)
    assert alive(m) == (state not in (State.DONE, State.DEAD, State.GONE))


def test_a_message_that_is_not_there_is_not_alive() -> None:
    assert not alive(None)
