"""The registry of webhooks over the wire."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import NOW, Desk

URL = "https://hooks.example.com/x?y=1"


def add(desk: Desk, **fields: Any) -> dict[str, Any]:
    given = {"url": URL, "events": ["job.completed"], **fields}
    found: dict[str, Any] = desk.do("AddWebhook", **given)["data"]
    return found


def listed(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = desk.do("ListWebhooks")["data"]
    return found


def test_a_webhook_is_added_listed_and_removed(desk: Desk) -> None:
    added = add(desk, queue="q", secret="shh")
    id = added.pop("webhookId")
    told = {"url": URL, "events": ["job.completed"], "queue": "q", "createdAt": NOW}
    assert added == told
    [shown] = listed(desk)["webhooks"]
    figures = {"lastTriggered": None, "successCount": 0, "failureCount": 0, "enabled": True}
    assert shown == {"id": id, **told, **figures}
    assert listed(desk)["stats"] == {"total": 1, "enabled": 1}
    assert desk.do("RemoveWebhook", webhookId=id)["data"] == {"removed": True}
    assert desk.refused("RemoveWebhook", webhookId=id) == "Webhook not found"
    assert listed(desk) == {"webhooks": [], "stats": {"total": 0, "enabled": 0}}


def test_the_secret_is_never_shown(desk: Desk) -> None:
    add(desk, secret="shh")
    assert "shh" not in str(listed(desk))
    assert desk.engine.webhooks.listed()[0].secret == "shh"


def test_without_a_queue_it_is_of_all_queues(desk: Desk) -> None:
    assert add(desk)["queue"] is None
    assert add(desk, queue="", events=[])["queue"] is None


def test_a_webhook_is_switched_off_and_on(desk: Desk) -> None:
    id = add(desk)["webhookId"]
    desk.do("SetWebhookEnabled", id=id, enabled=False)
    assert listed(desk)["stats"] == {"total": 1, "enabled": 0}
    assert not desk.engine.listening
    desk.do("SetWebhookEnabled", id=id, enabled=True)
    assert desk.engine.listening


@pytest.mark.parametrize("id", [None, "nope", 5])
def test_a_webhook_that_does_not_exist_is_not_found(desk: Desk, id: object) -> None:
    assert desk.refused("RemoveWebhook", webhookId=id) == "Webhook not found"
    assert desk.refused("SetWebhookEnabled", id=id, enabled=True) == "Webhook not found"


def test_an_unknown_event_is_named(desk: Desk) -> None:
    valid = "Valid: job.pushed, job.started, job.completed, job.failed, job.progress"
    refused = desk.refused("AddWebhook", url=URL, events=["job.completed", "a", "b"])
    assert refused == f"Invalid webhook event(s): a, b. {valid}"


def test_stalls_may_be_asked_for(desk: Desk) -> None:
    assert add(desk, events=["job.stalled"])["events"] == ["job.stalled"]


@pytest.mark.parametrize("events", [None, "job.failed", 5])
def test_events_that_are_no_list_are_refused(desk: Desk, events: object) -> None:
    assert desk.refused("AddWebhook", url=URL, events=events) == "events must be a list"


@pytest.mark.parametrize("events", [[[]], [{}], [5]])
def test_events_that_are_no_names_are_refused(desk: Desk, events: object) -> None:
    assert desk.refused("AddWebhook", url=URL, events=events).startswith("Invalid webhook event")


@pytest.mark.parametrize("field", ["queue", "secret"])
def test_texts_that_are_none_are_refused(desk: Desk, field: str) -> None:
    for value in (5, "x" * 5_000, ["q"]):
        refused = desk.refused("AddWebhook", url=URL, events=[], **{field: value})
        assert refused.startswith(f"{field} must be a text")


def test_a_url_that_points_inward_is_refused(desk: Desk) -> None:
    sentence = "Webhook URL cannot point to localhost"
    assert desk.refused("AddWebhook", url="http://127.1/", events=[]) == sentence
    assert desk.refused("AddWebhook") == "Webhook URL is required"


def test_their_number_is_bounded(desk: Desk) -> None:
    desk.engine.webhooks.most = 1
    add(desk)
    words = "There are 1 webhooks already; remove some first"
    assert desk.refused("AddWebhook", url=URL, events=[]) == words
