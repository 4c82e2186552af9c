"""Explain: reasons as a client reads them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from tests.commands.desk import Desk

from tandemq.commands import explain as module
from tandemq.engine import consume
from tandemq.engine import explain as engine


def asked(desk: Desk, id: Any) -> dict[str, Any]:
    data: dict[str, Any] = desk.do("Explain", id=id)["data"]
    return data


def reasons(desk: Desk, id: str) -> dict[str, dict[str, Any]]:
    return {reason["code"]: reason for reason in asked(desk, id)["reasons"]}


def first(desk: Desk, id: str) -> dict[str, Any]:
    return dict(asked(desk, id)["reasons"][0])


def test_a_job_is_explained_with_its_counters(desk: Desk) -> None:
    id = desk.push(name="mail", maxAttempts=5)
    assert asked(desk, id) == {
        "id": id,
        "queue": "q",
        "name": "mail",
        "state": "waiting",
        "counters": {
            "failures": {"count": 0, "limit": 5},
            "crashes": {"count": 0, "limit": 3},
            "interruptions": {"count": 0, "limit": 10},
        },
        "reasons": [
            {
                "code": "no-worker",
                "text": "Nobody waits for a job of the queue q, "
                "and no worker is registered for it.",
                "blocks": True,
                "queue": "q",
                "active": 0,
                "workers": 0,
            },
            {
                "code": "place",
                "text": "Jobs that go before it: 0.",
                "blocks": False,
                "ahead": 0,
                "exact": True,
            },
        ],
    }


def test_a_moment_is_a_float_that_a_javascript_peer_can_read(desk: Desk) -> None:
    id = desk.push(delay=5_000)
    found = first(desk, id)
    assert found["text"] == "It is delayed and due in 5.0 seconds."
    assert (found["until"], type(found["until"])) == (desk.now + 5_000, float)


@pytest.mark.parametrize("id", ["missing", None, 5, [], {}, math.inf, "ü\0"])
def test_an_id_that_names_nothing_is_an_answer_too(desk: Desk, id: Any) -> None:
    data = asked(desk, id)
    assert (data["id"], data["state"]) == (id, "unknown")
    assert [reason["code"] for reason in data["reasons"]] == ["unknown"]
    assert [reason["code"] for reason in desk.do("Explain")["data"]["reasons"]] == ["unknown"]


def test_a_job_that_was_completed_and_removed_is_remembered(desk: Desk) -> None:
    id, token = desk.active(removeOnComplete=True)
    desk.do("ACK", id=id, token=token)
    assert first(desk, id)["code"] == "removed"


def test_a_running_job_names_its_connection_and_worker(desk: Desk) -> None:
    desk.do("RegisterWorker", workerId="w-1", queues=["q"])
    id, token = desk.active()
    desk.later(1_500)
    found = first(desk, id)
    assert found["text"] == (
        "The job was handed out 1.5 seconds ago and is held by connection 1 (worker w-1); "
        "its lease ends in 28.5 seconds after 0 renewals."
    )
    assert found["workers"] == ["w-1"]
    desk.do("ExtendLock", id=id, token=token, duration=7_200_000)
    desk.disconnect()
    assert first(desk, id)["text"] == (
        "The job was handed out 1.5 seconds ago and is held by somebody, whatever becomes of the "
        "connection; its lease ends in 2.0 hours after 1 renewals."
    )


def test_a_lease_without_a_token_has_no_end(desk: Desk) -> None:
    id = desk.push()
    desk.do("PULL", queue="q")
    found = first(desk, id)
    assert found["leasedUntil"] is None
    assert found["text"].endswith("is held by connection 1; its lease has no end of its own.")


def test_a_job_that_failed_tells_its_error(desk: Desk) -> None:
    id, token = desk.active(maxAttempts=2)
    desk.do("FAIL", id=id, token=token, error="{no} " + "x" * 300)
    retried = first(desk, id)
    assert retried["text"] == "It failed 1 of 2 times and is tried again in 2.0 seconds."
    assert retried["error"] == "{no} " + "x" * 300
    desk.later(2_000)
    desk.do("FAIL", id=id, token=desk.pull()["token"], error="{no} " + "x" * 300)
    desk.later(90_000)
    failed = first(desk, id)
    assert failed["text"] == (
        f"The job failed for good 1.5 minutes ago: {{no}} {'x' * 195}.... "
        "RetryDlq lets it run again."
    )
    assert failed["cause"] == "max_attempts_exceeded"
    assert reasons(desk, id)["forgotten"]["text"].endswith("it is forgotten in 7.0 days.")


def test_dependencies_are_listed_with_their_states(desk: Desk) -> None:
    child, token = desk.active("r", maxAttempts=1)
    late = desk.push(delay=5_000)
    parent = desk.push(dependsOn=[child, late])
    assert first(desk, parent)["jobs"] == [
        {"id": child, "state": "active"},
        {"id": late, "state": "delayed"},
    ]
    desk.do("FAIL", id=child, token=token)
    desk.do("Cancel", id=late)
    stuck = reasons(desk, parent)["stuck"]
    assert stuck["jobs"] == [
        {"id": child, "state": "failed"},
        {"id": late, "state": "unknown"},
    ]
    assert child in stuck["text"]


def test_what_shuts_a_queue_or_a_group_is_told(desk: Desk) -> None:
    plain, grouped = desk.push(cost=0.5), desk.push(groupId="g")
    desk.do("Pause", queue="q")
    desk.do("RateLimit", queue="q", limit=0)
    desk.do("SetConcurrency", queue="q", limit=0)
    desk.do("PauseGroup", queue="q", groupId="g")
    desk.do("RateLimitGroup", queue="q", groupId="g", duration=50)
    found = reasons(desk, grouped)
    assert list(found)[:5] == ["paused", "group-paused", "group-closed", "concurrency", "rate"]
    texts = {code: found[code]["text"] for code in ("group-closed", "concurrency", "rate")}
    assert texts == {
        "group-closed": "Nothing of the group g is handed out for now; it opens in 50 ms.",
        "concurrency": "The queue may have 0 running at a time, and has 0.",
        "rate": "The queue has used up its rate limit of 0 in 1000 ms; it opens never.",
    }
    assert "until" not in found["rate"]
    assert found["place-in-group"]["ungrouped"] == 1
    assert "group-paused" not in reasons(desk, plain)


def test_not_now_for_what_has_no_group_is_told(desk: Desk) -> None:
    id, token = desk.active()
    desk.do("FAIL", id=id, token=token, retryAfter=60_000)
    assert first(desk, id)["text"] == (
        "Nothing of what has no group is handed out for now; it opens in 1.0 minutes."
    )


def test_a_place_that_was_not_looked_up_to_the_end_says_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LOOK", 2)
    ids = [desk.push() for _ in range(5)]
    assert reasons(desk, ids[4])["place"]["text"] == "Jobs that go before it: at least 2."


def test_a_key_that_another_holds_is_told(desk: Desk) -> None:
    fields = {"uniqueKey": "k", "dedup": {"policy": "queue-one"}}
    owner, _ = desk.active(**fields)
    id = desk.push(**fields)
    assert first(desk, id)["text"] == (
        f"It waits for the end of {owner}, which holds its unique key k."
    )


def test_every_reason_of_the_engine_has_a_sentence_and_no_other() -> None:
    source = Path(str(engine.__file__)).read_text()
    told = re.findall(r'Reason\(\s*"([a-z-]+)"', source)
    assert set(told) <= set(module.TEXTS)
    assert [code for code in module.TEXTS if f'"{code}"' not in source] == []


# -- the limits of the counters --------------------------------------------------------------------


def test_the_limits_of_a_job_are_its_own(desk: Desk) -> None:
    id = desk.push(maxStalls=0, maxInterruptions=2)
    counters = asked(desk, id)["counters"]
    assert counters["crashes"] == {"count": 0, "limit": 0}
    assert counters["interruptions"] == {"count": 0, "limit": 2}
    desk.pull(conn=7)
    consume.disconnect(desk.engine, 7, desk.now)
    assert asked(desk, id)["counters"]["interruptions"] == {"count": 1, "limit": 2}
    assert asked(desk, id)["counters"]["failures"]["count"] == 0
    desk.pull(conn=8)
    consume.disconnect(desk.engine, 8, desk.now)
    assert first(desk, id)["cause"] == "worker_lost"
