"""The server without sockets: what an answer waits for, what fails with what, what is let in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import pytest
from tests.server.offline import MALFORMED, GatedStore, Peer, serving, turns, until
from tests.support.wire import frame

from tandemq.commands.access import Ping
from tandemq.commands.table import BY_REQUEST
from tandemq.model.message import State
from tandemq.server import committer, outage, runtime
from tandemq.server.committer import Committer
from tandemq.server.runtime import Runtime
from tandemq.stores.base import StoreFailed
from tandemq.stores.memory import MemoryStore
from tandemq.stores.rows import decode
from tandemq.wires.bunqueue import session

REFUSED = "Storage failed, nothing was changed: disk full"


async def stuck(peer: Peer, *reqs: str) -> bool:
    """Whether none of the answers comes, however long the loop turns."""
    await turns(20)
    return not any(peer.has(req) for req in reqs)


# -- durability ----------------------------------------------------------------------------------


async def test_without_a_store_nothing_waits() -> None:
    async with serving() as server:
        peer = Peer(server)
        req = peer.send("PUSH", queue="q", data=1, durable=True)
        await turns(3)
        assert peer.has(req)


async def test_a_buffered_answer_leaves_before_its_batch_and_a_durable_one_does_not() -> None:
    store = GatedStore()
    async with serving(store, durability="buffered") as server:
        peer = Peer(server)
        store.close_gate()
        await peer.push()
        durable = peer.send("PUSH", queue="q", data=1, durable=True)
        assert await stuck(peer, durable)
        store.open_gate()
        assert (await peer.answer(durable))["ok"]
        assert [batch.sync for batch in store.batches] == [False, True]


@pytest.mark.parametrize("durability", ["commit", "sync"])
async def test_an_answer_waits_until_what_it_tells_is_kept(durability: str) -> None:
    store = GatedStore()
    async with serving(store, durability=durability) as server:
        peer = Peer(server)
        store.close_gate()
        req = peer.send("PUSH", queue="q", data=1)
        assert await stuck(peer, req)
        store.open_gate()
        answer = await peer.answer(req)
        assert answer["id"] == decode(store.rows[0]).id
        assert store.batches[0].sync == (durability == "sync")


async def test_requests_of_one_turn_are_one_batch() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peers = [Peer(server) for _ in range(3)]
        reqs = [peer.send_all([{"cmd": "PUSH", "queue": "q"}] * 10) for peer in peers]
        for peer, each in zip(peers, reqs, strict=True):
            await peer.answer(each[-1])
            assert peer.order == each
        assert [len(batch.new) for batch in store.batches] == [30]


async def test_a_read_waits_while_anything_is_not_kept() -> None:
    store = GatedStore()
    async with serving(store) as server:
        writer, reader = Peer(server), Peer(server)
        store.close_gate()
        pushed = writer.send("PUSH", queue="q", jobId="a")
        await turns()
        reads = [
            reader.send("GetState", id="a"),
            reader.send("Count", queue="q"),
            reader.send("GetJobs", queue="q"),
        ]
        assert await stuck(reader, *reads)
        assert (await reader.ask("Ping"))["ok"]
        assert (await reader.ask("Hello"))["ok"]
        store.open_gate()
        assert (await reader.answer(reads[0]))["state"] == "waiting"
        assert (await reader.answer(reads[1]))["count"] == 1
        assert writer.has(pushed)
        store.close_gate()
        assert (await reader.ask("Count", queue="q"))["count"] == 1


async def test_a_pull_is_answered_at_once() -> None:
    store = GatedStore()
    async with serving(store) as server:
        writer, worker = Peer(server), Peer(server)
        store.close_gate()
        writer.send("PUSH", queue="q", jobId="a")
        assert (await worker.pull())["job"]["id"] == "a"
        waiting = worker.send("PULL", queue="r", timeout=60_000)
        writer.send("PUSH", queue="r", jobId="b")
        assert (await worker.answer(waiting))["job"]["id"] == "b"


async def test_an_acknowledgement_waits_for_its_batch() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        id = await peer.push()
        token = (await peer.pull())["token"]
        store.close_gate()
        req = peer.send("ACK", id=id, token=token)
        assert await stuck(peer, req)
        store.open_gate()
        assert (await peer.answer(req))["ok"]
        assert decode(store.rows[0]).state is State.DONE


async def test_an_answer_to_somebody_who_is_gone_is_dropped() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer, other = Peer(server), Peer(server)
        store.close_gate()
        req = peer.send("PUSH", queue="q", jobId="a")
        await turns()
        peer.leave()
        await turns()
        store.open_gate()
        assert await other.state("a") == "waiting"
        assert not peer.has(req)


@asynccontextmanager
async def flying(server: Runtime, peer: Peer) -> AsyncIterator[Committer]:
    """A batch is on its way, and lands when the test says so."""
    committer = server.committer
    assert committer is not None
    jobs, committer._jobs = committer._jobs, SimpleQueue()  # no writer sees it
    peer.send("PUSH", queue="other")
    await until(lambda: committer._flying, "the batch")
    committer._jobs = jobs
    yield committer
    await until(lambda: not committer.pending, "the last batch")


@pytest.mark.parametrize("began", ["_landed", "_catch_up"])
async def test_no_batch_begins_in_the_middle_of_a_turn(began: str) -> None:
    """It would write a child that is gone without the parent that is ready through that."""
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        kids = {"dependsOn": ["kid"], "childrenIds": ["kid"]}
        above = {"name": "n", "data": {"__childrenIds": ["kid"]}, **kids}
        below = {"name": "n", "data": {"__parentId": "top", "__parentQueue": "tops"}}
        await peer.do(
            "PUSHF",
            jobs=[
                {"id": "top", "queue": "tops", "input": above},
                {"id": "kid", "queue": "kids", "input": {**below, "parentId": "top"}},
            ],
        )
        async with flying(server, peer) as committer:
            peer.send("ChangePriority", id="kid", priority=5)  # its row has to be written next
            await turns()
            end = {"cmd": "ACK", "id": "kid", "removeOnComplete": True}
            _, done = peer.send_all([{"cmd": "PULL", "queue": "kids"}, end])
            assert server._turning
            committer._landed(None)
            if began == "_catch_up":
                committer._catch_up()
            assert committer._flying is None
            await peer.answer(done)
        batch = store.batches[-1]
        assert [len(batch.gone), len(batch.changed)] == [1, 1]
        top = next(m for m in map(decode, store.rows) if m.id == "top")
        assert top.state is State.READY


# -- a store that fails --------------------------------------------------------------------------


@pytest.fixture
def slow_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server does not try by itself while the test looks."""
    monkeypatch.setattr(outage, "PROBE", 3600.0)


@pytest.mark.usefixtures("slow_probe")
async def test_a_failing_store_is_an_error_for_every_client_concerned() -> None:
    store = GatedStore()
    async with serving(store) as server:
        one, two, reader = Peer(server), Peer(server), Peer(server)
        store.close_gate()
        store.fail()
        first = one.send("PUSH", queue="q", jobId="a")
        await until(lambda: store.begun, "the batch")
        second = two.send("PUSH", queue="q", jobId="b")
        await turns()
        read = reader.send("GetState", id="a")
        assert await stuck(reader, read)
        store.open_gate()
        for peer, req in ((one, first), (two, second), (reader, read)):
            assert await peer.answer(req) == {"ok": False, "error": REFUSED}
        assert store.rows == []


@pytest.mark.usefixtures("slow_probe")
async def test_the_storage_status_tells() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        fine = {"diskFull": False}
        assert (await peer.do("StorageStatus"))["data"]["diskFull"] is False
        store.fail()
        assert not (await peer.ask("PUSH", queue="q"))["ok"]
        shown = (await peer.do("StorageStatus"))["data"]
        assert (shown["diskFull"], shown["error"]) == (True, "disk full")
        since = shown["since"]
        assert abs(since - runtime.now_ms()) < 60_000
        assert not (await peer.ask("PUSH", queue="q"))["ok"]
        assert (await peer.do("StorageStatus"))["data"]["since"] == since
        store.recover()
        await peer.push()
        assert (await peer.do("StorageStatus"))["data"] | fine == {
            "diskFull": False,
            "error": None,
            "since": None,
        }


FIGURES = [
    "StorageStatus", "Stats", "Metrics", "Prometheus", "WorkerStats", "ListWorkers", "ListQueues",
    "FindQueues", "ListSubscribers", "Pulse", "WhoAmI",
    "DashboardOverview", "DashboardQueues", "Ping", "Hello",
]  # fmt: skip


@pytest.mark.parametrize("cmd", FIGURES)
@pytest.mark.usefixtures("slow_probe")
async def test_figures_are_shown_however_much_cannot_be_written(cmd: str) -> None:
    store = GatedStore()
    async with serving(store) as server:
        writer, reader = Peer(server), Peer(server)
        store.fail()
        assert not (await writer.ask("PUSH", queue="q"))["ok"]
        store.close_gate()
        refused = writer.send("PUSH", queue="q")
        (same_turn,) = reader.send_all([{"cmd": cmd}])
        assert (await reader.answer(same_turn))["ok"]
        assert (await reader.ask(cmd))["ok"]
        assert not writer.has(refused)


@pytest.mark.usefixtures("slow_probe")
async def test_what_was_not_kept_is_undone_exactly() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        await peer.push(jobId="old", priority=3)
        await peer.push("side", jobId="other")
        await peer.do("Pause", queue="quiet")
        before = await snapshot(peer)
        store.fail()
        for cmd, fields in (
            ("PUSH", {"queue": "q", "jobId": "new"}),
            ("PUSH", {"queue": "fresh", "jobId": "new"}),
            ("PUSHB", {"queue": "q", "jobs": [{"customId": "x"}, {"customId": "y"}]}),
            ("Pause", {"queue": "q"}),
            ("Resume", {"queue": "quiet"}),
            ("AddLog", {"id": "old", "message": "line"}),
        ):
            assert await peer.ask(cmd, **fields) == {"ok": False, "error": REFUSED}, cmd
            assert await snapshot(peer) == before, cmd
        store.recover()
        assert await peer.push("elsewhere", jobId="new") == "new"
        assert (await peer.do("GetJob", id="new"))["job"]["queue"] == "elsewhere"


async def snapshot(peer: Peer) -> dict[str, Any]:
    """Everything that can be asked about the queues of a test."""
    queues = sorted((await peer.do("ListQueues"))["queues"])
    found: dict[str, Any] = {"queues": queues}
    for queue in ("q", "side", "quiet", "fresh", "elsewhere"):
        found[queue] = [
            await peer.do("GetJobCounts", queue=queue),
            await peer.do("GetJobs", queue=queue),
            await peer.do("IsPaused", queue=queue),
            await peer.do("Count", queue=queue),
        ]
    for id in ("old", "new", "x", "y", "other"):
        found[id] = [await peer.do("GetState", id=id), await peer.do("GetLogs", id=id)]
    return found


@pytest.mark.usefixtures("slow_probe")
async def test_a_result_that_was_not_kept_leaves_the_job_for_another_run() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        id = await peer.push()
        token = (await peer.pull())["token"]
        store.fail()
        refused = await peer.ask("ACK", id=id, token=token, result=1)
        assert refused == {"ok": False, "error": REFUSED}
        store.recover()
        assert await peer.state(id) in ("active", "waiting")
        assert (await peer.do("Stats"))["stats"]["completed"] in (0, 1)
        assert decode(store.rows[0]).state in (State.LEASED, State.READY)


@pytest.mark.usefixtures("slow_probe")
async def test_a_pull_that_was_served_out_of_a_lost_batch_is_refused_too() -> None:
    store = GatedStore()
    async with serving(store) as server:
        writer, worker = Peer(server), Peer(server)
        waiting = worker.send("PULL", queue="q", timeout=60_000, owner="w")
        await turns()
        store.fail()
        assert not (await writer.ask("PUSH", queue="other"))["ok"]
        pushed = writer.send("PUSH", queue="q", jobId="a")
        assert await writer.answer(pushed) == {"ok": False, "error": REFUSED}
        assert await worker.answer(waiting) == {"ok": False, "error": REFUSED}
        assert await writer.state("a") == "unknown"


@pytest.mark.usefixtures("slow_probe")
async def test_what_is_handed_out_in_the_turn_of_a_failure_is_refused_too() -> None:
    """The batch fails after a push met a waiting pull, and before that turn has ended."""
    async with serving(GatedStore()) as server:
        writer, worker = Peer(server), Peer(server)
        waiting = worker.send("PULL", queue="q", timeout=60_000, owner="w")
        await turns()
        async with flying(server, writer) as committer:
            pushed = writer.send("PUSH", queue="q", jobId="a")
            assert server._turning
            committer._landed(StoreFailed("disk full"))  # inside the turn
            for peer, req in ((writer, "r1"), (writer, pushed), (worker, waiting)):
                assert await peer.answer(req) == {"ok": False, "error": REFUSED}
        assert await writer.state("a") == "unknown"


@pytest.mark.usefixtures("slow_probe")
async def test_while_writing_fails_no_job_is_handed_out_that_could_not_be_settled() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        id = await peer.push()
        store.fail()
        assert not (await peer.ask("PUSH", queue="q"))["ok"]
        refused = await peer.ask("PULL", queue="q", owner="w")
        assert refused == {"ok": False, "error": REFUSED}
        assert await peer.state(id) == "waiting"
        store.recover()
        assert (await peer.pull())["job"]["id"] == id


async def test_service_resumes_by_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outage, "PROBE", 0.01)
    caplog.set_level(logging.WARNING, "tandemq.server")
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        store.fail()
        assert not (await peer.ask("PUSH", queue="q"))["ok"]
        tried = store.begun
        await until(lambda: store.begun > tried + 2, "more tries")
        assert server.storage()["diskFull"]
        store.recover()
        await until(lambda: not server.storage()["diskFull"], "the recovery")
        assert [r.message for r in caplog.records] == [
            "the store cannot be written: disk full",
            "the store can be written again",
        ]
        assert await peer.push()


@pytest.mark.usefixtures("slow_probe")
async def test_however_much_fails_one_probe_is_planned() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        store.fail()
        for _ in range(20):
            assert not (await peer.ask("PUSH", queue="q"))["ok"]
        planned = [
            timer
            for timer in server.loop._scheduled  # type: ignore[attr-defined]
            if not timer.cancelled() and timer._callback == server.outage._try
        ]
        assert len(planned) == 1


@pytest.mark.usefixtures("slow_probe")
async def test_an_answer_that_took_no_write_does_not_end_the_alarm() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        store.fail()
        assert not (await peer.ask("PUSH", queue="q"))["ok"]
        reqs = peer.send_all(
            [
                {"cmd": "PUSH", "queue": "q", "jobId": "x", "removeOnComplete": True},
                {"cmd": "PULL", "queue": "q"},
                {"cmd": "ACK", "id": "x"},
            ]
        )
        assert (await peer.answer(reqs[-1]))["ok"]
        assert server.storage()["diskFull"]


@pytest.mark.usefixtures("slow_probe")
async def test_a_job_that_cannot_be_written_is_refused_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encode = committer.encode_head

    def picky(m: Any) -> bytes:
        if m.id == "bad":
            raise OverflowError("too large")
        return encode(m)

    monkeypatch.setattr(committer, "encode_head", picky)
    async with serving(GatedStore()) as server:
        peer = Peer(server)
        refused = await peer.ask("PUSH", queue="q", jobId="bad")
        assert not refused["ok"]
        assert await peer.push(jobId="good") == "good"
        assert await peer.state("bad") == "unknown"


async def test_a_job_that_was_taken_back_and_handed_out_again_survives_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its old object must not be written behind, nor come back beside the new one."""
    monkeypatch.setattr(committer, "BEHIND", 0.02)
    monkeypatch.setattr(outage, "PROBE", 0.01)
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        id = await peer.push(backoff=0)
        await peer.do("PULL", queue="q")
        store.close_gate()
        store.fail()
        begun = store.begun
        failed = peer.send("FAIL", id=id)
        await until(lambda: store.begun > begun, "the batch")
        again = peer.send("PULL", queue="q")
        await peer.answer(again)
        store.open_gate()
        assert not (await peer.answer(failed))["ok"]
        store.recover()
        await until(lambda: not server.storage()["diskFull"], "the recovery")
        worked = server.committer
        assert worked is not None
        await until(lambda: worked._behind is None, "what is written behind")
        await worked.drained()
        assert [decode(row).id for row in store.rows] == [id]
        assert len(server.engine.messages) == 1
        counts = (await peer.do("GetJobCounts", queue="q"))["counts"]
        assert sum(counts.values()) == 1
    async with serving(store) as server:
        assert list(server.engine.messages) == [id]


# -- start and stop ------------------------------------------------------------------------------


async def test_a_clean_stop_gives_back_what_is_leased_and_charges_nothing() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        ids = [await peer.push() for _ in range(3)]
        await peer.pull()
        await peer.do("PULL", queue="q", detach=True)
        store.close_gate()
        last = peer.send("PUSH", queue="q", jobId="last")
        await turns()
    assert peer.has(last)
    assert peer.transport.closing
    assert store.begun == len(store.batches)
    async with serving(store) as server:
        peer = Peer(server)
        jobs = (await peer.do("GetJobs", queue="q"))["jobs"]
        assert [job["id"] for job in jobs] == [*ids, "last"]
        assert {(job["state"], job["attempts"], job["stallCount"]) for job in jobs} == {
            ("waiting", 0, 0)
        }


async def test_a_pull_that_is_served_as_the_server_stops_is_told_and_taken_back() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        waiting = peer.send("PULL", queue="q", timeout=60_000, owner="w")
        await turns()
        Peer(server).send("PUSH", queue="q", jobId="a")
    assert peer.has(waiting)
    assert peer.answers[waiting]["token"] is not None
    assert decode(store.rows[0]).state is State.READY


async def test_after_a_crash_a_job_that_was_running_is_charged_and_runs_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(committer, "BEHIND", 0.005)
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        id = await peer.push(backoff=0)
        await peer.pull()
        await until(lambda: decode(store.rows[0]).state is State.LEASED, "the lease in the store")
        crashed = MemoryStore()
        crashed.persistent = True
        crashed._rows, crashed._facts = dict(store._rows), dict(store._facts)
    async with serving(crashed) as server:
        assert "1 jobs were running when the server ended" in caplog.text
        answer = await Peer(server).pull(timeout=5_000)
        assert answer["job"]["id"] == id
        assert (answer["job"]["attempts"], answer["job"]["stallCount"]) == (1, 1)


async def test_while_winding_down_nothing_is_handed_out_but_all_may_be_settled() -> None:
    async with serving() as server:
        peer = Peer(server)
        id = await peer.push()
        await peer.push()
        token = (await peer.pull())["token"]
        server.wind_down()
        assert server.leased == 1
        assert (await peer.pull())["job"] is None
        await peer.do("ACK", id=id, token=token)
        assert server.leased == 0
        assert await peer.push()


async def test_settings_logs_and_results_are_there_after_a_restart() -> None:
    store = GatedStore()
    async with serving(store) as server:
        peer = Peer(server)
        id = await peer.push()
        token = (await peer.pull())["token"]
        await peer.do("AddLog", id=id, message="line")
        await peer.do("ACK", id=id, token=token, result={"r": 1})
        await peer.do("Pause", queue="quiet")
    async with serving(store) as server:
        peer = Peer(server)
        assert (await peer.do("GetResult", id=id))["result"] == {"r": 1}
        assert (await peer.do("GetLogs", id=id))["data"]["count"] == 1
        assert (await peer.do("IsPaused", queue="quiet"))["paused"]


# -- time ----------------------------------------------------------------------------------------


async def test_a_delayed_job_reaches_a_waiting_pull_without_anybody_asking() -> None:
    async with serving() as server:
        peer = Peer(server)
        waiting = peer.send("PULL", queue="q", timeout=60_000)
        id = await peer.push(delay=30)
        assert (await peer.answer(waiting))["job"]["id"] == id


async def test_a_pull_that_waits_in_vain_is_answered_when_its_time_is_over() -> None:
    async with serving() as server:
        answer = await Peer(server).ask("PULL", queue="q", timeout=20, owner="w")
        assert answer == {"ok": True, "job": None, "token": None}


async def test_a_clock_that_is_set_moves_leases_and_waits_with_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as server:
        peer = Peer(server)
        id = await peer.push()
        await peer.pull(lockTtl=5_000)
        real = runtime.now_ms
        monkeypatch.setattr(runtime, "now_ms", lambda: real() + 86_400_000)
        assert await peer.state(id) == "active"
        assert "the clock was set by 86" in caplog.text
        monkeypatch.setattr(runtime, "now_ms", real)
        assert await peer.state(id) == "active"


# -- connections that are lost -------------------------------------------------------------------


async def test_a_lost_connection_gives_back_what_it_held_and_waits_no_more() -> None:
    async with serving() as server:
        peer, other = Peer(server), Peer(server)
        id = await peer.push()
        await peer.pull()
        peer.send("PULL", queue="r", timeout=60_000)
        await peer.do("RegisterWorker", name="w", workerId="w")
        await turns()
        peer.leave()
        await turns()
        assert await other.state(id) == "waiting"
        assert (await other.do("ListWorkers"))["data"]["workers"] == []
        second = await other.push("r")
        assert (await other.pull("r"))["job"]["id"] == second
        assert peer.connection.id not in server.connections
        assert server.engine.waiting == {}


# -- bugs of ours --------------------------------------------------------------------------------


async def test_a_bug_in_a_command_leaks_nothing_and_harms_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(req: Any, call: Any) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setitem(BY_REQUEST, Ping, replace(BY_REQUEST[Ping], run=broken))
    async with serving() as server:
        peer = Peer(server)
        assert await peer.ask("Ping") == {"ok": False, "error": "Internal server error"}
        assert "a bug in Ping" in caplog.text
        assert await peer.push()


async def test_a_bug_in_reading_a_frame_is_told_and_logged_and_harms_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(frame: bytes) -> None:
        raise ZeroDivisionError("secret")

    async with serving() as server:
        peer = Peer(server)
        with monkeypatch.context() as patched:
            patched.setattr(session, "read", broken)
            peer.send("Ping")
            await turns()
        assert [answer["error"] for answer in peer.read_others()] == ["Internal server error"]
        assert "a bug in Refusal" in caplog.text
        assert await peer.push()


# -- logging in ----------------------------------------------------------------------------------

TOKENS = ("tok-alpha", "tok-beta")
CLOSED = {"ok": False, "error": "Not authenticated"}


@pytest.mark.parametrize(
    "cmd", ["Hello", "Ping", "PUSH", "PULL", "Stats", "Nope", "SubscribeEvents"]
)
async def test_before_a_login_every_command_is_refused(cmd: str) -> None:
    async with serving(tokens=TOKENS) as server:
        peer = Peer(server)
        assert await peer.ask(cmd, queue="q") == CLOSED
        assert await peer.ask(cmd, queue=None) == CLOSED
        assert not server.engine.messages


async def test_before_a_login_malformed_frames_get_their_usual_errors() -> None:
    async with serving(tokens=TOKENS) as server:
        peer = Peer(server)
        peer.send_raw(MALFORMED)
        peer.send_raw(frame(b"\x80"))
        await turns()
        errors = [answer["error"] for answer in peer.read_others()]
        assert errors == ["Invalid command format", "Invalid command"]


@pytest.mark.parametrize("token", TOKENS)
async def test_a_login_and_what_follows_it_may_come_in_one_write(token: str) -> None:
    async with serving(tokens=TOKENS) as server:
        peer = Peer(server)
        reqs = peer.send_all([{"cmd": "Ping"}, {"cmd": "Auth", "token": token}, {"cmd": "Ping"}])
        assert await peer.answer(reqs[0]) == CLOSED
        assert (await peer.answer(reqs[1]))["ok"]
        assert (await peer.answer(reqs[2]))["ok"]


async def test_a_login_is_one_of_its_connection_alone() -> None:
    async with serving(tokens=TOKENS) as server:
        one, two = Peer(server), Peer(server)
        await one.do("Auth", token="tok-alpha")
        assert await two.ask("Ping") == CLOSED


async def test_a_wrong_token_later_takes_nothing_away() -> None:
    async with serving(tokens=TOKENS) as server:
        peer = Peer(server)
        await peer.do("Auth", token="tok-alpha")
        assert await peer.ask("Auth", token="x") == {"ok": False, "error": "Invalid token"}
        assert (await peer.ask("Ping"))["ok"]


async def test_without_tokens_everything_is_open_and_no_token_is_right() -> None:
    async with serving() as server:
        peer = Peer(server)
        assert await peer.ask("Auth", token="x") == {"ok": False, "error": "Invalid token"}
        assert (await peer.ask("Ping"))["ok"]


async def test_too_many_failed_logins_end_the_connection() -> None:
    async with serving(tokens=TOKENS, login_limit=3) as server:
        peer, other = Peer(server), Peer(server)
        for _ in range(3):
            assert (await peer.ask("Auth", token="x"))["error"] == "Invalid token"
        last = await peer.ask("Auth", token="x")
        assert last["error"] == "Too many failed logins (3); connect again"
        await peer.closed()
        await turns()
        assert peer.connection.id not in server.connections
        await other.do("Auth", token="tok-beta")


async def test_the_login_limit_can_be_turned_off() -> None:
    async with serving(tokens=TOKENS, login_limit=0) as server:
        peer = Peer(server)
        for _ in range(50):
            assert (await peer.ask("Auth", token="x"))["error"] == "Invalid token"
        await peer.do("Auth", token="tok-beta")


# -- request rates -------------------------------------------------------------------------------


async def test_requests_above_the_limit_are_refused_and_the_connection_stays() -> None:
    async with serving(requests_per_minute=3) as server:
        peer, other = Peer(server), Peer(server)
        for _ in range(3):
            await peer.do("Ping")
        for _ in range(3):
            assert await peer.ask("Ping") == {"ok": False, "error": "Rate limit exceeded"}
        await other.do("Ping")
        assert not peer.transport.closing


async def test_unknown_commands_and_rubbish_use_the_budget_too() -> None:
    async with serving(requests_per_minute=2) as server:
        peer = Peer(server)
        peer.send_raw(MALFORMED)
        assert "Unknown" in (await peer.ask("Nope"))["error"]
        assert (await peer.ask("Ping"))["error"] == "Rate limit exceeded"
        peer.send_raw(MALFORMED)
        await turns()
        assert peer.read_others()[-1]["error"] == "Rate limit exceeded"


async def test_the_window_of_requests_slides() -> None:
    async with serving(requests_per_minute=1, request_window_ms=20) as server:
        peer = Peer(server)
        await peer.do("Ping")

        async def admitted() -> bool:
            return bool((await peer.ask("Ping"))["ok"])

        for _ in range(10_000):
            if await admitted():
                return
            await asyncio.sleep(0.001)
        pytest.fail("the window never opened again")


async def test_there_is_no_limit_of_requests_unless_one_is_set() -> None:
    async with serving() as server:
        peer = Peer(server)
        reqs = peer.send_all([{"cmd": "Ping"}] * 20_000)
        await peer.answer(reqs[-1])
        assert all(answer["ok"] for answer in peer.answers.values())


# -- the window of waiting pulls -----------------------------------------------------------------


async def waiting_pulls(server: Runtime, count: int) -> tuple[Peer, list[str]]:
    peer = Peer(server)
    command = {"cmd": "PULL", "queue": "q", "timeout": 60_000}
    return peer, peer.send_all([command] * count)


async def test_fifty_waiting_pulls_hold_up_what_comes_after_them() -> None:
    async with serving() as server:
        peer, pulls = await waiting_pulls(server, 50)
        ping = peer.send("Ping")
        assert await stuck(peer, ping)
        other = Peer(server)
        id = await other.push()
        assert (await peer.answer(pulls[0]))["job"]["id"] == id
        assert (await peer.answer(ping))["ok"]


async def test_below_the_window_nothing_is_held_up() -> None:
    async with serving() as server:
        peer, _ = await waiting_pulls(server, 49)
        assert (await peer.ask("Ping"))["ok"]


async def test_what_is_held_up_runs_in_its_order() -> None:
    async with serving(in_flight=2) as server:
        peer, pulls = await waiting_pulls(server, 5)
        pings = peer.send_all([{"cmd": "Ping"}] * 3)
        other = Peer(server)
        ids = (await other.do("PUSHB", queue="q", jobs=[{}] * 5))["ids"]
        await peer.answer(pings[-1])
        assert [peer.answers[req]["job"]["id"] for req in pulls] == ids
        assert peer.order == [*pulls, *pings]
        assert not peer.connection.backlog


async def test_a_long_backlog_is_not_read_any_further() -> None:
    async with serving(in_flight=1) as server:
        peer, _ = await waiting_pulls(server, 1)
        peer.send_all([{"cmd": "Ping"}] * 1_000)
        assert peer.transport.reading
        last = peer.send("Ping")
        assert not peer.transport.reading
        await Peer(server).push()
        await peer.answer(last)
        assert peer.transport.reading


async def test_a_backlog_goes_with_its_connection() -> None:
    async with serving(in_flight=1) as server:
        peer, _ = await waiting_pulls(server, 1)
        peer.send("PUSH", queue="never", jobId="never")
        peer.leave()
        await turns()
        other = Peer(server)
        assert await other.state("never") == "unknown"
        assert await other.push()


# -- what ends a connection ----------------------------------------------------------------------


async def test_an_oversized_announcement_is_answered_and_ends_the_connection() -> None:
    async with serving() as server:
        peer = Peer(server)
        peer.send_raw(b"\x40\0\0\0")
        await peer.closed()
        (answer,) = peer.read_others()
        assert answer["error"].startswith("Frame too large: 1073741824 bytes exceeds maximum")


async def test_good_requests_before_it_are_answered() -> None:
    async with serving(MemoryStore()) as server:
        peer = Peer(server)
        body = b"\x82\xa3cmd\xa4Ping\xa5reqId\xa1a"
        peer.send_raw(frame(body) + b"\xff\xff\xff\xff" + frame(body))
        await peer.closed()
        assert peer.has("a")
        assert len(peer.read_others()) == 1
