"""One timer serves the deadlines of all calls, and an answer costs it nothing."""

from __future__ import annotations

import asyncio

from tandemq.client.calls import Call, Deadlines


def call(loop: asyncio.AbstractEventLoop, id: str, patience: float) -> Call:
    return Call("Ping", id, b"", loop.create_future(), patience, loop.time())


async def test_calls_are_due_in_the_order_of_their_deadlines() -> None:
    loop = asyncio.get_running_loop()
    waiting = {
        id: call(loop, id, patience) for id, patience in (("c", 0.06), ("a", 0.02), ("b", 0.04))
    }
    due: list[str] = []

    def expire(calls: list[Call]) -> None:
        for each in calls:
            due.append(each.id)
            del waiting[each.id]

    deadlines = Deadlines(loop, waiting.values, expire)
    for each in waiting.values():
        deadlines.watch(each.deadline)
    while waiting:
        await asyncio.sleep(0.01)
    assert due == ["a", "b", "c"]


async def test_what_was_answered_is_never_due() -> None:
    loop = asyncio.get_running_loop()
    waiting = {"a": call(loop, "a", 0.01)}
    due: list[Call] = []
    deadlines = Deadlines(loop, waiting.values, due.extend)
    deadlines.watch(waiting["a"].deadline)
    waiting.clear()
    await asyncio.sleep(0.05)
    assert due == []
    waiting["b"] = call(loop, "b", 0.01)
    deadlines.watch(waiting["b"].deadline)
    deadlines.stop()
    await asyncio.sleep(0.05)
    assert due == []


async def test_a_failure_goes_to_who_still_waits() -> None:
    loop = asyncio.get_running_loop()
    left, waits = call(loop, "a", 1), call(loop, "b", 1)
    left.answer.cancel()
    left.fail(TimeoutError())
    waits.fail(TimeoutError())
    assert left.answer.cancelled()
    assert isinstance(waits.answer.exception(), TimeoutError)
