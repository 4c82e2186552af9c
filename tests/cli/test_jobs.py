"""``tandemq job``: adding, finding and waiting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.shell import Shell, start


def test_options_reach_the_job(shell: Shell, queue: str) -> None:
    id = shell.add(
        queue, '{"to": 1}', "--name", "welcome", "--priority", "5", "--delay", "1h", "--attempts",
        "7", "--backoff", "2s", "--ttl", "P2D", "--run-time", "1m", "--id", f"{queue}-mine",
        "--unique-key", "u", "--group", "g", "--tag", "a", "--tag", "b", "--durable",
        "--remove-on-complete",
    )  # fmt: skip
    job = shell.json("job", "get", id)
    assert id == f"{queue}-mine"
    expected = {
        "data": {"to": 1}, "name": "welcome", "priority": 5, "maxAttempts": 7, "backoff": 2000,
        "ttl": 172_800_000, "timeout": 60_000, "uniqueKey": "u", "groupId": "g",
        "tags": ["a", "b"], "durable": True, "removeOnComplete": True, "state": "delayed",
    }  # fmt: skip
    assert {key: job[key] for key in expected} == expected


def test_data_comes_from_a_file_or_standard_input(shell: Shell, queue: str, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text('{"from": "file"}')
    first = shell.add(queue, f"@{tmp_path}/job.json")
    second = shell.text("push", queue, "-", input='{"from": "stdin"}')
    found = [shell.json("job", "get", id)["data"] for id in (first, second)]
    assert found == [{"from": "file"}, {"from": "stdin"}]


def test_data_may_be_anything_or_nothing(shell: Shell, queue: str) -> None:
    for data in ("null", "0", '"text"', "[]", '{"ü": [1.5, -1, true]}'):
        id = shell.add(queue, data)
        assert shell.json("job", "get", id)["data"] == json.loads(data)
    assert shell.json("job", "get", shell.text("job", "add", queue)).get("data") is None


def test_many_jobs_are_added_in_parts(shell: Shell, queue: str) -> None:
    made = shell.json("job", "add-many", queue, json.dumps(list(range(2_500))))
    assert len(set(made["ids"])) == 2_500
    assert shell.json("job", "get", made["ids"][-1])["data"] == 2_499
    assert shell.json("job", "add-many", queue, "[]") == {"ids": []}


def test_lists_are_paged_and_filtered(shell: Shell, queue: str) -> None:
    ids = [shell.add(queue, str(n)) for n in range(5)]
    late = shell.add(queue, "5", "--delay", "1h")

    def listed(*options: str) -> list[str]:
        return [job["id"] for job in shell.json("job", "list", queue, *options)]

    assert listed("--limit", "2") == ids[:2]
    assert listed("--limit", "2", "--offset", "2") == ids[2:4]
    assert listed("--newest", "--limit", "2") == [late, ids[-1]]
    assert listed("--state", "delayed") == [late]
    lines = shell.text("job", "list", queue).splitlines()
    assert lines[0].split()[:3] == ["ID", "NAME", "STATE"]
    assert len(lines) == 7


def test_jobs_are_found_by_what_stands_in_them(shell: Shell, queue: str) -> None:
    wanted = shell.add(queue, '{"to": "needle@example.org"}', "--name", "welcome", "--tag", "red")
    for n in range(30):
        shell.add(queue, str(n))

    def found(*options: str) -> list[str]:
        return [job["id"] for job in shell.json("job", "search", "--queue", queue, *options)]

    assert found("needle@example") == [wanted]
    assert found("--name", "wel*") == found("--tag", "red") == [wanted]
    assert len(found("--limit", "7")) == 7
    assert len(found("--since", "1h", "--limit", "100")) == 31
    assert found("no such text") == []


def test_pull_ack_and_fail_work_from_one_command_to_the_next(shell: Shell, queue: str) -> None:
    first, second = shell.add(queue, "1"), shell.add(queue, "2")
    assert shell.json("pull", queue)["id"] == first
    assert shell.json("pull", queue)["id"] == second
    assert shell.text("job", "state", first) == "active"
    shell.text("job", "progress", first, "40", "--message", "at work")
    shell.text("job", "log", first, "line one")
    shell.text("ack", first, '{"sent": true}')
    shell.text("fail", second, "no such address", "--for-good")
    assert shell.json("job", "result", first)["result"] == {"sent": True}
    assert [line["message"] for line in shell.json("job", "logs", first)] == ["line one"]
    assert shell.json("job", "logs", first, "--last", "0") == []
    dead = shell.json("job", "get", second)
    assert (dead["state"], dead["failedReason"]) == ("failed", "no such address")


def test_waiting_ends_with_the_job(shell: Shell, queue: str) -> None:
    id = shell.add(queue)
    shell.text("pull", queue)
    waiter = start("job", "wait", id, "--url", shell.url)
    shell.text("ack", id, "[1, 2]")
    assert waiter.communicate(timeout=30) == ("[1,2]\n", "")
    assert waiter.returncode == 0


def test_waiting_for_what_fails_or_goes_is_code_1(shell: Shell, queue: str) -> None:
    dead, gone = shell.add(queue), shell.add(queue)
    shell.text("job", "discard", dead, "--yes")
    assert f"{dead} failed" in shell.fails(1, "job", "wait", dead)
    shell.text("job", "cancel", gone, "--yes")
    assert "Job not found" in shell.fails(1, "job", "wait", gone)


def test_waiting_in_vain_is_code_5(shell: Shell, queue: str) -> None:
    said = shell.fails(5, "job", "wait", shell.add(queue), "--for", "100ms")
    assert "has not ended within 100ms" in said


def test_explain_says_why(shell: Shell, queue: str) -> None:
    shell.text("queue", "pause", queue)
    id = shell.add(queue)
    assert f"The queue {queue} is paused" in shell.text("job", "explain", id)
    assert shell.json("job", "explain", id)["reasons"][0]["code"] == "paused"


def test_what_is_done_to_a_job_is_seen(shell: Shell, queue: str) -> None:
    id = shell.add(queue, "1", "--delay", "1h")
    shell.text("job", "promote", id)
    assert shell.text("job", "state", id) == "waiting"
    shell.text("job", "priority", id, "9")
    shell.text("job", "update", id, '{"new": 1}')
    shell.text("job", "delay", id, "2h")
    job = shell.json("job", "get", id)
    assert (job["priority"], job["data"], job["state"]) == (9, {"new": 1}, "delayed")
    shell.text("job", "cancel", id, "--yes")
    shell.fails(1, "job", "state", id)


@pytest.mark.parametrize("end", ["ack", "fail"])
def test_retry_runs_what_has_ended(shell: Shell, queue: str, end: str) -> None:
    id = shell.add(queue)
    shell.text("pull", queue)
    shell.text(end, id, *(["no", "--for-good"] if end == "fail" else []))
    shell.text("job", "retry", id)
    assert shell.text("job", "state", id) == "waiting"
    assert "only what is completed or failed" in shell.fails(1, "job", "retry", id)


def test_data_of_others_does_not_steer_the_terminal(shell: Shell, queue: str) -> None:
    id = shell.add(queue, '{"x": "\\u001b[2J"}', "--name", "\x1b[31mred")
    for command in (("job", "get", id), ("job", "list", queue)):
        assert "\x1b" not in shell.text(*command)
