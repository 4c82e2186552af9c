"""The page of pains names tests that exist, and has a row for every report of its groups."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "pains.md").read_text("utf-8")


def names_in(file: Path) -> set[str]:
    text = file.read_text("utf-8")
    return set(re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE))


def test_every_test_that_the_page_names_exists() -> None:
    file = Path()
    for name in re.findall(r"`([^`]*)::(test_\w+)`", PAGE):
        if name[0] != "…":
            file = TESTS / name[0]
        assert name[1] in names_in(file), f"{name[0]}::{name[1]}"


def test_every_report_of_a_covered_group_has_one_row() -> None:
    found = [int(number) for number in re.findall(r"^\| \[P(\d+)\]", PAGE, re.MULTILINE)]
    covered = {*range(1, 62), 67, 68, *range(69, 93), *range(95, 98)}
    assert covered <= set(found)
    assert len(found) == len(set(found)), "a report has two rows"
