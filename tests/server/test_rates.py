"""Rates of growth, on a clock that the test moves."""

from __future__ import annotations

from tandemq.engine.counters import Counters
from tandemq.server.rates import COUNTED, WINDOW, Rates


def test_nothing_is_told_before_the_first_sample_is_old_enough() -> None:
    rates, counters = Rates(50.0), Counters()
    counters.pushed = 100
    assert rates.at(50.0 + WINDOW / 2, counters) == dict.fromkeys(COUNTED, 0.0)


def test_each_counter_has_a_rate_of_its_own() -> None:
    rates, counters = Rates(50.0), Counters()
    counters.pushed, counters.pulled, counters.completed, counters.failed = 100, 50, 20, 1
    told = {"pushed": 50.0, "pulled": 25.0, "completed": 10.0, "failed": 0.5}
    assert rates.at(52.0, counters) == told


def test_two_readers_do_not_disturb_each_other() -> None:
    often, rarely, counters = Rates(50.0), Rates(50.0), Counters()
    counters.pushed = 10
    assert often.at(51.0, counters)["pushed"] == 10.0
    assert often.at(52.0, counters)["pushed"] == 0.0
    assert rarely.at(52.0, counters)["pushed"] == 5.0
