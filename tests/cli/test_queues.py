"""``tandemq queue``, dead letters, schedules, workers and webhooks, with their figures."""

from __future__ import annotations

import pytest
from tests.cli.shell import Shell


def line(shell: Shell, queue: str) -> dict[str, object]:
    (found,) = [each for each in shell.json("queue", "list") if each["name"] == queue]
    return dict(found)


def test_counts_and_pauses_are_listed(shell: Shell, queue: str) -> None:
    shell.add(queue)
    shell.add(queue, "1", "--priority", "1")
    shell.add(queue, "1", "--delay", "1h")
    shell.text("queue", "pause", queue)
    expected = {"name": queue, "waiting": 1, "prioritized": 1, "delayed": 1, "active": 0}
    assert line(shell, queue).items() >= {**expected, "dlq": 0, "paused": True}.items()
    assert shell.text("queue", "paused", queue) == "yes"
    shell.text("queue", "resume", queue)
    assert shell.json("queue", "show", queue)["paused"] is False


def test_more_queues_than_a_page_are_all_listed(
    shell: Shell, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandemq.cli.queues.PAGE", 2)
    for n in range(5):
        shell.add(f"{queue}-{n}")
    names = [each["name"] for each in shell.json("queue", "list")]
    assert [name for name in names if name.startswith(queue)] == [f"{queue}-{n}" for n in range(5)]


def test_draining_can_be_tried_first(shell: Shell, queue: str) -> None:
    for _ in range(3):
        shell.add(queue)
    tried = shell.json("queue", "drain", queue, "--dry-run")
    assert tried == {"queue": queue, "count": 3, "dryRun": True}
    assert shell.json("queue", "purge", queue, "--yes")["count"] == 3
    assert shell.json("job", "list", queue) == []


def test_limits_and_rules_are_set_shown_and_cleared(shell: Shell, queue: str) -> None:
    shell.text(
        "queue", "set", queue, "--rate", "10", "--per", "1m", "--concurrency", "3",
        "--stall-after", "45s", "--max-stalls", "2",
    )  # fmt: skip
    seen = shell.json("queue", "show", queue)
    assert seen["limits"]["rateLimit"] == {"max": 10, "duration": 60_000}
    assert seen["limits"]["concurrencyLimit"] == 3
    assert seen["stall"]["stallInterval"] == 45_000
    assert seen["stall"]["maxStalls"] == 2
    shell.text("queue", "set", queue, "--no-rate", "--no-concurrency")
    limits = shell.json("queue", "limits", queue)
    assert (limits["rateLimit"], limits["concurrencyLimit"]) == (None, None)


def test_how_a_queue_delivers_is_changed_and_shown(shell: Shell, queue: str) -> None:
    shell.text("queue", "set", queue, "--max-size", "5", "--overflow", "drop-newest", "--ttl", "1m")
    shell.text("queue", "set", queue, "--mode", "priority-based", "--dead-letters")
    policy = shell.json("queue", "show", queue)["policy"]
    expected = {
        "kind": "broker", "mode": "priority-based", "maxSize": 5, "overflow": "drop-newest",
        "ttl": 60_000, "deadLetters": True,
    }  # fmt: skip
    assert policy.items() >= expected.items()
    shell.text("broker", "publish", queue, "1")
    assert "cannot change" in shell.fails(1, "queue", "set", queue, "--mode", "round-robin")


def test_a_dead_letter_of_the_broker_is_listed_and_replayed(shell: Shell, queue: str) -> None:
    shell.text("queue", "set", queue, "--dead-letters", "--max-size", "1")
    shell.text("queue", "set", queue, "--overflow", "redirect-to-dlq")
    for n in (1, 2):
        shell.text("broker", "publish", queue, str(n))
    (letter,) = shell.json("dlq", "list", queue)
    assert letter["data"] == 2
    assert shell.json("dlq", "show", queue)["total"] == 1
    shell.json("broker", "subscribe", queue, "--count", "1")
    assert shell.json("dlq", "replay", queue)["count"] == 1
    (again,) = shell.json("broker", "subscribe", queue, "--count", "1")
    assert again["payload"] == 2


def test_the_words_of_the_reference_set_limits_too(shell: Shell, queue: str) -> None:
    shell.text("rate-limit", "set", queue, "5")
    shell.text("concurrency", "set", queue, "2")
    limits = shell.json("queue", "limits", queue)
    assert (limits["rateLimit"]["max"], limits["concurrencyLimit"]) == (5, 2)
    shell.text("rate-limit", "clear", queue)
    shell.text("concurrency", "clear", queue)
    assert shell.json("queue", "limits", queue)["rateLimit"] is None


def test_cleaning_takes_what_is_old_and_obliterating_everything(shell: Shell, queue: str) -> None:
    id = shell.add(queue)
    shell.text("pull", queue)
    shell.text("ack", id)
    assert shell.json("queue", "clean", queue, "--older-than", "1h", "--yes")["count"] == 0
    assert shell.json("queue", "clean", queue, "--yes")["ids"] == [id]
    shell.text("queue", "set", queue, "--concurrency", "1")
    shell.text("queue", "obliterate", queue, "--yes")
    assert queue not in [each["name"] for each in shell.json("queue", "list")]


def test_promoting_lets_delayed_jobs_run(shell: Shell, queue: str) -> None:
    for _ in range(3):
        shell.add(queue, "1", "--delay", "1h")
    assert shell.json("queue", "promote", queue, "--count", "2")["count"] == 2
    assert len(shell.json("queue", "jobs", queue)) == 3


# -- dead letters ---------------------------------------------------------------------------------


def bury(shell: Shell, queue: str, *errors: str) -> list[str]:
    ids = []
    for error in errors:
        ids.append(shell.add(queue, f'{{"for": "{error}"}}'))
        shell.text("pull", queue)
        shell.text("fail", ids[-1], error, "--for-good")
    return ids


def test_dead_letters_are_listed_and_run_again(shell: Shell, queue: str) -> None:
    first, second, third = bury(shell, queue, "one", "two", "three")
    listed = shell.json("dlq", "list", queue)
    assert [(letter["id"], letter["error"]) for letter in listed] == [
        (first, "one"), (second, "two"), (third, "three"),
    ]  # fmt: skip
    assert shell.json("dlq", "show", queue)["total"] == 3
    assert shell.json("dlq", "show", queue, second)["attempts"][0]["error"] == "two"
    assert shell.json("dlq", "replay", queue, "--dry-run")["count"] == 3
    assert shell.json("dlq", "replay", queue, "--limit", "1")["count"] == 1
    assert shell.text("job", "state", first) == "waiting"
    assert shell.json("dlq", "retry", queue, third)["count"] == 1
    assert [letter["id"] for letter in shell.json("dlq", "list", queue)] == [second]


def test_dead_letters_are_chosen_by_cause_and_age(shell: Shell, queue: str) -> None:
    bury(shell, queue, "one")
    assert shell.json("dlq", "list", queue, "--reason", "timeout") == []
    assert len(shell.json("dlq", "list", queue, "--newer-than", "1h")) == 1
    assert shell.json("dlq", "purge", queue, "--older-than", "1h", "--dry-run")["count"] == 0
    assert shell.json("dlq", "purge", queue, "--dry-run")["count"] == 1
    assert shell.json("dlq", "purge", queue, "--yes")["count"] == 1
    assert shell.json("dlq", "list", queue) == []


def test_a_copy_runs_with_other_data(shell: Shell, queue: str) -> None:
    (id,) = bury(shell, queue, "wrong")
    assert shell.json("dlq", "edit", queue, id, "1", "--dry-run")["id"] is None
    copy = shell.json("dlq", "edit", queue, id, '{"for": "right"}')["id"]
    assert shell.json("job", "get", copy)["data"] == {"for": "right"}
    assert shell.json("dlq", "show", queue, id)["replays"] == [copy]
    shell.text("dlq", "remove", queue, id, "--yes")
    assert shell.json("dlq", "list", queue) == []


def test_letters_beyond_a_page_are_found(shell: Shell, queue: str) -> None:
    *_, last = bury(shell, queue, *"abc")
    assert shell.json("dlq", "show", queue, last)["error"] == "c"


def test_rules_of_dead_letters_are_changed_one_by_one(shell: Shell, queue: str) -> None:
    before = shell.json("dlq", "config", queue)
    after = shell.json("dlq", "config", queue, "--auto-retry", "--interval", "1m")
    assert after == {**before, "autoRetry": True, "autoRetryInterval": 60_000}
    assert shell.json("dlq", "config", queue, "--no-auto-retry")["autoRetry"] is False


# -- schedules, workers, webhooks -----------------------------------------------------------------


def test_a_schedule_is_added_seen_and_deleted(shell: Shell, queue: str) -> None:
    made = shell.json(
        "cron", "add", queue, queue, '{"a": 1}', "--pattern", "30 9 * * *", "--tz", "Europe/Rome",
        "--job-name", "report", "--attempts", "5", "--missed", "once", "--max-lateness", "1h",
    )  # fmt: skip
    assert made["nextRun"].endswith(("T08:30:00.000Z", "T07:30:00.000Z"))
    shown = shell.json("cron", "show", queue)
    assert (shown["missed"], shown["maxLateness"]) == ("once", 3_600_000)
    runs = shell.json("cron", "next", queue, "--count", "3")
    assert len(runs) == 3
    assert all("09:30" in run["local"] for run in runs)
    assert [each["name"] for each in shell.json("cron", "list", "--queue", queue)] == [queue]
    shell.text("cron", "delete", queue, "--yes")
    assert shell.json("cron", "list", "--queue", queue) == []


def test_a_schedule_that_runs_at_once_adds_a_job(shell: Shell, queue: str) -> None:
    shell.text("cron", "add", queue, queue, '{"a": 1}', "--every", "1d", "--now")
    (job,) = shell.json("job", "list", queue)
    assert job["data"] == {"a": 1}


def test_workers_are_listed_while_they_are_connected(shell: Shell, queue: str) -> None:
    made = shell.json("workers", "register", queue, "a", "b", "--concurrency", "3")
    assert made["queues"] == ["a", "b"]
    assert queue not in [each["name"] for each in shell.json("workers", "list")]
    assert shell.json("worker", "list") == shell.json("workers", "list")  # as the reference says
    assert set(shell.json("workers", "stats")) >= {"total", "active"}


def test_webhooks_are_added_switched_and_removed(shell: Shell, queue: str) -> None:
    made = shell.json("webhook", "add", f"https://example.org/{queue}", "--event", "job.failed")
    id = made["webhookId"]

    def enabled() -> list[bool]:
        return [each["enabled"] for each in shell.json("webhook", "list") if each["id"] == id]

    shell.text("webhook", "disable", id)
    assert enabled() == [False]
    shell.text("webhook", "enable", id)
    assert enabled() == [True]
    shell.text("webhook", "remove", id, "--yes")
    assert enabled() == []
