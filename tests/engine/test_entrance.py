"""Publishers at the levels of memory: slowed down, held, refused. Numbers are scenarios."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.office import BLOCK, BURY, NEWEST, REDIRECT, A, B, Office

from tandemq.engine import clock, entrance, post
from tandemq.engine.overflow import Blocked
from tandemq.engine.pressure import Level
from tandemq.model.broker import Policy
from tandemq.model.errors import MemoryFull, QueueFull, TandemqError
from tandemq.model.message import Letter
from tandemq.model.outcome import Late

LIMIT = 100_000


@pytest.fixture
def office() -> Office:
    return Office(max_memory=LIMIT)


def fill(office: Office, used: int) -> None:
    """Let so many bytes be in use."""
    office.engine.pressure.grow(office.engine, used - office.engine.pressure.used)


def publish(office: Office, id: str, conn: int = A, queue: str = "q", wait: int = 8_000) -> Any:
    """Publish through the entrance; return the answer, None when it comes later."""

    def accept(now: int) -> str:
        q = post.opened(office.engine, queue, now, Policy())
        post.post(office.engine, q, Letter(id), b"1", 1, now)
        return id

    b = Blocked(queue, conn, f"r-{id}", accept, office.now + wait)
    try:
        return entrance.enter(office.engine, b, office.now)
    except TandemqError as refused:
        return type(refused)


def late(office: Office) -> list[Any]:
    """What those who waited were told; errors by their type."""
    told = [e for e in office.engine.take().effects if isinstance(e, Late)]
    return [(e.req, type(e.reply) if isinstance(e.reply, TandemqError) else e.reply) for e in told]


def pass_ms(office: Office, ms: int) -> list[Any]:
    office.now += ms
    clock.tick(office.engine, office.now)
    return late(office)


def test_below_eighty_per_cent_everybody_is_answered_at_once(office: Office) -> None:
    fill(office, 79_000)
    assert publish(office, "m1") == "m1"


def test_from_eighty_on_answers_are_late_but_the_message_is_in(office: Office) -> None:
    fill(office, 84_000)
    assert publish(office, "m1") is None
    assert office.waiting() == ["m1"]
    assert pass_ms(office, 200) == []
    assert pass_ms(office, 300) == [("r-m1", "m1")]


def test_from_ninety_on_publishers_wait_and_are_let_in_in_order(office: Office) -> None:
    """S-121, S-122."""
    fill(office, 90_000)
    assert [publish(office, id, conn) for id, conn in (("a", A), ("b", B), ("c", A))] == [None] * 3
    assert office.waiting() == []
    fill(office, 86_000)
    assert pass_ms(office, 1) == []
    fill(office, 60_000)
    assert pass_ms(office, 1) == [("r-a", "a"), ("r-b", "b"), ("r-c", "c")]
    assert office.waiting() == ["a", "b", "c"]


def test_who_has_waited_eight_seconds_is_refused(office: Office) -> None:
    fill(office, 91_000)
    publish(office, "m1")
    assert pass_ms(office, 7_999) == []
    assert pass_ms(office, 1) == [("r-m1", MemoryFull)]
    assert office.engine.counters.errors == 1
    fill(office, 0)
    assert pass_ms(office, 1) == []


def test_who_leaves_waits_no_more(office: Office) -> None:
    fill(office, 91_000)
    publish(office, "a", A)
    publish(office, "b", B)
    office.leave(A)
    fill(office, 0)
    assert pass_ms(office, 1) == [("r-b", "b")]


def test_at_ninety_five_the_oldest_of_its_queue_goes_for_each_new_one(office: Office) -> None:
    """S-123."""
    office.post("old1", "old2")
    fill(office, 95_000)
    assert publish(office, "new") == "new"
    assert office.waiting() == ["old2", "new"]


@pytest.mark.parametrize("policy", [NEWEST, {**REDIRECT, **BURY}])
def test_at_ninety_five_the_new_one_is_refused(office: Office, policy: dict[str, Any]) -> None:
    """S-124, S-125."""
    office.make(**policy)
    fill(office, 95_000)
    assert publish(office, "new") is QueueFull


def test_at_ninety_five_publishers_that_block_go_on_waiting(office: Office) -> None:
    office.make(**BLOCK)
    fill(office, 95_000)
    assert publish(office, "new") is None
    fill(office, 10_000)
    assert pass_ms(office, 1) == [("r-new", "new")]


def test_at_ninety_five_a_job_queue_takes_nothing_new(office: Office) -> None:
    fill(office, 95_000)
    engine = office.engine
    engine.queue("jobs")
    q = engine.queue("jobs")
    with pytest.raises(MemoryFull):
        post.post(engine, q, Letter("m"), b"1", 1, office.now)


def test_those_who_wait_meet_the_rule_of_their_queue_when_memory_is_full(office: Office) -> None:
    office.make("newest", **NEWEST)
    office.post("old", queue="q")
    fill(office, 92_000)
    publish(office, "a", queue="newest")
    publish(office, "b", queue="q")
    fill(office, 96_000)
    assert pass_ms(office, 1) == [("r-a", QueueFull), ("r-b", "b")]
    assert office.waiting("q") == ["b"]


def test_the_clock_may_be_set_while_somebody_waits(office: Office) -> None:
    fill(office, 91_000)
    publish(office, "m1")
    clock.shift_spans(office.engine, 60_000)
    assert pass_ms(office, 60_000) == []
    assert pass_ms(office, 8_000) == [("r-m1", MemoryFull)]


def test_levels_are_named_by_their_per_cent() -> None:
    assert [int(level) for level in Level] == [0, 80, 90, 95]


def test_who_comes_when_memory_is_free_again_waits_behind_those_who_waited(
    office: Office,
) -> None:
    fill(office, 91_000)
    publish(office, "a")
    fill(office, 10_000)
    assert office.engine.pressure.level is Level.HELD, "until they are in"
    assert publish(office, "b") is None
    assert pass_ms(office, 0) == [("r-a", "a"), ("r-b", "b")]
    assert office.waiting() == ["a", "b"]
    assert office.engine.pressure.level is Level.CALM
    assert publish(office, "c") == "c"


def test_a_level_that_rises_is_there_at_once_whoever_waits(office: Office) -> None:
    fill(office, 91_000)
    publish(office, "a")
    fill(office, 96_000)
    assert office.engine.pressure.level is Level.FULL


def test_what_a_connection_waits_to_publish_is_counted(office: Office) -> None:
    def wait(conn: int, size_bytes: int, queue: str = "q") -> None:
        def refuse(now: int) -> str:
            raise QueueFull(queue)

        b = Blocked(queue, conn, "r", refuse, office.now + 8_000, size_bytes)
        assert entrance.enter(office.engine, b, office.now) is None

    fill(office, 91_000)
    wait(A, 10)
    wait(A, 20)
    wait(B, 5)
    assert office.engine.held_bytes == {A: 30, B: 5}
    office.leave(B)
    assert office.engine.held_bytes == {A: 30}
    fill(office, 0)
    pass_ms(office, 1)
    assert office.engine.held_bytes == {}
    fill(office, 91_000)
    wait(A, 10)
    pass_ms(office, 8_000)
    assert office.engine.held_bytes == {}
