"""Pause, Resume, IsPaused and ListQueues."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import Desk


def test_a_paused_queue_hands_out_nothing_and_goes_on_accepting(desk: Desk) -> None:
    assert desk.do("IsPaused", queue="q") == {"paused": False}
    id, token = desk.active()
    assert desk.do("Pause", queue="q") == {}
    assert desk.do("IsPaused", queue="q") == {"paused": True}
    waiting = desk.push()
    assert desk.pull() == {"job": None, "token": None}
    desk.do("ACK", id=id, token=token)
    assert desk.do("Resume", queue="q") == {}
    assert desk.pull()["job"]["id"] == waiting


def test_pausing_and_resuming_twice_is_no_error(desk: Desk) -> None:
    for cmd in ("Pause", "Pause", "Resume", "Resume"):
        assert desk.do(cmd, queue="q") == {}


def test_a_waiting_pull_is_served_when_its_queue_resumes(desk: Desk) -> None:
    desk.do("Pause", queue="q")
    id = desk.push()
    assert desk.waits("PULL", queue="q", timeout=1000)
    assert list(desk.told()) == []
    desk.do("Resume", queue="q")
    ((_, answer),) = desk.told()
    assert answer["job"]["id"] == id


@pytest.mark.parametrize("cmd", ["Pause", "Resume", "IsPaused"])
@pytest.mark.parametrize("queue", [None, 5, [], True])
def test_a_queue_that_is_no_text_is_refused(desk: Desk, cmd: str, queue: Any) -> None:
    assert desk.refused(cmd, queue=queue) == "Queue name is required"
    assert desk.refused(cmd) == "Queue name is required"


@pytest.mark.parametrize("name", ["white space", "é", "x" * 300])
def test_control_takes_any_name_but_that_makes_it_no_name_for_jobs(desk: Desk, name: str) -> None:
    desk.do("Pause", queue=name)
    assert desk.do("IsPaused", queue=name) == {"paused": True}
    for cmd in ("PUSH", "PULL"):
        assert desk.refused(cmd, queue=name, data=1).startswith("Queue name ")
    assert desk.refused("PUSHB", queue=name, jobs=[]).startswith("Queue name ")
    assert desk.refused("PULLB", queue=name, count=1).startswith("Queue name ")


def test_queues_with_jobs_or_settings_are_listed(desk: Desk) -> None:
    assert desk.do("ListQueues") == {"queues": []}
    desk.push("a")
    desk.do("Pause", queue="b")
    desk.do("Resume", queue="never")
    desk.do("Count", queue="asked")
    desk.waits("PULL", queue="waited", timeout=1000)
    assert sorted(desk.do("ListQueues")["queues"]) == ["a", "b"]


def test_a_queue_is_listed_as_long_as_it_remembers_a_job(desk: Desk) -> None:
    id, token = desk.active()
    desk.do("ACK", id=id, token=token)
    assert desk.do("ListQueues") == {"queues": ["q"]}
    gone, token = desk.active("r", removeOnComplete=True)
    desk.do("ACK", id=gone, token=token)
    assert desk.do("ListQueues") == {"queues": ["q"]}


def test_the_window_of_a_group_alone_makes_no_queue(desk: Desk) -> None:
    desk.push(groupId="g")
    taken = desk.pull(group={"limit": {"max": 5, "duration": 100}})
    desk.do("ACK", id=taken["job"]["id"], token=taken["token"], removeOnComplete=True)
    desk.push(groupId="g")
    desk.do("Obliterate", queue="q")
    assert desk.do("ListQueues") == {"queues": []}
    desk.do("SetGroupWeight", queue="q", groupId="g", weight=2)
    assert desk.do("ListQueues") == {"queues": ["q"]}
