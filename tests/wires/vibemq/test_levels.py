"""The header that says how urgent a message is."""

from __future__ import annotations

import pytest

from tandemq.wires.vibemq.levels import CRITICAL, HIGH, LOW, NORMAL, priority


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ("low", LOW),
        ("Normal", NORMAL),
        (" HIGH ", HIGH),
        ("critical", CRITICAL),
        ("0", LOW),
        ("3", CRITICAL),
        ("4", NORMAL),
        ("-1", NORMAL),
        ("", NORMAL),
        ("low,high", NORMAL),
    ],
)
def test_a_name_or_a_number_is_a_level_and_all_else_is_normal(said: str, level: int) -> None:
    assert priority({"priority": said}) == level


def test_without_the_header_a_message_is_normal() -> None:
    assert priority({"Priority": "high"}) == NORMAL
