"""Deadlines: they ring in order, too early at most, and only for those who did not move on."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.engine import timers as module
from tandemq.engine.timers import FAR, LINES, SLACK, Timers


@dataclass(eq=False)
class Owner:
    """Somebody with a deadline: the earliest of its present generation is the one that counts."""

    name: str
    gen: int = 0
    deadline: int | None = None

    def move_on(self) -> None:
        self.gen += 1
        self.deadline = None

    def set(self, timers: Timers, when: int) -> None:
        timers.set(self, when)
        self.deadline = when if self.deadline is None else min(self.deadline, when)


SETS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 20), st.booleans()))


@given(SETS, st.integers(0, 20))
def test_the_deadlines_of_the_present_generation_ring_in_order(sets, now) -> None:
    timers = Timers()
    owners = {name: Owner(name) for name in "abcdefgh"}
    set_for: list[tuple[int, Owner, int]] = []
    for name, when, moves_on in sets:
        owner = owners[name]
        if moves_on:
            owner.move_on()
        owner.set(timers, when)
        set_for.append((when, owner, owner.gen))
    alive = sorted(
        (entry for entry in set_for if entry[1].gen == entry[2]), key=lambda entry: entry[0]
    )
    assert timers.next_wake() == (alive[0][0] if alive else None)
    rung = list(timers.due(now))
    assert rung == [owner for when, owner, _ in alive if when <= now]
    rest = [when for when, _, _ in alive if when > now]
    assert timers.next_wake() == (rest[0] if rest else None)


@given(SETS)
def test_whoever_has_moved_on_does_not_ring(sets) -> None:
    timers, owner = Timers(), Owner("a")
    for _, when, _ in sets:
        owner.set(timers, when)
    owner.move_on()
    assert timers.next_wake() is None
    assert list(timers.due(20)) == []
    assert len(timers) == 0


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=300))
def test_a_sweep_keeps_the_living(moves) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SLACK", 4)
        timers = Timers()
        timers._sweep_at = 4
        owners = [Owner(str(n)) for n in range(6)]
        for n, (when, moves_on) in enumerate(moves):
            owner = owners[n % 6]
            if moves_on:
                owner.move_on()
            owner.set(timers, when)
        deadlines = sorted(owner.deadline for owner in owners if owner.deadline is not None)
        assert timers.next_wake() == (deadlines[0] if deadlines else None)
        rung = list(dict.fromkeys(timers.due(30)))
        assert [owner.deadline for owner in rung] == deadlines
    assert len(timers) == 0


def test_those_who_move_on_for_ever_fill_no_memory() -> None:
    timers, owner = Timers(), Owner("a")
    for n in range(20 * SLACK):
        owner.gen += 1
        timers.set(owner, 1_000_000 - n % 7)
    assert len(timers) <= SLACK + 1


def test_whoever_rings_may_set_the_next_deadline_at_once() -> None:
    timers, owner, rings = Timers(), Owner("a"), []
    timers.set(owner, 1)
    for who in timers.due(10):
        assert who is owner
        rings.append(timers.next_wake())
        if len(rings) < 3:
            timers.set(owner, 10)
    assert rings == [None, None, None]
    assert timers.next_wake() is None


def test_an_earlier_deadline_rings_earlier_and_the_later_one_again() -> None:
    timers, owner = Timers(), Owner("a")
    timers.set(owner, 20)
    timers.set(owner, 10)
    assert timers.next_wake() == 10
    assert list(timers.due(10)) == [owner]
    assert list(timers.due(20)) == [owner]


def test_equal_deadlines_ring_in_the_order_in_which_they_were_set() -> None:
    timers, owners = Timers(), [Owner(str(n)) for n in range(10)]
    for owner in owners:
        timers.set(owner, 7)
    assert list(timers.due(7)) == owners


def test_deadlines_that_come_in_no_order_at_all_ring_in_order() -> None:
    timers = Timers()
    falling = [Owner(str(n)) for n in range(LINES + 5)]
    for n, owner in enumerate(falling):
        timers.set(owner, 100 - n)
    assert list(timers.due(100)) == falling[::-1]


def test_the_soonest_tells_whether_a_sleeper_has_to_look_again() -> None:
    timers = Timers()
    assert timers.soonest == FAR
    owner = Owner("a")
    timers.set(owner, 50)
    timers.set(Owner("b"), 70)
    assert timers.soonest == 50
    owner.move_on()
    assert timers.next_wake() == timers.soonest == 70
    timers.watch(1, Owner("c"), 60)
    assert timers.soonest == 60


# -- what is watched -------------------------------------------------------------------------------


@given(SETS, st.integers(0, 20))
def test_what_is_watched_rings_in_order_with_all_others(sets, now) -> None:
    timers = Timers()
    wanted: list[tuple[int, int]] = []
    for n, (_, when, is_set) in enumerate(sets):
        owner = Owner(str(n))
        timers.set(owner, when) if is_set else timers.watch(n, owner, when)
        wanted.append((when, n))
    wanted.sort()
    assert timers.next_wake() == (wanted[0][0] if wanted else None)
    assert len(timers) == len(wanted)
    assert [owner.name for owner in timers.due(now)] == [str(n) for at, n in wanted if at <= now]


def test_what_is_not_watched_any_more_does_not_ring() -> None:
    timers = Timers()
    for key in range(3):
        timers.watch(key, Owner(str(key)), 10)
    timers.unwatch(0)
    timers.unwatch(2)
    timers.unwatch(2)
    assert len(timers) == 1
    assert [owner.name for owner in timers.due(10)] == ["1"]


def test_whoever_moved_on_while_it_was_watched_does_not_ring() -> None:
    timers, owner = Timers(), Owner("a")
    timers.watch(1, owner, 10)
    owner.move_on()
    assert timers.next_wake() is None
    assert len(timers) == 0
