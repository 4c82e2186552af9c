"""A store that fails, and works again: what is said once, and what is tried."""

from __future__ import annotations

import logging

import pytest
from tests.server.offline import until

from tandemq.server import outage
from tandemq.server.outage import Outage
from tandemq.stores.base import StoreFailed

FULL, LOCKED = StoreFailed("disk full"), StoreFailed("locked")


async def test_it_tells_the_newest_reason_and_the_first_moment(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "tandemq.server")
    it = Outage(lambda: None)
    assert not it
    assert it.status() == {"diskFull": False, "error": None, "since": None}
    it.ended()
    it.began(FULL, 1_000)
    it.began(LOCKED, 2_000)
    assert it
    assert it.status() == {"diskFull": True, "error": "locked", "since": 1_000.0}
    it.ended()
    it.ended()
    assert not it
    it.began(FULL, 3_000)
    assert it.status()["since"] == 3_000.0
    it.cancel()
    assert caplog.messages == [
        "the store cannot be written: disk full",
        "the store can be written again",
        "the store cannot be written: disk full",
    ]


async def test_it_tries_again_and_again_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "PROBE", 0.0)
    tries: list[bool] = []

    def fail() -> None:
        tries.append(True)
        if len(tries) < 3:
            it.began(FULL, 0)
        else:
            it.ended()

    it = Outage(fail)
    it.began(FULL, 0)
    await until(lambda: not it, "the end")
    assert len(tries) == 3


async def test_it_does_not_try_once_it_is_over_or_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outage, "PROBE", 0.0)
    tries: list[Outage] = []
    over, cancelled, running = (Outage(lambda: tries.append(running)) for _ in range(3))
    for it in (over, cancelled, running):
        it.began(FULL, 0)
    over.ended()
    cancelled.cancel()
    await until(lambda: tries, "the try of the one that goes on")
    assert tries == [running]
