"""Counts over all queues."""

from __future__ import annotations

from tests.server.letters import Correspondent
from tests.server.offline import Peer, serving

from tandemq.model.message import State
from tandemq.server import census
from tandemq.server.census import taken, taken_in_slices


async def test_slices_come_to_the_same_as_one_pass() -> None:
    async with serving() as runtime:
        peer, engine = Peer(runtime), runtime.engine
        for n in range(2 * census.SLICE + 3):
            await peer.push(f"q{n % 7}-{n:04}", priority=n % 2)
        for _ in range(3):
            await peer.pull("q0-0000")
        await peer.do("Pause", queue="set-only")
        at_once, in_slices = taken(engine, 5), await taken_in_slices(engine, 5)
    names = [q.name for q in at_once.shown]
    assert names == [q.name for q in in_slices.shown] == sorted(names)
    assert len(names) == 5
    for field in ("prioritized", "queues", "named", "in_flight"):
        assert getattr(at_once, field) == getattr(in_slices, field), field
    assert [at_once[state] for state in State] == [in_slices[state] for state in State]
    assert (at_once[State.LEASED], at_once.in_flight) == (1, 1)
    assert at_once.queues == at_once.named + 1  # the paused one holds nothing


async def test_each_copy_of_a_message_for_many_is_in_flight() -> None:
    async with serving(default_mode="FanOutWithAck") as runtime:
        publisher = await Correspondent(runtime).connect()
        for _ in range(3):
            reader = await Correspondent(runtime).connect()
            await reader.do("subscribe", queue="q")
        await publisher.do("publish", id="m", queue="q", payload=1)
        assert taken(runtime.engine).in_flight == 3


async def test_no_queue_is_none() -> None:
    async with serving() as runtime:
        found = await taken_in_slices(runtime.engine, 5)
    assert (found.queues, found.shown, found[State.READY]) == (0, [], 0)
