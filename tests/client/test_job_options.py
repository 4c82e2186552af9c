"""Options of jobs: their names on the wire, their types, and what is wrong with others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

import pytest

from tandemq.client.errors import BadOption
from tandemq.client.job_options import NAMES, JobOptions, wire

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


def test_every_option_is_written() -> None:
    assert get_type_hints(JobOptions).keys() == NAMES


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({}, {}),
        ({"priority": None}, {}),
        ({"delay": timedelta(seconds=2)}, {"delay": 2000}),
        ({"delay": 0.5, "attempts": 3}, {"delay": 500, "maxAttempts": 3}),
        ({"id": "x"}, {"jobId": "x", "customId": "x"}),
        ({"backoff": 2}, {"backoff": 2000}),
        ({"backoff_kind": "fixed"}, {"backoff": {"type": "fixed", "delay": 1000}}),
        (
            {"backoff": 2, "backoff_kind": "exponential"},
            {"backoff": {"type": "exponential", "delay": 2000}},
        ),
        ({"created_at": MOMENT}, {"timestamp": 1767312000000}),
        ({"tags": ("a", "b")}, {"tags": ["a", "b"]}),
        ({"group": "g", "cost": 2.5}, {"groupId": "g", "cost": 2.5}),
        ({"on_failure": "ignore"}, {"ignoreDependencyOnFailure": True}),
        ({"unique_key": "k", "unique_for": 1}, {"uniqueKey": "k", "dedup": {"ttl": 1000}}),
        (
            {"unique_key": "k", "on_duplicate": "replace", "keep_key": True},
            {"uniqueKey": "k", "dedup": {"keep": True, "replace": True}},
        ),
        (
            {"unique_key": "k", "on_duplicate": "queue-one"},
            {"uniqueKey": "k", "dedup": {"policy": "queue-one"}},
        ),
        (
            {"repeat": {"every": timedelta(minutes=1), "limit": 3, "start": MOMENT}},
            {"repeat": {"every": 60_000, "limit": 3, "startDate": 1767312000000}},
        ),
        ({"run_at": MOMENT}, {"delay": 0}),
    ],
)
def test_options_have_their_names_on_the_wire(given: dict[str, Any], written: Any) -> None:
    assert wire(given) == written


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"prioritty": 1}, "did you mean priority?"),
        ({"maxAttempts": 1}, "there is no option maxAttempts"),
        ({"priority": "high"}, "give a whole number"),
        ({"priority": True}, "give a whole number"),
        ({"lifo": 1}, "give True or False"),
        ({"delay": "soon"}, "30s"),
        ({"delay": -1}, "0 or more"),
        ({"delay": timedelta(days=-1)}, "0 or more"),
        ({"run_at": datetime(2026, 1, 1)}, "has no zone"),
        ({"run_at": 17}, "datetime with a zone"),
        ({"run_at": MOMENT, "delay": 1}, "two words for one thing"),
        ({"tags": "abc"}, "list of texts"),
        ({"tags": [1]}, "list of texts"),
        ({"tags": 5}, "list of texts"),
        ({"on_failure": {}}, "fail, continue, ignore, remove"),
        ({"repeat": 5}, "a map of every or pattern"),
        ({"depends_on": b"abc"}, "list of texts"),
        ({"on_failure": "explode"}, "fail, continue, ignore, remove"),
        ({"on_duplicate": "drop"}, "give unique_key too"),
        ({"unique_key": "k", "on_duplicate": "x"}, "queue-one"),
        ({"backoff_kind": "linear"}, "exponential, fixed"),
        ({"repeat": {"often": 1}}, "no option often"),
    ],
)
def test_what_cannot_be_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadOption) as caught:
        wire(given)
    assert words in str(caught.value)
