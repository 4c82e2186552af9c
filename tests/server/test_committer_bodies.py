"""A body that was replaced is written, wherever its row is at that moment."""

from __future__ import annotations

from tests.server.offline import turns, until
from tests.server.test_committer import NOW, landed, opened

from tandemq.engine import manage
from tandemq.stores.base import Batch


def bodies(batches: list[Batch]) -> list[list[bytes]]:
    return [[body for _, body in batch.rebodied] for batch in batches]


async def test_a_row_that_does_not_exist_yet_is_made_with_the_new_body() -> None:
    async with opened() as desk:
        m = desk.publish("a")
        manage.update(desk.engine, m, b"\x02")
        desk.add("a")
        await landed(desk, 1)
        [batch] = desk.store.batches
        assert [row.body for row in batch.new] == [b"\x02"]
        assert batch.rebodied == []
        assert not m.rebodied


async def test_a_row_on_its_way_gets_the_new_body_in_the_next_batch() -> None:
    async with opened() as desk:
        desk.store.close_gate()
        m = desk.push("a")
        await until(lambda: desk.store.begun, "the batch")
        manage.update(desk.engine, m, b"\x02")
        manage.update(desk.engine, m, b"\x03")
        desk.add("updated")
        desk.store.open_gate()
        await landed(desk, 2)
        assert bodies(desk.store.batches) == [[], [b"\x03"]]
        assert desk.released == ["a", "updated"]
        assert not m.rebodied


async def test_the_body_of_a_leased_job_is_not_written_behind() -> None:
    async with opened() as desk:
        desk.push("a")
        await landed(desk, 1)
        m = desk.lease()
        manage.update(desk.engine, m, b"\x02")
        desk.add("updated")
        assert desk.committer.pending
        await landed(desk, 2)
        assert bodies(desk.store.batches)[-1] == [b"\x02"]


async def test_a_body_is_written_once() -> None:
    async with opened() as desk:
        m = desk.push("a")
        await landed(desk, 1)
        manage.update(desk.engine, m, b"\x02")
        desk.add()
        await landed(desk, 2)
        manage.change_delay(desk.engine, m, None, 5, NOW)
        desk.add()
        await landed(desk, 3)
        await turns()
        assert bodies(desk.store.batches) == [[], [b"\x02"], []]
