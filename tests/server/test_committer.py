"""Group commit: what waits for what, what is written, and what is undone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from tests.server.offline import GatedStore, turns, until

from tandemq.engine import consume, settle
from tandemq.engine.core import Engine
from tandemq.engine.ids import Uuid7
from tandemq.engine.publish import draft, publish
from tandemq.model.message import Message, Options, State
from tandemq.server import committer as module
from tandemq.server.committer import Committer
from tandemq.stores.base import Batch, StoreFailed
from tandemq.stores.rows import decode

NOW = 1_700_000_000_000


class Desk:
    """An engine whose outcomes go to a committer, with a record of what it says."""

    def __init__(self, store: GatedStore, *, always_sync: bool = False) -> None:
        self.store = store
        self.engine = Engine(new_id=Uuid7(Random(3).randbytes), uniform=lambda: 0.5)
        self.released: list[str] = []
        self.written: list[bool] = []
        self.undone: list[tuple[set[int], set[str], list[str], str]] = []
        self.committer = Committer(store, self._release, self._undo, always_sync=always_sync)

    def _release(self, held: list[str], written: bool) -> None:
        self.released += held
        self.written.append(written)

    def _undo(
        self, touched: dict[int, Message], keys: set[str], held: list[str], failure: StoreFailed
    ) -> None:
        self.undone.append((set(touched), keys, held, str(failure)))

    def publish(self, id: str, **options: bool) -> Message:
        wanted = Options(custom_id=True, **options)
        return publish(self.engine, draft("q", "n", b"\x01", NOW, 0, 0, wanted, id), NOW)

    def add(self, *held: str) -> None:
        self.committer.add(self.engine.take(), list(held))

    def push(self, id: str, **options: bool) -> Message:
        m = self.publish(id, **options)
        self.add(id)
        return m

    def lease(self) -> Message:
        (m,) = consume.take(self.engine, "q", 1, 1, None, NOW)
        return m


@asynccontextmanager
async def opened(*, always_sync: bool = False) -> AsyncIterator[Desk]:
    desk = Desk(GatedStore(), always_sync=always_sync)
    try:
        yield desk
    finally:
        desk.store.open_gate()
        await desk.committer.close()


def written(batch: Batch) -> tuple[int, int, int]:
    return len(batch.new), len(batch.changed), len(batch.gone)


async def landed(desk: Desk, count: int) -> None:
    await until(lambda: len(desk.store.batches) >= count, f"{count} batches")
    await turns()


# -- order ---------------------------------------------------------------------------------------


async def test_an_answer_waits_for_its_batch() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        desk.push("a")
        await until(lambda: desk.store.begun, "the batch")
        await turns()
        assert (desk.released, desk.committer.pending) == ([], True)
        desk.store.open_gate()
        await until(lambda: desk.released, "the answer")
        assert desk.released == ["a"]
        assert desk.written == [True]
        assert not desk.committer.pending
        assert len(desk.store.rows) == 1


async def test_while_one_batch_is_written_the_next_one_grows() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        for n in range(100):
            desk.push(f"j{n}")
        await until(lambda: desk.store.begun == 1, "the first batch")
        desk.store.open_gate()
        await until(lambda: len(desk.released) == 100, "all answers")
        assert [written(batch) for batch in desk.store.batches] == [(1, 0, 0), (99, 0, 0)]


async def test_answers_are_released_in_their_order_batch_by_batch() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        for n in range(10):
            desk.push(f"j{n}")
        desk.store.let_one_pass()
        await until(lambda: desk.released, "the first answer")
        assert desk.released == ["j0"]
        desk.store.open_gate()
        await until(lambda: len(desk.released) == 10, "all answers")
        assert desk.released == [f"j{n}" for n in range(10)]


async def test_an_answer_that_rests_on_nothing_new_waits_only_for_what_was_before_it() -> None:
    async with opened() as desk:
        desk.add("free")
        assert (desk.released, desk.written) == (["free"], [False])
        desk.store.close_gate()
        desk.push("a")
        desk.add("read")
        await turns()
        assert desk.released == ["free"]
        desk.store.open_gate()
        await until(lambda: len(desk.released) == 3, "both answers")
        assert desk.released == ["free", "a", "read"]
        assert len(desk.store.batches) == 1


async def test_an_idle_committer_writes_nothing() -> None:
    async with opened() as desk:
        desk.add()
        await turns()
        assert desk.store.begun == 0


# -- what is written -----------------------------------------------------------------------------


async def test_a_message_that_changed_several_times_is_written_once() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        desk.push("first")
        m = desk.publish("a")
        desk.engine.touched(m)
        desk.add()
        for _ in range(5):
            desk.engine.touched(m)
            desk.add()
        desk.store.open_gate()
        await landed(desk, 2)
        assert [written(batch) for batch in desk.store.batches] == [(1, 0, 0), (1, 0, 0)]


async def test_what_came_and_went_in_between_is_not_written() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        desk.push("first")
        m = desk.publish("a", remove_on_complete=True)
        desk.add("pushed")
        assert desk.lease() is not m  # the first one
        assert desk.lease() is m
        desk.add()
        settle.ack(desk.engine, "a", None, NOW)
        desk.add("acked")
        desk.store.open_gate()
        await until(lambda: len(desk.released) == 3, "all answers")
        assert desk.released == ["first", "pushed", "acked"]
        assert m.seq not in {row.seq for row in desk.store.rows}
        assert all(m.seq not in batch.gone for batch in desk.store.batches)


async def test_what_went_while_it_was_being_written_is_removed() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        m = desk.push("a", remove_on_complete=True)
        await until(lambda: desk.store.begun, "the batch")
        desk.lease()
        settle.ack(desk.engine, "a", None, NOW)
        desk.add("acked")
        desk.store.open_gate()
        await until(lambda: "acked" in desk.released, "the answer")
        assert desk.store.batches[1].gone == [m.seq]
        assert desk.store.rows == []


async def test_facts_are_written_with_their_last_value() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        for value in (b"1", b"2", b"3"):
            desk.engine.record("k", value)
            desk.add()
        desk.store.open_gate()
        await landed(desk, 2)
        assert [batch.facts for batch in desk.store.batches] == [{"k": b"1"}, {"k": b"3"}]
        desk.engine.record("k", None)
        desk.add()
        await landed(desk, 3)
        assert desk.store.load_facts() == {}


async def test_a_lease_is_written_behind_and_only_if_it_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BEHIND", 0.01)
    async with opened() as desk:
        m = desk.push("a")
        await landed(desk, 1)
        desk.lease()
        desk.add("pulled")
        assert desk.released == ["a", "pulled"]
        await landed(desk, 2)
        assert written(desk.store.batches[1]) == (0, 1, 0)
        assert decode(desk.store.rows[0]).state is State.LEASED
        consume.release(desk.engine, m, NOW)
        desk.add()
        await landed(desk, 3)
        assert decode(desk.store.rows[0]).state is State.READY


async def test_a_lease_that_ended_at_once_costs_no_write_of_its_own() -> None:
    async with opened() as desk:
        desk.push("a")
        await landed(desk, 1)
        desk.lease()
        desk.add()
        settle.ack(desk.engine, "a", None, NOW)
        desk.add("acked")
        await until(lambda: "acked" in desk.released, "the answer")
        assert decode(desk.store.rows[0]).state is State.DONE
        assert len(desk.store.batches) == 2
        assert not desk.committer._leases


@pytest.mark.parametrize(("always", "durable"), [(False, False), (False, True), (True, False)])
async def test_a_batch_is_synced_for_a_durable_job_or_always(always: bool, durable: bool) -> None:
    async with opened(always_sync=always) as desk:
        desk.push("a", durable=durable)
        await landed(desk, 1)
        assert desk.store.batches[0].sync == (always or durable)
        desk.lease()
        settle.ack(desk.engine, "a", None, NOW)
        desk.add()
        await landed(desk, 2)
        assert desk.store.batches[1].sync == always


# -- failure -------------------------------------------------------------------------------------


async def test_a_failed_batch_is_undone_with_everything_that_grew_on_it() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        desk.store.fail()
        a = desk.push("a")
        await until(lambda: desk.store.begun, "the batch")
        b = desk.publish("b")
        desk.engine.record("k", b"1")
        desk.add("b", "read")
        desk.store.open_gate()
        await until(lambda: desk.undone, "the undoing")
        assert desk.undone == [({a.seq, b.seq}, {"k"}, ["a", "b", "read"], "disk full")]
        assert desk.released == []
        assert not desk.committer.pending


async def test_after_a_failure_the_next_batch_is_tried_as_if_nothing_had_been() -> None:
    async with opened() as desk:
        desk.store.fail()
        desk.push("a")
        await until(lambda: desk.undone, "the undoing")
        desk.store.recover()
        desk.push("b")
        await until(lambda: desk.released, "the answer")
        assert desk.released == ["b"]
        assert len(desk.undone) == 1


async def test_a_bug_of_the_store_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as desk:

        def broken(_: Batch) -> None:
            raise ZeroDivisionError("oops")

        monkeypatch.setattr(desk.store, "commit", broken)
        desk.push("a")
        await until(lambda: desk.undone, "the undoing")
        assert "the store has a bug: ZeroDivisionError('oops')" in desk.undone[0][3]
        monkeypatch.undo()
        desk.push("b")
        await until(lambda: desk.released == ["b"], "the answer")


async def test_a_message_that_cannot_be_written_holds_up_nobody_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encode = module.encode_head

    def picky(m: Message) -> bytes:
        if m.id == "bad":
            raise OverflowError("too large")
        return encode(m)

    monkeypatch.setattr(module, "encode_head", picky)
    async with opened() as desk:
        desk.push("bad")
        await until(lambda: desk.undone, "the undoing")
        assert "cannot be stored: OverflowError" in desk.undone[0][3]
        desk.engine.evict(desk.engine.messages["bad"])
        desk.push("good")
        await until(lambda: desk.released == ["good"], "the answer")


async def test_while_writing_fails_a_lease_is_told_of_only_when_it_is_kept() -> None:
    async with opened() as desk:
        desk.push("a")
        await landed(desk, 1)
        desk.store.fail()
        desk.push("b")
        await until(lambda: desk.undone, "the undoing")
        desk.store.close_gate()
        desk.lease()
        desk.add("pulled")
        await turns()
        assert "pulled" not in desk.released
        desk.store.open_gate()
        await until(lambda: len(desk.undone) == 2, "the second undoing")
        assert desk.undone[1][2] == ["pulled"]


async def test_a_lease_that_was_taken_back_leaves_its_row_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BEHIND", 0.02)
    async with opened() as desk:
        m = desk.push("a")
        await landed(desk, 1)
        desk.lease()
        desk.add()
        desk.engine.evict(m)  # what undoing a failed batch does with the old object
        desk.push("b")
        await landed(desk, 2)
        await until(lambda: desk.committer._behind is None, "the write behind")
        await desk.committer.drained()
        assert {decode(row).id for row in desk.store.rows} == {"a", "b"}


# -- closing -------------------------------------------------------------------------------------


async def test_closing_in_the_middle_of_a_commit_loses_nothing() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        for n in range(20):
            desk.push(f"j{n}")
        await until(lambda: desk.store.begun, "the batch")
        closing = asyncio.ensure_future(desk.committer.close())
        await turns()
        assert not closing.done()
        desk.store.open_gate()
        await closing
        assert len(desk.store.rows) == 20
        assert len(desk.released) == 20
        assert not desk.committer._thread.is_alive()
        desk.committer = Committer(desk.store, desk._release, desk._undo)


async def test_closing_while_writing_fails_ends_with_everybody_told() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        desk.store.fail()
        desk.push("a")
        desk.push("b")
        closing = asyncio.ensure_future(desk.committer.close())
        await turns()
        desk.store.open_gate()
        await closing
        assert desk.undone[0][2] == ["a", "b"]
        desk.committer = Committer(desk.store, desk._release, desk._undo)


async def test_drained_waits_for_what_comes_meanwhile() -> None:
    async with opened() as desk:
        await desk.committer.drained()
        desk.store.close_gate()
        desk.push("a")
        waiting = asyncio.ensure_future(desk.committer.drained())
        await turns()
        desk.push("b")
        desk.store.let_one_pass()
        await until(lambda: desk.released == ["a"], "the first")
        assert not waiting.done()
        desk.store.open_gate()
        await waiting
        assert desk.released == ["a", "b"]
