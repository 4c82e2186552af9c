"""Spans and sizes as people write them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.amounts import SIZES, SPANS, size, span_ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("500ms", 500), ("30s", 30_000), ("1.5 m", 90_000), ("2h", 7_200_000), ("7", 7_000),
        (" 3 s ", 3_000), ("1.001s", 1_001), ("0.5ms", Fraction(1, 2)), ("P1W", 604_800_000),
        ("P1DT2H3M4.5S", 93_784_500), ("PT5M", 300_000), ("P1D", 86_400_000), ("PT0S", 0),
    ],
)  # fmt: skip
def test_a_span_is_exact(text: str, ms: int) -> None:
    assert span_ms(text, "s") == ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "P1M", "1M", "5x", "-5s", "1e3", "inf", "٣s", "1" * 19]
)
def test_what_is_no_span_is_none(text: str) -> None:
    assert span_ms(text, "ms") is None


@given(st.integers(0, 10**15), st.sampled_from([*SPANS]))
def test_a_number_alone_is_in_the_unit_that_the_place_has(number: int, unit: str) -> None:
    assert span_ms(str(number), unit) == span_ms(f"{number}{unit}", "d") == number * SPANS[unit]


@given(st.integers(0, 10**15), st.sampled_from([*SIZES]))
def test_sizes_care_for_no_case(number: int, unit: str) -> None:
    assert size(f"{number} {unit.upper()}") == size(f"{number}{unit}") == number * SIZES[unit]
    assert size(f"{number}tb") is None
