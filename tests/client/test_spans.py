"""Spans and moments as they are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tandemq.client.errors import BadOption
from tandemq.client.spans import millis, moment_ms, seconds


@pytest.mark.parametrize(
    ("span", "ms"),
    [
        (timedelta(hours=1), 3_600_000), (0.25, 250), (3, 3_000), ("500ms", 500), ("30s", 30_000),
        ("1.5 m", 90_000), ("2h", 7_200_000), ("1d", 86_400_000), ("P1D", 86_400_000),
        ("P1DT2H3M4.5S", 93_784_500), ("PT5M", 300_000), ("7", 7_000), (0, 0),
    ],
)  # fmt: skip
def test_a_span_is_whole_milliseconds(span: Any, ms: int) -> None:
    assert millis(span) == ms
    assert seconds(span) == ms / 1000


@pytest.mark.parametrize(
    "span", ["", "P", "PT", "5x", "-5s", "five", -1, float("nan"), 1e999, None, True, []]
)
def test_what_is_no_span_says_how_one_is_written(span: Any) -> None:
    with pytest.raises(BadOption, match=r"delay is .*(write|finite|give)"):
        millis(span, "delay")


def test_a_moment_has_a_zone() -> None:
    assert moment_ms(datetime(1970, 1, 1, 0, 1, tzinfo=UTC)) == 60_000
    for odd in (datetime(2030, 1, 1), 5):
        with pytest.raises(BadOption, match="zone"):
            moment_ms(odd)  # type: ignore[arg-type]
