"""One lane: the order in it, what is stale, and when it is open."""

from __future__ import annotations

import pytest

from tandemq.engine.lane import NO_RULE, NO_TERMS, SLACK, GroupRule, Lane, Terms
from tandemq.model.message import Message, Options

NOW = 1_700_000_000_000


def message(seq: int, priority: int = 0) -> Message:
    return Message(f"id-{seq}", "q", "job", b"x", seq, NOW, NOW, priority, Options(group="a"))


def filled(*priorities: int) -> Lane:
    lane = Lane("a", NO_RULE)
    for seq, priority in enumerate(priorities, 1):
        lane.push(message(seq, priority))
    return lane


def emptied(lane: Lane) -> list[int]:
    found: list[int] = []
    while (m := lane.first()) is not None:
        lane.pop()
        found.append(m.seq)
    return found


def test_the_smallest_priority_goes_first_then_the_earliest() -> None:
    lane = filled(3, 1, 2, 1)
    assert [m.seq for m in lane] == [2, 4, 3, 1]
    assert emptied(lane) == [2, 4, 3, 1]
    assert (lane.size, lane.priorities) == (0, {})


def test_what_left_unserved_is_skipped_and_swept() -> None:
    lane = Lane("a", NO_RULE)
    messages = [message(seq, seq % 2) for seq in range(4 * SLACK)]
    for m in messages:
        lane.push(m)
    for m in messages[:-2]:
        lane.left(m)
        m.gen += 1
    assert lane.size == 2
    assert lane.priorities == {0: 1, 1: 1}
    assert emptied(lane) == [messages[-2].seq, messages[-1].seq]


@pytest.mark.parametrize(
    ("rule", "terms", "leased", "is_open"),
    [
        (GroupRule(), NO_TERMS, 9, True),
        (GroupRule(paused=True), NO_TERMS, 0, False),
        (GroupRule(closed_until=NOW + 1), NO_TERMS, 0, False),
        (GroupRule(closed_until=NOW), NO_TERMS, 0, True),
        (GroupRule(), Terms(concurrency=2), 1, True),
        (GroupRule(), Terms(concurrency=2), 2, False),
        (GroupRule(concurrency=3), Terms(concurrency=2), 2, True),
        (GroupRule(concurrency=1), NO_TERMS, 2, True),
    ],
)
def test_rules_and_terms_open_and_shut_it(
    rule: GroupRule, terms: Terms, leased: int, is_open: bool
) -> None:
    lane = Lane("a", rule)
    lane.leased = leased
    assert lane.open(terms, NOW) is is_open


def test_a_window_begins_with_the_first_message_and_counts_costs() -> None:
    lane, terms = Lane("a", NO_RULE), Terms(max=3, duration=100)
    assert lane.took(terms, 2, NOW)
    assert not lane.took(terms, 1, NOW + 10)
    assert not lane.open(terms, NOW + 99)
    assert lane.open(NO_TERMS, NOW + 99), "a pull without a rate limit is not held up"
    assert lane.open(terms, NOW + 100)
    assert lane.took(terms, 1, NOW + 100)
    assert not Lane("a", NO_RULE).took(NO_TERMS, 1, NOW)


def test_a_rule_sets_the_length_of_the_window() -> None:
    lane = Lane("a", GroupRule(max=1, duration=500))
    lane.took(Terms(max=9, duration=100), 1, NOW)
    assert lane.window_ends == NOW + 500
    assert not lane.open(Terms(max=9, duration=100), NOW + 499)


def test_what_goes_before_a_message_is_counted_within_a_bound() -> None:
    lane = filled(2, 1, 3, 1, 0, 2)
    waiting = list(lane)
    assert [lane.ahead(m, 100) for m in waiting] == [(n, True) for n in range(6)]
    lane.left(waiting[0])
    waiting[0].gen += 1
    assert lane.ahead(waiting[5], 100) == (4, True)
    ahead, exact = lane.ahead(waiting[5], 1)
    assert ahead < 4
    assert not exact
