"""Arguments: durations, sizes, JSON."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.cli.types import DURATION, PAYLOAD, SIZE


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("1d", 86_400_000),
        ("1.5s", 1_500), ("250", 250), ("0s", 0), ("0", 0), (" 3 s ", 3_000), ("P1D", 86_400_000),
        ("PT1H30M", 5_400_000), ("P1W", 604_800_000), ("PT0.5S", 500), ("P1DT1S", 86_401_000),
    ],
)  # fmt: skip
def test_a_duration_is_ms(text: str, ms: int) -> None:
    assert DURATION.convert(text, None, None) == ms


@pytest.mark.parametrize(
    "text",
    ["", "s", "-1s", "1 year", "1M", "P", "PT", "P1DT", "1.5ms", "1e3", "inf", "nan", "٣s", "P1Y"],
)
def test_what_is_no_duration_says_how_one_looks(text: str) -> None:
    with pytest.raises(click.BadParameter, match="500ms, 30s, 5m, 2h or P1D"):
        DURATION.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1024", 1024),
        ("64KiB", 65_536),
        ("1 MB", 10**6),
        ("1.5kb", 1500),
        ("2gib", 2**31),
    ],
)
def test_a_size_is_bytes(text: str, size: int) -> None:
    assert SIZE.convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1TB", "1.5", "1.0001kb"])
def test_what_is_no_size_says_how_one_looks(text: str) -> None:
    with pytest.raises(click.BadParameter, match="64MiB"):
        SIZE.convert(text, None, None)


@given(st.text())
def test_no_text_breaks_what_reads_spans_and_sizes(text: str) -> None:
    for kind in (DURATION, SIZE):
        with contextlib.suppress(click.BadParameter):
            assert kind.convert(text, None, None) >= 0


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(values)
def test_json_is_what_it_says(value: Any) -> None:
    text = json.dumps(value, allow_nan=True)
    if "Infinity" not in text:
        assert PAYLOAD.convert(text, None, None) == value


def test_json_comes_from_a_file_or_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job.json").write_text('{"to": "ö"}', "utf-8")
    assert PAYLOAD.convert(f"@{tmp_path}/job.json", None, None) == {"to": "ö"}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[1]")))
    assert PAYLOAD.convert("-", None, None) == [1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", "A text is written in quotes: '\"hello\"'"),
        ('{"a"', "This is no JSON"),
        ("NaN", "NaN is no number of JSON"),
        ("[Infinity]", "Infinity is no number of JSON"),
        ("", "This is no JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("@/nowhere/at/all", "No such file or directory"),
        ("@", "cannot be read"),
    ],
)
def test_what_is_no_json_says_what_to_do(text: str, says: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        PAYLOAD.convert(text, None, None)
    assert says in refused.value.message


def test_a_file_that_is_no_text_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe")
    with pytest.raises(click.BadParameter, match=r"x is no UTF-8 text"):
        PAYLOAD.convert(f"@{tmp_path}/x", None, None)
