"""Numbers as JavaScript prints them, and heads of containers."""

from __future__ import annotations

import math

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.model.body import is_list, is_map, number_text, split_legacy_name


# What a JavaScript peer prints for String(number), by the rules of its specification.
@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5.0, "5"),
        (-17.0, "-17"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (123.456, "123.456"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (1e-7, "1e-7"),
        (-1e-7, "-1e-7"),
        (1e20, "100000000000000000000"),
        (1.5e20, "150000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (-1.25e22, "-1.25e+22"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (2.0**53, "9007199254740992"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_a_number_is_printed_with_the_fewest_digits_and_a_point_only_if_needed(
    number: float, text: str
) -> None:
    assert number_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_is_printed_reads_as_the_same_number(number: float) -> None:
    text = number_text(number)
    assert float(text) == number
    assert len(text) <= 25


@given(
    st.recursive(
        st.integers(0, 9),
        lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.integers(0, 99), inner),
    )
)
def test_lists_and_maps_are_told_by_their_first_byte(value) -> None:
    first = msgpack.packb(value)[0]
    assert is_list(first) == isinstance(value, list)
    assert is_map(first) == isinstance(value, dict)


def test_a_map_with_very_many_odd_keys_keeps_them_all() -> None:
    fields = dict.fromkeys(range(70000), 1)
    raw = msgpack.packb(fields | {"name": "x"})
    assert split_legacy_name(raw) == ("x", msgpack.packb(fields))
