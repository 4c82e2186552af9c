"""The end of a message: whoever waits for its place is served at once."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, answers, hold, make_engine, put, token_of, wait

from tandemq.engine import settle
from tandemq.engine.endings import ended


@pytest.mark.parametrize("well", [True, False])
def test_an_end_lets_those_in_who_wait(well: bool) -> None:
    engine = make_engine()
    m = put(engine, "a")
    hold(engine)
    wait(engine, "r")
    engine.granting = False  # as if the place of the first were needed for the second
    put(engine, "b")
    engine.granting = True
    if well:
        settle.ack(engine, "a", token_of(m), NOW)
    else:
        settle.fail(engine, "a", token_of(m), NOW, unrecoverable=True)
    assert answers(engine) == {"r": ["b"]}


def test_the_end_of_the_last_message_of_a_queue_concerns_nobody() -> None:
    engine = make_engine()
    m = put(engine, "a")
    settle.ack(engine, "a", token_of(hold(engine)), NOW, remove=True)
    assert engine.queues == {}
    ended(engine, m, NOW, well=True)
    assert engine.queues == {}
