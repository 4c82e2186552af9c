"""Figures over HTTP."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from tests.server.http.room import room
from tests.server.offline import Peer

SUMS = ("totalPushed", "totalPulled", "totalCompleted", "totalFailed")
RATES = ("pushPerSec", "pullPerSec", "completePerSec", "failPerSec")


async def test_the_four_shapes_of_figures() -> None:
    async with room() as at:
        peer = Peer(at.runtime)
        for _ in range(2):
            await peer.push()
        await peer.pull()
        assert await at.get("/metrics") == (
            200,
            {"ok": True, "metrics": dict(zip(SUMS, (2, 1, 0, 0), strict=True))},
        )
        status, told = await at.get("/metrics/")
        assert (status, told["inFlightMessages"], told["activeQueues"]) == (200, 1, 1)
        status, told = await at.get("/stats")
        assert (status, told["ok"]) == (200, True)
        assert (told["stats"]["waiting"], told["stats"]["active"]) == (1, 1)
        assert {*SUMS, *RATES, "uptime", "cronJobs", "cronPending"} <= told["stats"].keys()
        assert told["collections"]["jobIndex"] == 2
        status, text = await at.get("/prometheus")
        samples = {
            sample.name: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        assert (status, samples["bunqueue_jobs_waiting"]) == (200, 1)
        assert samples["bunqueue_jobs_pushed_total"] == 2


async def test_a_scrape_of_many_queues_is_taken_in_slices_and_right() -> None:
    async with room(metrics_max_queues=3) as at:
        peer = Peer(at.runtime)
        queues = [f"q{n:04}" for n in range(450)]
        for queue in queues:
            await peer.push(queue, priority=1)
        text = (await at.get("/prometheus"))[1]
        assert (await at.get("/health"))[1]["queues"]["waiting"] == 450
    assert "\nbunqueue_jobs_prioritized 450\n" in text
    assert "\nbunqueue_queue_metrics_exported 3\n" in text
    assert "\nbunqueue_queue_metrics_omitted 447\n" in text
    for queue in queues[:3]:
        assert f'bunqueue_queue_jobs_prioritized{{queue="{queue}"}} 1\n' in text
    assert text.count("bunqueue_queue_jobs_waiting{") == 3


async def test_scrapes_can_want_a_token() -> None:
    async with room(metrics_auth=True, tokens=("alpha",)) as at:
        for path in ("/prometheus", "/metrics/"):
            assert (await at.get(path))[0] == 401
            assert (await at.get(path, token="nope"))[0] == 401
            assert (await at.get(path, token="alpha"))[0] == 200


async def test_scrapes_cannot_want_a_token_that_nobody_has() -> None:
    async with room(metrics_auth=True) as at:
        status, told = await at.get("/prometheus")
    assert (status, told["ok"]) == (503, False)
    assert told["error"] == "Metrics authentication is enabled but no tokens are configured"


async def test_memory_can_be_looked_into_and_compacted() -> None:
    async with room() as at:
        await Peer(at.runtime).push()
        status, told = await at.get("/heapstats")
        assert (status, told["ok"], told["collections"]["jobIndex"]) == (200, True, 1)
        assert told["topObjectTypes"][0].keys() == {"type", "count"}
        assert told["heap"]["objects"] > 0
        status, told = await at.ask("POST", "/gc")
        assert (status, told["ok"]) == (200, True)
        assert told["before"].keys() == told["after"].keys() == {"heapUsed", "heapTotal", "rss"}
        for method, path in (("GET", "/gc"), ("POST", "/heapstats"), ("POST", "/prometheus")):
            assert (await at.ask(method, path))[0] == 404
