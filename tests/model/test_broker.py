"""The rules of a broker's queue: when it asks again, how often, and where its dead letters are."""

from __future__ import annotations

import pytest

from tandemq.model.broker import (
    DEFAULT_POLICY,
    Mode,
    Policy,
    Reason,
    dead_letter_queue,
    most_attempts,
    options_of,
    wait_for_ack,
)


def test_the_schedule_of_the_reference() -> None:
    """VibeMQ semantics 4: 30 s, then 4, 8, 16 s and so on, at most two minutes."""
    waits = [wait_for_ack(DEFAULT_POLICY, failed) // 1000 for failed in range(10)]
    assert waits == [30, 4, 8, 16, 32, 64, 120, 120, 120, 120]
    assert wait_for_ack(DEFAULT_POLICY, 10**6) == 120_000


def test_every_delivery_may_have_the_whole_time() -> None:
    policy = Policy(ack_wait=5_000, full_wait=True)
    assert [wait_for_ack(policy, failed) for failed in range(3)] == [5_000] * 3


@pytest.mark.parametrize(("asked", "made"), [(-1, 1), (0, 1), (1, 1), (3, 3)])
def test_everything_is_delivered_once_at_least(asked: int, made: int) -> None:
    assert most_attempts(Policy(max_attempts=asked)) == made


def test_the_name_of_a_dead_letter_queue() -> None:
    assert dead_letter_queue(Policy(), "orders") == "orders.dlq"
    assert dead_letter_queue(Policy(dead_letter_queue="mine"), "orders") == "mine"


def test_letters_of_one_policy_share_their_options() -> None:
    policy = Policy(ttl=5, max_attempts=7)
    assert options_of(policy) is options_of(Policy(ttl=5, max_attempts=7))
    assert (options_of(policy).ttl, options_of(policy).max_attempts) == (5, 7)
    assert options_of(policy).remove_on_complete


def test_what_fans_out() -> None:
    fans_out = [mode.name for mode in Mode if Policy(mode=mode).fans_out]
    assert fans_out == ["FAN_OUT_WITH_ACK", "FAN_OUT_WITHOUT_ACK"]


def test_reasons_are_shown_as_the_reference_names_them() -> None:
    assert [reason.title for reason in Reason][:4] == [
        "MaxRetriesExceeded",
        "MessageExpired",
        "DeserializationError",
        "HandlerException",
    ]
