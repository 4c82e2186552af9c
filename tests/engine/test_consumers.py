"""Consumers in turn: pulls first come first served, subscriptions round robin, in one ring."""

from __future__ import annotations

from tandemq.engine.consumers import Consumer, Ring, Subscription
from tandemq.engine.lane import Terms


def test_pulls_are_served_in_order_of_arrival_and_subscriptions_in_turn() -> None:
    ring = Ring()
    roomy, narrow = Subscription(1, "q", prefetch=9), Subscription(2, "q", prefetch=1)
    pull = Consumer(3, "q", prefetch=1, req="r")
    for c in (roomy, narrow, pull):
        ring.add(c)
    order = []
    for _ in range(5):
        c = ring.first()
        assert c is not None
        order.append(c.conn)
        if isinstance(c, Subscription):
            c.held += 1
        ring.served(c)
        if c is pull:
            ring.drop(c)
    assert order == [1, 2, 3, 1, 1]  # narrow is full after one, the pull is over after one
    assert list(ring) == [roomy]  # narrow is out until it is willing again


def test_a_ring_in_which_nobody_is_willing_serves_nobody() -> None:
    ring = Ring()
    assert ring.first() is None
    full, stalled = Subscription(1, "q", 0), Subscription(2, "q", 5, stalled=True)
    ring.add(full)
    ring.add(stalled)
    assert ring.first() is None
    assert len(ring) == 2
    stalled.stalled = False
    assert ring.first() is stalled


def test_a_subscription_is_willing_while_it_holds_less_than_its_prefetch() -> None:
    c = Subscription(1, "q", prefetch=2)
    c.held = 1
    assert c.willing
    c.held = 2
    assert not c.willing
    c.held = 1
    assert c.willing


def test_whoever_left_is_not_willing_and_leaves_its_timers_behind() -> None:
    ring, c = Ring(), Consumer(1, "q", prefetch=1, req="r")
    ring.add(c)
    ring.drop(c)
    assert (len(ring), c.willing, c.closed, c.gen) == (0, False, True, 1)
    ring.drop(c)  # a second time does no harm
    assert len(ring) == 0


def test_two_pulls_that_ask_for_the_same_are_two() -> None:
    ring = Ring()
    one, other = Consumer(1, "q", 1, "r"), Consumer(1, "q", 1, "r")
    ring.add(one)
    ring.add(other)
    ring.drop(one)
    assert list(ring) == [other]


def test_a_ring_knows_what_its_consumers_ask_of_groups() -> None:
    ring, plain = Ring(), Consumer(1, "q", 1, "r")
    assert ring.terms == []
    terms = Terms(concurrency=1)
    for c in (plain, Consumer(1, "q", 1, "s", terms=terms), Consumer(1, "q", 1, "t", terms=terms)):
        ring.add(c)
    assert ring.terms == [terms, None]
    ring.drop(plain)
    assert ring.terms == [terms]
