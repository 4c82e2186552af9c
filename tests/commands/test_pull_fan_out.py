"""PULL and PULLB on a queue that gives every message to all its subscribers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.market import FANS, OTHER, SUBSCRIBER, WORKER, Market

# -- pulls on a fan-out ----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", FANS)
@pytest.mark.parametrize("cmd", ["PULL", "PULLB"])
def test_a_pull_on_a_fan_out_is_told_to_subscribe(
    market: Market, policy: dict[str, Any], cmd: str
) -> None:
    market.create(**policy)
    assert "subscribe" in market.refused(cmd, queue="q", timeout=1_000)


@pytest.mark.parametrize("policy", FANS)
@pytest.mark.parametrize("how", ["create", "publish"])
@pytest.mark.parametrize("cmd", ["PULL", "PULLB"])
def test_a_pull_that_waited_before_is_told_so_too(
    market: Market, policy: dict[str, Any], how: str, cmd: str
) -> None:
    more = {"count": 5} if cmd == "PULLB" else {}
    assert market.waits(cmd, conn=WORKER, queue="q", timeout=60_000, owner="w", **more)
    assert market.waits(cmd, conn=OTHER, queue="q", timeout=60_000, **more)
    if how == "create":
        market.create(**policy)
    else:
        market = on_default(market, policy)
    answers = list(market.told())
    assert [conn for conn, _ in answers] == [WORKER, OTHER]
    assert all("subscribe" in answer["error"] for _, answer in answers)
    market.later(60_000)
    assert list(market.told()) == []
    market.leave(WORKER)


def on_default(market: Market, policy: dict[str, Any]) -> Market:
    market.host.queue_policy = market.host.queue_policy.__class__(**policy)
    market.publish("m1")
    return market


@pytest.mark.parametrize("policy", FANS)
def test_a_fan_out_that_is_not_decided_yet_may_be_pulled_from(
    market: Market, policy: dict[str, Any]
) -> None:
    market.host.queue_policy = market.host.queue_policy.__class__(**policy)
    market.subscribe(SUBSCRIBER)
    assert market.waits("PULL", conn=WORKER, queue="q", timeout=60_000)
    a = market.push()
    b = market.push()
    market.look()
    assert [name for _, name, _ in market.deliveries] == [a]
    assert [answer["job"]["id"] for _, answer in market.answers] == [b]
