"""What the server measures of itself."""

from __future__ import annotations

import pytest
from tests.server.offline import Peer, serving

from tandemq.engine.counters import Counters
from tandemq.server.monitor import BOUNDS, Durations, Histogram


def test_a_duration_is_counted_in_the_bucket_that_holds_it() -> None:
    seen = Histogram()
    for seconds in (0.0001, 0.0002, 99):
        seen.add(seconds, 1)
    assert (seen.buckets[0], seen.buckets[1], seen.buckets[-1]) == (1, 1, 1)
    assert seen.average() == pytest.approx(99.0003 / 3)


def test_percentiles_are_bounds_of_buckets() -> None:
    seen = Histogram()
    assert seen.percentile(0.5) == seen.average() == 0
    seen.add(0.0001, 98)
    seen.add(0.2, 2)
    assert [seen.percentile(share) for share in (0.5, 0.95, 0.99)] == [0.0001, 0.0001, 0.25]
    seen.add(1e6, 1_000)
    assert seen.percentile(0.5) == BOUNDS[-1]


def test_a_turn_is_shared_by_what_it_did() -> None:
    durations, counters = Durations(), Counters()
    durations.turn_took(5.0, counters)
    counters.pushed, counters.pulled = 3, 1
    durations.turn_took(0.4, counters)
    assert (durations.of["push"].count, durations.of["pull"].count) == (3, 1)
    assert durations.of["push"].sum == pytest.approx(0.3)
    assert durations.of["ack"].count == 0


async def test_a_running_server_has_figures() -> None:
    async with serving() as runtime:
        peer = Peer(runtime)
        await peer.push()
        monitor = runtime.monitor
        assert monitor.memory()["rss"] > 1 << 20
        assert monitor.connections() == 1
        assert monitor.store_bytes() == 0
        assert set(monitor.rates().values()) == {0.0}
        assert monitor.latency()["averages"]["pushMs"] > 0
        shown = (await peer.do("DashboardOverview"))["data"]
        assert shown["latency"]["percentiles"]["push"]["p50"] > 0
