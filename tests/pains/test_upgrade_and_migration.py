"""Reports of data that changed or vanished over a restart or an upgrade."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from tests.support.server import Server
from tests.support.wire import Wire

PAYLOAD: dict[str, Any] = {
    "text": 'naïve ☃ 𝄞 \u202e right to left, NUL \0, quote " backslash \\',
    "empty": {"map": {}, "list": [], "text": "", "null": None},
    "numbers": [0, -1, 127, 128, 255, 256, 65_535, 65_536, 2**31 - 1, -(2**31), 1.5, -0.25, 1e300],
    "wide": 2.0**52,
    "flags": [True, False],
    "deep": [[[[[[[[[["bottom"]]]]]]]]]],
    "name-like keys": {"id": "x", "queue": "y", "state": "z", "__proto": 1},
    "long": "x" * 70_000,
}


def restarted(server: Server, *, kill: bool) -> Server:
    if kill:
        server.kill()
    else:
        assert server.stop() == 0
    return server.start()


@pytest.mark.slow
def test_a_payload_is_the_same_on_every_try_with_a_restart_between(
    own_server: Server, queue: str
) -> None:
    with own_server.connect() as wire:
        job_id = wire.push(queue, PAYLOAD, maxAttempts=20, backoff=0, durable=True, tags=["a", "b"])
    for n in range(4):
        with own_server.connect() as wire:
            answer = wire.pull(queue, timeout=5_000)
            assert answer["job"]["id"] == job_id
            assert answer["job"]["data"] == PAYLOAD
            assert answer["job"]["tags"] == ["a", "b"]
            wire.do("FAIL", id=job_id, token=answer["token"], error=f"try {n}")
        restarted(own_server, kill=n % 2 == 0)
    with own_server.connect() as wire:
        answer = wire.pull(queue, timeout=5_000)
        assert answer["job"]["attempts"] == 4
        wire.do("ACK", id=job_id, token=answer["token"], result=PAYLOAD)
    restarted(own_server, kill=True)
    with own_server.connect() as wire:
        assert wire.do("GetJob", id=job_id)["job"]["data"] == PAYLOAD
        assert wire.do("GetResult", id=job_id)["result"] == PAYLOAD


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
def test_everything_a_queue_knew_it_knows_after_a_restart(
    own_server: Server, queue: str, kill: bool
) -> None:
    other = queue + "-paused"
    with own_server.connect() as wire:
        for n, priority in enumerate([0, 5, -5, 0, 5]):
            wire.push(queue, n, priority=priority, jobId=f"{queue}:{n}", durable=True)
        wire.push(queue, 5, delay=600_000, durable=True)
        for n, end in enumerate(("ACK", "FAIL")):
            job_id = wire.push(queue + "-done", n, maxAttempts=1, durable=True)
            token = wire.pull(queue + "-done")["token"]
            wire.do(end, id=job_id, token=token, result="r", error="e")
        wire.do("Pause", queue=other)
        wire.push(other, 1, durable=True)
        before = told(wire, queue)
    restarted(own_server, kill=kill)
    with own_server.connect() as wire:
        assert told(wire, queue) == before
        assert wire.do("IsPaused", queue=other)["paused"] is True
        assert wire.pull(other)["job"] is None
        order = [wire.pull(queue)["job"]["data"] for _ in range(5)]
        assert order == [1, 4, 0, 3, 2]
        assert wire.push(queue, "again", jobId=f"{queue}:0") == f"{queue}:0"


def told(wire: Wire, queue: str) -> dict[str, Any]:
    """What a client can learn about the queues of the test, in comparable form."""
    found: dict[str, Any] = {}
    for name in (queue, queue + "-done"):
        found[name] = wire.counts(name)
        for job in wire.jobs(name):
            keys = ("data", "priority", "customId", "createdAt", "runAt", "state", "failedReason")
            found[job["id"]] = {key: job.get(key) for key in keys}
    return found


@pytest.mark.slow
def test_bytes_and_moments_in_a_payload_come_back_as_they_were(
    own_server: Server, queue: str
) -> None:
    payload = {"raw": bytes(range(256)), "when": msgpack.Timestamp(1_700_000_000, 7), "f": 0.1}
    with own_server.connect() as wire:
        wire.push(queue, payload, durable=True)
        assert wire.jobs(queue)[0]["data"]["raw"] == payload["raw"]
    restarted(own_server, kill=True)
    with own_server.connect() as wire:
        data = wire.pull(queue)["job"]["data"]
        assert data["raw"] == payload["raw"]
        assert data["f"] == 0.1
        assert isinstance(data["when"], msgpack.Timestamp)


@pytest.mark.slow
def test_restarts_leave_one_copy_of_a_waiting_job(own_server: Server, queue: str) -> None:
    with own_server.connect() as wire:
        job_id = wire.push(queue, {"n": 1}, delay=600_000, durable=True)
    for n in range(5):
        restarted(own_server, kill=n % 2 == 0)
        with own_server.connect() as wire:
            assert wire.counts(queue) == {"delayed": 1}
            assert [job["id"] for job in wire.jobs(queue)] == [job_id]
