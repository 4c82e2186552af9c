"""Ids: UUIDs of version 7, in order, unguessable."""

from __future__ import annotations

from random import Random
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.engine.ids import Uuid7

NOW = 1_700_000_000_000


def maker(seed: int = 1) -> Uuid7:
    return Uuid7(Random(seed).randbytes)


@pytest.mark.parametrize("now", [0, 1, NOW, (1 << 48) - 1])
def test_an_id_is_a_uuid_of_version_7_that_tells_its_millisecond(now: int) -> None:
    text = maker()(now)
    id = UUID(text)
    assert (str(id), id.version, id.variant) == (text, 7, RFC_4122)
    assert id.int >> 80 == now


@given(st.lists(st.integers(-3, 3), max_size=60))
def test_ids_never_go_back_even_if_the_clock_does(steps) -> None:
    new_id, now, made = maker(), NOW, []
    for step in steps:
        now += step
        made.append(new_id(now))
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_a_millisecond_that_is_full_borrows_from_the_next_one() -> None:
    new_id = maker()
    made = [new_id(NOW) for _ in range(3 * 4096 + 5)]
    assert made == sorted(set(made))
    assert {UUID(id).int >> 80 for id in made} == {NOW, NOW + 1, NOW + 2, NOW + 3}
    assert new_id(NOW) > made[-1]
    assert UUID(new_id(NOW + 10)).int >> 80 == NOW + 10


def test_the_tail_of_an_id_cannot_be_told_from_those_before() -> None:
    tails = {UUID(id).int & ((1 << 62) - 1) for id in map(maker(), [NOW] * 5_000)}
    assert len(tails) == 5_000
    for bit in range(62):
        ones = sum(tail >> bit & 1 for tail in tails)
        assert 2_200 < ones < 2_800, f"bit {bit} is the same nearly always"


def test_equal_dice_make_equal_ids_and_others_make_others() -> None:
    assert [maker(3)(NOW) for _ in range(3)] == [maker(3)(NOW) for _ in range(3)]
    assert maker(3)(NOW) != maker(4)(NOW)
