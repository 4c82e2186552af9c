"""Section 18 of the scenarios: what a restart leaves as it was."""

from __future__ import annotations

import random

import pytest
from tests.broker.room import room
from tests.server.offline import GatedStore
from tests.support.server import Server, figure
from tests.support.vibe import BOTH, joined

from tandemq.stores.base import Batch
from tandemq.wires.sniff import Wire

ROUNDS = figure("TANDEMQ_KILLS", short=2, long=100)
OPTIONS = {
    "mode": 3, "maxQueueSize": 50, "messageTtl": "01:00:00", "enableDeadLetterQueue": True,
    "deadLetterQueueName": "graves", "overflowStrategy": 1, "maxRetryAttempts": 7,
}  # fmt: skip


class Crashing(GatedStore):
    """A store whose server was killed after so many batches: it has nothing of what came later."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        self.left = batches

    def commit(self, batch: Batch) -> None:
        self.left -= 1
        if self.left >= 0:
            super().commit(batch)


def test_s_240_to_246_what_was_confirmed_is_there_after_a_kill(
    own_server: Server, wire: Wire
) -> None:
    server = own_server
    with joined(server.port, wire) as a:
        assert a.ask("CreateQueue", queue="jobs", payload=OPTIONS)["type"] == "CreateQueue"
        a.subscribe("acked")
        a.publish("acked", "done")
        assert a.delivered(1) == ["done"]
        a.ack("done")
        a.subscribe("held")
        a.publish("held", "held")
        assert a.delivered(1) == ["held"]
        for id in ("m1", "m2", "m3"):
            a.publish("jobs", id, {"id": id})
        before = a.ask("QueueInfo", queue="jobs")["payload"]
        server.kill()
    server.start()
    with joined(server.port, wire) as b:
        after = b.ask("QueueInfo", queue="jobs")["payload"]
        assert after == before
        assert (after["messageCount"], after["deadLetterQueueName"]) == (3, "graves")
        b.subscribe("jobs")
        for id in ("m1", "m2", "m3"):
            b.expect("Deliver", id, queue="jobs", payload={"id": id})
        b.subscribe("held")
        assert b.delivered(1) == ["held"]
        b.subscribe("acked")
        b.quiet()


def test_s_244_what_was_confirmed_the_moment_before_a_kill_is_there(own_server: Server) -> None:
    server, confirmed = own_server, []
    for n in range(ROUNDS):
        wire = BOTH[n % 2]
        with joined(server.port, wire) as a:
            for k in range(random.Random(n).randrange(1, 20)):
                a.publish("q", f"m{n}-{k}")
                confirmed.append(f"m{n}-{k}")
            server.kill()
        server.start()
    with joined(server.port, Wire.JSON) as b:
        b.subscribe("q")
        assert b.delivered(len(confirmed)) == confirmed


@pytest.mark.parametrize("kill", [False, True], ids=["stop", "kill"])
async def test_s_241_acknowledged_messages_do_not_return(wire: Wire, kill: bool) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p, a = await r.many(2)
        await a.subscribe("q")
        await p.publish("q", "m1", "m2")
        a.ack("m1")
        assert await p.waiting("q") == 0  # a read waits until all of that is kept
        kept = _copy(store)
    async with room(wire, kept if kill else store) as r:
        b = await r.guest()
        await b.subscribe("q")
        assert await b.delivered() == ["m2"]


def _copy(store: GatedStore) -> GatedStore:
    """What a store holds at this moment."""
    found = GatedStore()
    found.commit(Batch(new=list(store.load()), facts=dict(store.load_facts())))
    return found


async def test_attempts_are_kept_over_a_restart(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p, a = await r.many(2)
        await p.create("q", enableDeadLetterQueue=True)
        await a.subscribe("q")
        await p.publish("q", "m")
        await r.pass_time(31)  # its second delivery
    async with room(wire, store) as r:
        b = await r.guest()
        await b.subscribe("q")
        await r.pass_time(60)
        assert [at for at, _ in b.times] == [0, 4]
        assert r.counters.dead_lettered == 1


async def test_s_245_dead_letters_survive_and_are_seen(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p, a = await r.many(2)
        await p.create("q", enableDeadLetterQueue=True)
        await a.subscribe("q")
        await p.publish("q", "m1", payload="x", headers={"own": "header"})
        await r.pass_time(43)
    async with room(wire, store) as r:
        d = await r.guest()
        assert sorted((await d.ask("ListQueues"))["payload"]) == ["q", "q.dlq"]
        assert await d.waiting("q.dlq") == 1
        await d.subscribe("q.dlq")
        told = await d._wait_for(lambda _: True)
        assert (told["id"], told["payload"]) == ("m1", "x")
        assert told["headers"]["x-death-reason"] == "MaxRetriesExceeded"
        assert told["headers"]["own"] == "header"


async def test_s_247_a_deleted_queue_leaves_nothing(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p = await r.guest()
        await p.create("q", enableDeadLetterQueue=True)
        await p.publish("q", "m1", "m2")
        await p.ask("DeleteQueue", queue="q")
    assert not store.rows
    assert not [key for key in store.load_facts() if "/q" in key]


async def _bury(wire: Wire, batches: int) -> Crashing:
    """A message becomes a dead letter, on a server that is killed after so many batches."""
    store = Crashing(batches)
    async with room(wire, store) as r:
        p, a = await r.many(2)
        await p.create("q", enableDeadLetterQueue=True, maxRetryAttempts=1)
        await a.subscribe("q")
        await p.publish("q", "m")
        await r.pass_time(31)
        await p.waiting("q.dlq")  # a read waits until all of that is kept
    return store


async def test_s_248_there_is_one_copy_whenever_the_server_is_killed(wire: Wire) -> None:
    whole = await _bury(wire, 1_000)
    total = 1_000 - whole.left
    copies = []
    for batches in range(total + 1):
        store = await _bury(wire, batches)
        copies.append(len(store.rows))
        async with room(wire, _copy(store)) as r:
            d = await r.guest()
            await d.subscribe("q", "q.dlq")
            assert len(await d.delivered()) == copies[-1]
    assert copies == sorted(copies)
    assert set(copies) == {0, 1}


def test_s_249_another_time_zone_changes_no_moment(own_server: Server, wire: Wire) -> None:
    server = own_server
    with joined(server.port, wire) as a:
        a.publish("q", "m")
        before = a.ask("QueueInfo", queue="q")["payload"]
    server.kill()
    server._environment["TZ"] = "Asia/Tokyo"
    server.start()
    with joined(server.port, wire) as b:
        assert b.ask("QueueInfo", queue="q")["payload"] == before


async def test_more_than_a_queue_may_hold_is_not_dropped_by_a_restart(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p, a = await r.many(2)
        await p.create("q", maxQueueSize=2)
        await a.subscribe("q")
        await p.publish("q", "m1", "m2", "m3", "m4", "m5")  # held, so none of them waits
        assert len(await a.delivered()) == 5
    async with room(wire, store) as r:
        b = await r.guest()
        assert await b.waiting("q") == 5
        await b.subscribe("q")
        assert await b.delivered() == ["m1", "m2", "m3", "m4", "m5"]


async def test_a_publish_is_confirmed_when_it_is_kept_and_not_before(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p = await r.guest()
        store.close_gate()
        p.send("Publish", "m", queue="q", payload=1)
        await p.silence()
        store.open_gate()
        await p.expect("PublishAck", "m", queue="q")


async def test_a_publish_that_cannot_be_kept_is_refused_and_undone(wire: Wire) -> None:
    store = GatedStore()
    async with room(wire, store) as r:
        p = await r.guest()
        await p.publish("q", "m1")
        store.fail()
        code, text = await p.refused("Publish", "m2", queue="q", payload=1)
        assert code == "SERVER_ERROR"
        assert "nothing was changed" in text
        store.recover()
        await r.pass_time(5)
        assert await p.waiting("q") == 1
        await p.publish("q", "m3")
