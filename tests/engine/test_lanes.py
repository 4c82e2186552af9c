"""Lanes: whose turn it is, what shuts a group and for whom, and that nothing grows for ever."""

from __future__ import annotations

import pytest
from tests.engine.making import make_engine, put

from tandemq.engine.lane import NO_RULE as NONE
from tandemq.engine.lane import NO_TERMS, GroupRule, Lane, Terms
from tandemq.engine.lanes import SLACK, VIEWS, Lanes
from tandemq.engine.ready import Ready
from tandemq.model.message import Message, Options, State

NOW = 1_700_000_000_000


def message(seq: int, group: str | None = "a", priority: int = 0) -> Message:
    m = Message(f"id-{seq}", "q", "job", b"x", seq, NOW, NOW, priority, Options(group=group))
    m.state = State.READY
    return m


def filled(*groups: str | None) -> Lanes:
    lanes = Lanes(Ready())
    for seq, group in enumerate(groups, 1):
        lanes.push(message(seq, group))
    return lanes


def served(lanes: Lanes, terms: Terms = NO_TERMS, now: int = NOW) -> list[int]:
    """The numbers of all that such a pull gets, in order."""
    found: list[int] = []
    while (front := lanes.front(terms, now)) is not None:
        lane, m = front
        if lane is None:
            lanes.pop()
        else:
            lane.took(terms, m.options.cost, now)
            lanes.take(lane)
        found.append(m.seq)
    return found


def test_what_has_no_group_goes_first_then_one_of_each_group_in_turn() -> None:
    assert served(filled("a", "a", "b", None, "a", "b")) == [4, 1, 3, 2, 6, 5]


def test_in_a_lane_the_smallest_priority_goes_first_then_the_earliest_admission() -> None:
    lanes = Lanes(Ready())
    for seq, priority in ((1, 5), (2, 0), (3, 1), (4, 0)):
        lanes.push(message(seq, priority=priority))
    assert served(lanes) == [2, 4, 3, 1]


def test_a_lane_that_was_passed_over_keeps_its_turn() -> None:
    lanes = filled("a", "b", "c", "a", "b", "c")
    lanes.set_rule("a", GroupRule(paused=True))
    assert served(lanes, Terms(affinity="b")) == [2, 5]
    lanes.set_rule("a", NONE)
    assert served(lanes) == [1, 3, 4, 6]


def test_a_group_that_was_empty_joins_at_the_back() -> None:
    lanes = filled("a", "b", "b")
    front = lanes.front(NO_TERMS, NOW)
    assert front is not None
    assert front[0] is not None
    lanes.take(front[0])
    lanes.push(message(9, "a"))
    assert served(lanes) == [2, 9, 3]


def test_a_weight_gives_so_many_in_each_turn() -> None:
    lanes = filled("a", "a", "a", "a", "b", "b")
    lanes.set_rule("a", GroupRule(weight=3))
    assert served(lanes) == [1, 2, 3, 5, 4, 6]


def test_terms_that_shut_a_lane_for_one_pull_leave_it_open_for_another() -> None:
    lanes = filled("a", "a")
    lanes.lane("a").leased = 1
    assert served(lanes, Terms(concurrency=1)) == []
    assert served(lanes) == [1, 2]


def test_a_rate_limit_of_a_group_opens_with_its_next_window() -> None:
    lanes, terms = filled("a", "a", "a"), Terms(max=2, duration=100)
    assert served(lanes, terms) == [1, 2]
    lanes.at(lanes.lane("a").window_ends, "a")
    assert served(lanes, terms, NOW + 99) == []
    assert served(lanes, terms, NOW + 100) == [3]


def test_rules_replace_the_limits_of_pulls_and_mean_nothing_to_pulls_without() -> None:
    lanes = filled("a", "a", "a")
    lanes.set_rule("a", GroupRule(max=2, duration=100))
    assert served(lanes, Terms(max=1, duration=100)) == [1, 2]
    assert served(lanes) == [3]


def test_a_closure_ends_by_itself_and_is_told_once() -> None:
    lanes = filled("a")
    lanes.set_rule("a", GroupRule(closed_until=NOW + 50))
    assert served(lanes) == []
    assert lanes.wakes == NOW + 50
    assert served(lanes, now=NOW + 50) == [1]
    assert lanes.lapsed == ["a"]


def test_affinity_takes_from_one_group_or_from_none() -> None:
    lanes = filled("a", "b", None)
    assert served(lanes, Terms(affinity="zzz")) == []
    assert served(lanes, Terms(affinity="b")) == [2]
    assert served(lanes, Terms(affinity=None)) == [3]


def test_a_message_that_leaves_unserved_is_skipped() -> None:
    lanes = Lanes(Ready())
    messages = [message(seq) for seq in range(1, 2 * SLACK)]
    for m in messages:
        lanes.push(m)
    for m in messages[:-1]:
        lanes.left(m)
        m.gen += 1
    assert len(lanes) == 1
    assert lanes.priorities() == {0: 1}
    assert served(lanes) == [messages[-1].seq]


def test_a_message_that_comes_back_takes_its_old_place() -> None:
    lanes = filled("a", "a", "a")
    first = next(iter(lanes))
    lanes.left(first)
    first.gen += 1
    lanes.push(first)
    assert [m.seq for m in lanes] == [1, 2, 3]
    assert [m.seq for m in reversed(lanes)] == [3, 2, 1]
    assert served(lanes) == [1, 2, 3]


def test_lanes_that_hold_nothing_are_forgotten() -> None:
    lanes = Lanes(Ready())
    for n in range(10 * SLACK):
        m = message(n, f"g{n}")
        lanes.push(m)
        served(lanes)
        m.state = State.LEASED
        lanes.entered(m)
        lanes.leaves(m)
    assert lanes.blank


def test_views_of_terms_that_nobody_uses_any_more_are_dropped() -> None:
    lanes = Lanes(Ready())
    for n in range(1, 3 * VIEWS):
        served(lanes, Terms(concurrency=n))
    for n in range(4 * SLACK):
        lanes.push(message(n, f"g{n}"))
        served(lanes)
        lanes.forget(lanes.lane(f"g{n}"))
    assert len(lanes._views) <= VIEWS
    assert all(len(turns.inside) <= 2 * SLACK for turns in lanes._views.values())


@pytest.mark.parametrize("step", [-5_000, 5_000])
def test_windows_and_closures_move_with_the_clock(step: int) -> None:
    lanes, terms = filled("a", "a", "b"), Terms(max=1, duration=100)
    lanes.set_rule("b", GroupRule(closed_until=NOW + 70))
    assert served(lanes, terms) == [1]
    lanes.shift_spans(step)
    assert served(lanes, terms, NOW + step + 69) == []
    assert served(lanes, terms, NOW + step + 70) == [3]
    assert served(lanes, terms, NOW + step + 100) == [2]


def test_delayed_and_leased_messages_are_counted_in_their_lane() -> None:
    lanes, m = Lanes(Ready()), message(1)
    m.state = State.DELAYED
    lanes.entered(m)
    assert (lanes.waiting("a"), lanes.delayed) == (1, 1)
    lanes.leaves(m)
    assert (lanes.waiting("a"), lanes.delayed) == (0, 0)
    assert Lane("a", NONE).blank


def test_what_goes_before_a_message_is_counted_in_its_own_lane() -> None:
    engine = make_engine()
    made = [put(engine, group=group) for group in ("a", None, "b", "a", None, "a")]
    order = engine.queues["q"].ready
    assert [order.ahead(m, 100)[0] for m in made] == [0, 0, 0, 1, 1, 2]
