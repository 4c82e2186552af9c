"""Subscriptions to events, and their journal."""

from __future__ import annotations

import pytest
from tests.commands.desk import Desk


def test_a_subscription_is_of_one_queue_and_the_newest_counts(desk: Desk) -> None:
    assert desk.do("SubscribeEvents", queue="a") == {}
    desk.do("SubscribeEvents", queue="b")
    desk.do("SubscribeEvents", conn=2, queue="a")
    assert desk.host.observers.queues == {1: "b", 2: "a"}
    desk.do("UnsubscribeEvents")
    desk.do("UnsubscribeEvents")
    assert desk.host.observers.queues == {2: "a"}


@pytest.mark.parametrize(
    ("queue", "sentence"),
    [
        (None, "Queue name is required"),
        ("", "Queue name is required"),
        ("bad name", "Queue name contains invalid characters"),
        ("q" * 257, "Queue name too long (max 256 characters)"),
    ],
)
def test_a_refused_subscription_keeps_the_one_before(
    desk: Desk, queue: str | None, sentence: str
) -> None:
    desk.do("SubscribeEvents", queue="a")
    assert desk.refused("SubscribeEvents", queue=queue) == sentence
    assert desk.host.observers.queues == {1: "a"}


def test_a_number_is_a_queue_name(desk: Desk) -> None:
    desk.do("SubscribeEvents", queue=5)
    assert desk.host.observers.queues == {1: "5"}


def test_trimming_keeps_the_newest_events_of_the_journal(desk: Desk) -> None:
    desk.engine.listening = True
    for _ in range(3):
        desk.push()
    assert desk.do("TrimEvents", queue="q", maxLength=1)["data"] == {"removed": 2}
    assert desk.do("TrimEvents", queue="q", maxLength=0)["data"] == {"removed": 1}
    assert desk.do("TrimEvents", queue="none", maxLength=0)["data"] == {"removed": 0}


@pytest.mark.parametrize("length", [None, -1, 1.5, "3", True, 2.0**53, float("inf"), float("nan")])
def test_a_length_that_is_none_is_refused(desk: Desk, length: object) -> None:
    sentence = "maxLength must be a non-negative safe integer"
    assert desk.refused("TrimEvents", queue="q", maxLength=length) == sentence


def test_pause_and_resume_are_told_each_time(desk: Desk) -> None:
    desk.engine.listening = True
    for cmd in ("Pause", "Pause", "Resume"):
        desk.do(cmd, queue="q")
    told = [(event.type, event.queue, event.id) for event in desk.engine.heard()]
    assert told == [("paused", "q", ""), ("paused", "q", ""), ("resumed", "q", "")]


def test_progress_is_told_as_it_is_kept(desk: Desk) -> None:
    id, _ = desk.active()
    desk.engine.listening = True
    desk.do("Progress", id=id, progress=50, message="half")
    desk.do("Progress", id=id, progress=999)
    assert [event.fields for event in desk.engine.heard()] == [
        {"progress": 50, "data": {"progress": 50, "message": "half"}},
        {"progress": 100, "data": {"progress": 100, "message": "half"}},
    ]
