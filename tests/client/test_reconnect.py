"""Delays before attempts: 100 ms doubling to 30 s, each up to 30 % longer by chance."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tandemq.client.reconnect import Backoff


def test_delays_double_up_to_the_longest_with_some_chance() -> None:
    for _ in range(50):
        delays = Backoff(0.1, 30.0)
        for plain in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0):
            assert plain <= delays.next() <= plain * 1.3


@given(st.floats(0, 1e3), st.floats(0, 1e6), st.integers(0, 2_000))
def test_no_delay_is_ever_longer_than_the_longest_and_its_chance(
    first: float, longest: float, attempts: int
) -> None:
    delays = Backoff(first, longest)
    delays.attempts = attempts
    assert 0 <= delays.next() <= longest * 1.3


def test_a_success_begins_again() -> None:
    delays = Backoff(0.1, 30.0)
    for _ in range(8):
        delays.next()
    delays.reset()
    assert delays.next() <= 0.13


def test_many_clients_do_not_come_back_at_once() -> None:
    """P37: 500 clients while a server is away for 2 s: no 100 ms has a fifth of the attempts."""
    attempts: list[float] = []
    for _ in range(500):
        delays, now = Backoff(0.1, 30.0), 0.0
        while now < 2.0:
            now += delays.next()
            attempts.append(now)
    busiest = max(Counter(int(at * 10) for at in attempts).values())
    assert busiest <= 0.2 * len(attempts), busiest
