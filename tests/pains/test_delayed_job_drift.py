"""Reports of delayed jobs that ran at once, hours late, or without a trace of how late."""

from __future__ import annotations

import time

import pytest
from tests.support.server import Server
from tests.support.wire import Wire


@pytest.mark.slow
def test_a_job_that_is_put_off_two_hundred_times_runs_once_after_the_last_delay(
    wire: Wire, queue: str
) -> None:
    job_id = wire.push(queue, 1, delay=60_000)
    for n in range(200):
        wire.do("ChangeDelay", id=job_id, delay=50 if n % 10 == 9 and n < 150 else 60_000 + n)
        assert wire.state(job_id) == "delayed"
    wire.do("ChangeDelay", id=job_id, delay=500)
    began = time.monotonic()
    answer = wire.pull(queue, timeout=20_000)
    assert 0.45 < time.monotonic() - began < 2
    assert answer["job"]["id"] == job_id
    wire.do("ACK", id=job_id, token=answer["token"])
    assert wire.pull(queue, timeout=300)["job"] is None
    assert wire.counts(queue) == {"completed": 1}


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
def test_how_late_a_job_was_started_can_be_seen(own_server: Server, queue: str, kill: bool) -> None:
    with own_server.connect() as wire:
        job_id = wire.push(queue, 1, delay=300, durable=True)
        due = wire.do("GetJob", id=job_id)["job"]["runAt"]
    own_server.kill() if kill else own_server.stop()
    time.sleep(max(0.0, due / 1000 + 1 - time.time()))
    own_server.start()
    with own_server.connect() as wire:
        job = wire.pull(queue, timeout=5_000)["job"]
        assert job["runAt"] == due == job["createdAt"] + 300, "not overwritten"
        assert 1_000 <= job["startedAt"] - due < 20_000
