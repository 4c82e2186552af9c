"""``tandemq broker``: publishing, subscribing, and the queues in between."""

from __future__ import annotations

import json
import signal

from tests.cli.shell import Shell, start
from tests.support.server import Server

PATIENCE = 30.0  # s


def test_what_is_published_is_printed_and_acknowledged(shell: Shell, queue: str) -> None:
    id = shell.text("broker", "publish", queue, '{"n": 1}', "--header", "source=shop")
    shell.text("broker", "publish", queue, "[2]", "--correlation-id", "c")
    assert shell.json("broker", "info", queue)["messageCount"] == 2
    first, second = shell.json("broker", "subscribe", queue, "--count", "2")
    assert (first["id"], first["payload"], first["queue"]) == (id, {"n": 1}, queue)
    assert first["headers"]["source"] == "shop"
    assert second["headers"]["correlationId"] == "c"
    assert shell.json("broker", "info", queue)["messageCount"] == 0


def test_people_get_payloads_and_programs_lines(shell: Shell, queue: str) -> None:
    for n in range(3):
        shell.text("broker", "publish", queue, str(n))
    assert shell.text("broker", "subscribe", queue, "--count", "1") == "0"
    lines = shell.text("broker", "subscribe", queue, "--count", "2", "--jsonl").splitlines()
    assert [json.loads(line)["payload"] for line in lines] == [1, 2]


def test_subscribing_ends_when_its_time_is_over(shell: Shell, queue: str) -> None:
    assert shell.json("broker", "subscribe", queue, "--for", "100ms") == []


def test_a_subscriber_in_a_pipe_prints_at_once_and_ends_by_ctrl_c(
    server: Server, shell: Shell, queue: str
) -> None:
    subscriber = start("broker", "subscribe", queue, "--url", shell.url)
    assert subscriber.stdout is not None
    for n in range(3):
        shell.text("broker", "publish", queue, str(n))
        assert subscriber.stdout.readline() == f"{n}\n"
    subscriber.send_signal(signal.SIGINT)
    _, err = subscriber.communicate(timeout=PATIENCE)
    assert (subscriber.returncode, "Traceback" in err) == (130, False)
    assert shell.json("broker", "info", queue)["messageCount"] == 0


def test_queues_are_made_with_options_listed_and_deleted(shell: Shell, queue: str) -> None:
    made = shell.json(
        "broker", "create", queue, "--mode", "fan-out-with-ack", "--max-size", "5", "--ttl", "1m",
        "--overflow", "drop-newest", "--dead-letters", "--max-attempts", "4",
    )  # fmt: skip
    expected = {
        "name": queue, "deliveryMode": "fan-out-with-ack", "maxSize": 5, "messageTtl": 60_000,
        "overflowStrategy": "drop-newest", "enableDeadLetterQueue": True, "maxRetryAttempts": 4,
    }  # fmt: skip
    assert made.items() >= expected.items()
    assert queue in [each["name"] for each in shell.json("broker", "queues")]
    shell.text("broker", "delete", queue, "--yes")
    assert f"There is no queue {queue}" in shell.fails(1, "broker", "info", queue)


def test_a_job_reaches_a_subscriber_and_a_message_a_worker(shell: Shell, queue: str) -> None:
    shell.add(queue, '{"kind": "job"}')
    (got,) = shell.json("broker", "subscribe", queue, "--count", "1")
    assert got["payload"] == {"kind": "job"}
    shell.text("broker", "publish", f"{queue}-2", '{"kind": "message"}')
    assert shell.json("job", "pull", f"{queue}-2")["data"] == {"kind": "message"}


def test_who_may_not_is_told_so(closed: Server) -> None:
    Shell(closed.port).fails(4, "broker", "queues")
    Shell(closed.port, token="wrong").fails(4, "broker", "queues")
    Shell(1).fails(3, "broker", "queues")


def test_a_refusal_is_one_line(shell: Shell) -> None:
    said = shell.fails(1, "broker", "publish", "a:b", "1")
    assert said.count("\n") == 1
