"""What PUSHF refuses, in which words: one case for every sentence."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import Desk

NAME = "Job name must be a non-empty string of at most 256 characters"
TAGS = "tags must be an array of strings of at most 256 characters"
BAD_ID = "flow job id is invalid or is not well-formed Unicode"


def job(id: Any = "a", queue: Any = "q", **fields: Any) -> dict[str, Any]:
    return {"id": id, "queue": queue, "input": {"name": "n", "data": {"v": 1}, **fields}}


def refused(desk: Desk, *jobs: Any) -> str:
    words = desk.refused("PUSHF", jobs=list(jobs))
    assert desk.engine.messages == {}
    return words


@pytest.mark.parametrize("jobs", [None, "x", 5, {}])
def test_jobs_are_a_list(desk: Desk, jobs: Any) -> None:
    assert desk.refused("PUSHF", jobs=jobs) == "flow jobs must be an array"


@pytest.mark.parametrize(
    ("id", "words"),
    [
        (None, "flow job id must be a string"),
        (7, "flow job id must be a string"),
        ("", BAD_ID),
        ("x" * 1025, BAD_ID),
        ("a:b", "flow job id cannot contain a colon"),
    ],
)
def test_an_id_is_a_short_text(desk: Desk, id: Any, words: str) -> None:
    assert refused(desk, job(id)) == words


def test_ids_are_different(desk: Desk) -> None:
    assert refused(desk, job("a"), job("a")) == "duplicate flow job id: a"


@pytest.mark.parametrize("queue", ["bad queue", "", "q" * 257])
def test_a_queue_has_a_good_name(desk: Desk, queue: str) -> None:
    assert refused(desk, job(queue=queue)) == f"invalid flow queue: {queue}"


def test_every_part_of_a_job_is_there(desk: Desk) -> None:
    assert refused(desk, {"id": "a", "input": {"data": {}}}) == "invalid flow queue: undefined"
    for bad in ({"id": "a", "queue": "q"}, {"id": "a", "queue": "q", "input": None}):
        assert refused(desk, bad) == "flow job input must be an object: a"
    assert "must be an object" in refused(desk, 7)


NUMBERS = [
    ("priority", "priority", -1_000_000, 1_000_000, True),
    ("delay", "delay", 0, 31_536_000_000, False),
    ("timeout", "timeout", 0, 86_400_000, False),
    ("maxAttempts", "attempts", 1, 1000, True),
    ("backoff", "backoff", 0, 86_400_000, False),
    ("ttl", "ttl", 0, 31_536_000_000, False),
    ("stallTimeout", "stallTimeout", 0, 86_400_000, False),
    ("stackTraceLimit", "stackTraceLimit", 0, 10_000, True),
    ("keepLogs", "keepLogs", 0, 1_000_000, True),
    ("sizeLimit", "sizeLimit", 0, 10_485_760, True),
    ("timestamp", "timestamp", 0, 9_007_199_254_740_991, False),
]


@pytest.mark.parametrize(("field", "label", "low", "high", "whole"), NUMBERS)
def test_a_number_has_its_bounds(
    desk: Desk, field: str, label: str, low: int, high: int, whole: bool
) -> None:
    between = f"{label} must be between {low} and {high}"
    assert refused(desk, job(**{field: low - 1})) == between
    assert refused(desk, job(**{field: float(high) * 2})) == between
    assert refused(desk, job(**{field: "5"})) == f"{label} must be a finite number"
    assert refused(desk, job(**{field: True})) == f"{label} must be a finite number"
    if whole:
        assert refused(desk, job(**{field: 1.5})) == f"{label} must be an integer"
    desk.do("PUSHF", jobs=[job(**{field: None})])


@pytest.mark.parametrize(
    "field", ["lifo", "durable", "removeOnComplete", "removeOnFail", "failParentOnFailure"]
)
@pytest.mark.parametrize("value", [None, 1, "true"])
def test_a_flag_is_a_boolean(desk: Desk, field: str, value: Any) -> None:
    assert refused(desk, job(parentId="p", **{field: value})) == f"{field} must be a boolean"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"customId": "b"}, "custom id does not match planned id: a"),
        ({"jobId": "b"}, "custom id does not match planned id: a"),
        ({"parentId": ""}, "flow parent id is invalid: a"),
        ({"parentId": 4}, "flow parent id is invalid: a"),
        ({"dependsOn": "x"}, "dependsOn must be an array of valid string job ids"),
        ({"dependsOn": [1]}, "dependsOn must be an array of valid string job ids"),
        ({"dependsOn": [""]}, "dependsOn must be an array of valid string job ids"),
        ({"childrenIds": "x"}, "childrenIds must be an array of valid string job ids"),
        ({"childrenIds": [""]}, "childrenIds must be an array of valid string job ids"),
        ({"name": ""}, NAME),
        ({"name": None}, NAME),
        ({"name": "n" * 257}, NAME),
        ({"data": [1]}, "flow job data must be an object"),
        ({"data": None}, "flow job data must be an object"),
        ({"data": "s"}, "flow job data must be an object"),
        ({"data": {"x": "y" * 10_485_760}}, "Job data too large (max 10MB)"),
        ({"groupId": "g", "priority": -1}, "group.priority must be between 0 and 2097151"),
        ({"groupId": ""}, "groupId must be a non-empty string"),
        (
            {"groupId": "g", "groupMaxSize": 0},
            "group.maxSize must be between 1 and 9007199254740991",
        ),
        ({"backoff": {"type": "odd"}}, "backoff.type must be 'fixed' or 'exponential'"),
        ({"backoff": {"type": "fixed"}}, "backoff.delay is required"),
        (
            {"backoff": {"type": "fixed", "delay": -1}},
            "backoff.delay must be between 0 and 86400000",
        ),
        ({"tags": "x"}, TAGS),
        ({"tags": ["t" * 257]}, TAGS),
        ({"repeat": {"every": 5}}, "repeat is not supported inside an atomic flow"),
        ({"uniqueKey": "k"}, "deduplication is not supported inside an atomic flow"),
        ({"dedup": {"ttl": 5}}, "deduplication is not supported inside an atomic flow"),
        ({"debounceId": "k"}, "debounce is not supported inside an atomic flow"),
        (
            {"parentId": "p", "failParentOnFailure": True, "ignoreDependencyOnFailure": True},
            "flow failure policies are mutually exclusive",
        ),
        ({"failParentOnFailure": True}, "a flow failure policy requires a parent"),
        ({"dependsOn": ["zz"]}, "flow dependency not found: zz"),
        ({"dependsOn": ["b", "b"]}, "duplicate dependency in flow job: a"),
        ({"dependsOn": ["a"]}, "flow job cannot depend on itself: a"),
        ({"childrenIds": ["b"]}, "flow child is missing from dependencies: b"),
        ({"childrenIds": ["b", "b"], "dependsOn": ["b"]}, "duplicate child in flow job: a"),
        (
            {"childrenIds": ["b"], "dependsOn": ["b"]},
            "flow child b does not point back to parent a",
        ),
        ({"parentId": "p"}, "flow parent not found: p"),
        ({"parentId": "b"}, "flow parent b does not own child a"),
    ],
)
def test_a_job_that_is_not_good_refuses_the_flow(
    desk: Desk, fields: dict[str, Any], words: str
) -> None:
    assert refused(desk, job("b"), job("a", **fields)) == words


def test_a_circle_is_refused(desk: Desk) -> None:
    circle = job("a", dependsOn=["b"]), job("b", dependsOn=["a"])
    assert refused(desk, *circle) == "flow contains a dependency cycle"


def test_data_tells_the_same_of_a_family_as_the_jobs(desk: Desk) -> None:
    family = {"childrenIds": ["c"], "dependsOn": ["c"]}
    good = {"v": 1, "__childrenIds": ["c"]}
    parent = job("p", **family, data=good)
    for data in ({}, {"__parentId": "x", "__parentQueue": "q"}, {"__parentId": "p"}):
        words = refused(desk, parent, job("c", parentId="p", data=data))
        assert words == "flow child c metadata does not match parent p"
    child = job("c", parentId="p", data={"__parentId": "p", "__parentQueue": "q"})
    for data in ({}, {"__childrenIds": []}, {"__childrenIds": ["x"]}):
        words = refused(desk, job("p", **family, data=data), child)
        assert words == "flow parent p children does not match the canonical flow topology"
    desk.do("PUSHF", jobs=[parent, child])
