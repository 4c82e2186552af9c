"""Nobody's pipeline keeps the others waiting: requests are counted, not timed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest
from tests.server.offline import Peer, serving, turns

from tandemq.commands.access import Ping
from tandemq.commands.table import BY_REQUEST
from tandemq.server.runtime import Runtime
from tandemq.server.turns import SLICE

COST = SLICE / 4  # s that a request takes here: four fill a turn
AT_LEAST = 4  # requests of a newcomer that a turn runs, however late it is
AT_MOST = SLICE / COST + AT_LEAST


class Load:
    """A clock that only requests move, and the connections whose requests have run, in order."""

    def __init__(self) -> None:
        self.now = 0.0
        self.cost = COST
        self.ran: list[int] = []

    def run(self, req: Any, call: Any) -> dict[str, Any]:
        self.now += self.cost
        self.ran.append(call.caller.id)
        return {}

    async def watch(self, server: Runtime) -> None:
        await turns()  # the one that started the server is over
        server.meter.clock = lambda: self.now

    def longest(self, peer: Peer) -> int:
        """How many requests of one connection ran in a row at most."""
        runs = [(id, len(list(same))) for id, same in groupby(self.ran)]
        return max(size for id, size in runs if id == peer.connection.id)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    load = Load()
    monkeypatch.setitem(BY_REQUEST, Ping, replace(BY_REQUEST[Ping], run=load.run))
    return load


def pings(count: int) -> list[dict[str, Any]]:
    return [{"cmd": "Ping"}] * count


async def test_a_long_pipeline_lets_others_in(load: Load) -> None:
    async with serving() as server:
        await load.watch(server)
        greedy, other = Peer(server), Peer(server)
        reqs = greedy.send_all(pings(200))
        for done in range(1, 21):
            req = other.send("Ping")
            await turns(1)
            assert other.has(req)
            assert load.ran.count(other.connection.id) == done
            assert load.ran.count(greedy.connection.id) <= (done + 1) * AT_MOST
        assert load.longest(greedy) <= AT_MOST
        await greedy.answer(reqs[-1])
        assert greedy.order == reqs


async def test_what_comes_meanwhile_waits_its_turn(load: Load) -> None:
    async with serving() as server:
        await load.watch(server)
        peer = Peer(server)
        reqs = [req for _ in range(5) for req in peer.send_all(pings(20))]
        assert len(peer.connection.backlog) > 80
        await peer.answer(reqs[-1])
        assert peer.order == reqs
        assert not peer.connection.backlog


async def test_greedy_connections_share_a_turn(load: Load) -> None:
    async with serving() as server:
        await load.watch(server)
        peers = [Peer(server) for _ in range(10)]
        other = Peer(server)
        for peer in peers:
            peer.send_all(pings(100))
        load.ran.clear()
        for _ in range(20):
            req = other.send("Ping")
            await turns(1)
            assert other.has(req)
        counts = Counter(load.ran)
        assert counts.pop(other.connection.id) == 20
        assert set(counts) == {peer.connection.id for peer in peers}
        # Ten that share a turn for four get one request each, which is the least there is.
        assert max(counts.values()) - min(counts.values()) <= 1
        assert 15 <= min(counts.values()) <= 20


async def test_a_turn_that_is_late_runs_a_few_requests_of_each_newcomer(load: Load) -> None:
    async with serving() as server:
        await load.watch(server)
        peers = [Peer(server) for _ in range(5)]
        for peer in peers:
            peer.send_all(pings(50))  # all of it arrives before the turn ends
        first, *others = (load.ran.count(peer.connection.id) for peer in peers)
        assert first == AT_MOST
        assert others == [AT_LEAST] * 4


async def test_a_pipeline_of_quick_requests_runs_in_one_turn(load: Load) -> None:
    load.cost = SLICE / 10_000
    async with serving() as server:
        await load.watch(server)
        peer = Peer(server)
        peer.send_all(pings(5_000))
        assert len(load.ran) == 5_000
        assert not peer.connection.backlog


async def test_a_connection_that_goes_takes_its_backlog_along(load: Load) -> None:
    async with serving() as server:
        await load.watch(server)
        greedy, other = Peer(server), Peer(server)
        greedy.send_all(pings(500))
        greedy.leave()
        await turns(3)
        ran = load.ran.count(greedy.connection.id)
        await turns(20)
        assert load.ran.count(greedy.connection.id) == ran < 30
        assert (await other.ask("Ping"))["ok"]
