"""The order of the ready messages, against a sorted list."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.engine import ready as module
from tandemq.engine.ready import Ready
from tandemq.model.message import DEFAULTS, Message, Options

LIFO = Options(lifo=True)


def message(seq: int, due: int = 0, priority: int = 0, lifo: bool = False) -> Message:
    return Message(str(seq), "q", "n", b"", seq, due, due, priority, LIFO if lifo else DEFAULTS)


def place(m: Message) -> tuple[int, ...]:
    """Priority; then lifo, newest first; then the others by due and arrival (semantics 2)."""
    if m.options.lifo:
        return (-m.priority, 0, -m.seq)
    return (-m.priority, 1, m.due, m.seq)


class Naive:
    """The same as a list that is sorted whenever somebody looks."""

    def __init__(self) -> None:
        self.real = Ready()
        self.there: list[Message] = []

    def push(self, m: Message) -> None:
        self.real.push(m)
        self.there.append(m)

    def pop(self) -> Message | None:
        expected = min(self.there, key=place, default=None)
        if expected is not None:
            self.there.remove(expected)
        assert self.real.pop() is expected
        if expected is not None:
            expected.gen += 1  # it moves on
        return expected

    def remove(self, n: int) -> None:
        """One leaves without having been taken: it expires, or is completed late."""
        if self.there:
            m = self.there.pop(n % len(self.there))
            self.real.left(m)
            m.gen += 1

    def compare(self) -> None:
        expected = sorted(self.there, key=place)
        assert len(self.real) == len(expected)
        assert bool(self.real) == bool(expected)
        assert list(self.real) == expected
        assert list(reversed(self.real)) == expected[::-1]
        assert self.real.priorities() == Counter(m.priority for m in expected)
        assert set(map(id, expected)) <= set(map(id, self.real.all()))


MESSAGES = st.tuples(st.integers(0, 5), st.integers(-2, 2), st.booleans())
STEPS = st.lists(
    st.one_of(
        MESSAGES.map(lambda what: ("push", what)),
        st.just(("pop", None)),
        st.integers(0, 50).map(lambda n: ("remove", n)),
        st.integers(0, 50).map(lambda n: ("return", n)),
    ),
    max_size=60,
)


def play(steps) -> Naive:
    order, taken = Naive(), []
    for seq, (verb, what) in enumerate(steps, 1):
        if verb == "push":
            order.push(message(seq, *what))
        elif verb == "pop":
            taken += [m] if (m := order.pop()) is not None else []
        elif verb == "remove":
            order.remove(what)
        elif taken:
            order.push(taken.pop(what % len(taken)))
        order.compare()
    return order


@given(STEPS)
def test_messages_are_handed_out_in_their_order_whatever_came_between(steps) -> None:
    order = play(steps)
    while order.pop() is not None:
        order.compare()
    assert order.real.pop() is None


@given(STEPS)
def test_a_sweep_of_stale_entries_changes_nothing(steps) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SLACK", 0)
        order = play(steps)
        while order.pop() is not None:
            order.compare()


@given(st.permutations(range(1, 8)))
def test_a_message_that_is_given_back_stands_where_it_stood(seqs) -> None:
    ready = Ready()
    for seq in range(1, 8):
        ready.push(message(seq))
    taken = {m.seq: m for m in iter(ready.pop, None)}
    for seq in seqs:
        taken[seq].gen += 1
        ready.push(taken[seq])
    assert [m.seq for m in ready] == list(range(1, 8))


def test_a_message_that_comes_back_while_its_old_entry_is_still_there_is_there_once() -> None:
    ready, m = Ready(), message(1)
    ready.push(m)
    ready.left(m)
    m.gen += 1
    ready.push(m)
    assert (len(ready), list(ready)) == (1, [m])
    assert ready.pop() is m
    assert ready.pop() is None


def test_those_who_leave_without_being_taken_fill_no_memory() -> None:
    ready, kept = Ready(), message(0, due=-1)
    ready.push(kept)
    for seq in range(1, 20 * module.SLACK):
        m = message(seq, seq % 3, lifo=seq % 2 == 0)
        ready.push(m)
        ready.left(m)
        m.gen += 1
    lane = ready._lanes[0]
    assert len(lane.line) + len(lane.early) + len(lane.stack) <= 2 * module.SLACK + 3
    assert list(ready) == [kept]


def test_an_emptied_priority_leaves_nothing_behind() -> None:
    ready = Ready()
    for priority in range(100):
        ready.push(message(priority, priority=priority))
    assert [m.priority for m in iter(ready.pop, None)] == list(range(99, -1, -1))
    assert ready._lanes == {}
    assert ready._order == []


def test_priorities_are_counted_without_looking_at_every_message() -> None:
    order = Ready()
    messages = [Message("", "q", "n", b"", seq, 0, 0, priority=seq % 3) for seq in range(9)]
    for m in messages:
        order.push(m)
    assert order.priorities() == {0: 3, 1: 3, 2: 3}
    order.left(messages[0])
    messages[0].gen += 1
    order.pop()
    assert order.priorities() == {0: 2, 1: 3, 2: 2}


def test_all_that_is_ready_can_be_noted_down_while_it_leaves() -> None:
    order = Ready()
    messages = [Message("", "q", "n", b"", seq, 0, 0, priority=seq % 2) for seq in range(4)]
    for m in messages:
        order.push(m)
    seen = []
    for m in order.all():
        seen.append(m.seq)
        order.left(m)
        m.gen += 1
    assert seen == [1, 3, 0, 2]
    assert len(order) == 0
    assert order.pop() is None


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 1), st.booleans()), max_size=30),
    st.sets(st.integers(0, 29)),
    st.integers(1, 8),
)
def test_what_goes_before_a_message_is_counted_within_a_bound(made, gone, most) -> None:
    order = Ready()
    messages = [message(seq, *how) for seq, how in enumerate(made)]
    for m in messages:
        order.push(m)
    for m in messages:
        if m.seq in gone:
            order.left(m)
            m.gen += 1
    for n, m in enumerate(list(order)):
        assert order.ahead(m, 100) == (n, True)
        ahead, exact = order.ahead(m, most)
        assert ahead == n if exact else ahead <= n


def test_a_queue_that_is_emptied_from_its_front_keeps_no_stale_entries() -> None:
    order = Ready()
    messages = [Message("", "q", "n", b"", seq, 0, 0) for seq in range(1, 101)]
    for m in messages:
        order.push(m)
    for m in messages:
        order.left(m)
        m.gen += 1
    assert sum(len(lane.line) for lane in order._lanes.values()) <= 1
