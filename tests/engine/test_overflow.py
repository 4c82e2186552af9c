"""Full queues: who goes, who is refused, who waits. Numbers are scenarios."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import hold, put
from tests.engine.office import BLOCK, BURY, NEWEST, PRIORITY, REDIRECT, A, B, C, Office

from tandemq.engine import clock, control, facts, manage, overflow, publish, recovery
from tandemq.engine.overflow import Blocked
from tandemq.model.errors import MustWait, QueueFull, TandemqError
from tandemq.model.outcome import Late


def office_of(**policy: Any) -> Office:
    office = Office()
    office.make(max_size=2, **policy)
    return office


def late(office: Office) -> list[tuple[int, str, Any]]:
    """What those who waited were told; every refusal is counted as an error."""
    told = [e for e in office.engine.take().effects if isinstance(e, Late)]
    refused = sum(isinstance(e.reply, TandemqError) for e in told)
    assert office.engine.counters.errors == refused
    return [(e.conn, e.req, e.reply) for e in told]


def block(office: Office, conn: int, id: str, wait: int = 8_000) -> None:
    """Let a publisher wait for room."""

    def accept(now: int) -> str:
        put(office.engine, id, body=b"1")
        return id

    b = Blocked("q", conn, id, accept, office.now + wait)
    assert overflow.enter(office.engine, b, office.now) is None


def test_the_oldest_goes() -> None:
    """S-110."""
    office = office_of()
    assert office.post("a", "b", "c") == ["ACCEPTED"] * 3
    assert office.waiting() == ["b", "c"]
    assert office.engine.counters.dropped == 1


def test_of_levels_the_lowest_loses_its_oldest() -> None:
    office = office_of(**PRIORITY)
    office.post("low", level=0)
    office.post("high", level=2)
    office.post("c1", level=3)
    assert office.waiting() == ["c1", "high"]


def test_the_newest_is_refused() -> None:
    """S-111."""
    office = office_of(**NEWEST)
    assert office.post("a", "b", "c") == ["ACCEPTED", "ACCEPTED", "FULL"]
    assert office.waiting() == ["a", "b"]


def test_the_new_one_becomes_a_dead_letter() -> None:
    office = office_of(**REDIRECT, **BURY)
    assert office.post("a", "b", "c") == ["ACCEPTED"] * 3
    assert office.waiting() == ["a", "b"]
    (dead,) = office.dead()
    assert dead.letter is not None
    assert dead.letter.headers is not None
    assert dead.letter.headers["x-death-reason"] == "QueueOverflow"


def test_without_a_place_for_dead_letters_it_is_refused() -> None:
    assert office_of(**REDIRECT).post("a", "b", "c")[-1] == "FULL"


def test_what_somebody_holds_does_not_count() -> None:
    """S-116."""
    office = office_of(**NEWEST)
    office.subscribe(A, window=5)
    assert office.post(*"abcde") == ["ACCEPTED"] * 5
    assert office.post("f", "g", "h") == ["ACCEPTED", "ACCEPTED", "FULL"]


def test_a_job_is_never_dropped_for_room() -> None:
    """Ruling 12."""
    office = office_of()
    put(office.engine, "job")
    assert office.post("a", "b") == ["ACCEPTED"] * 2
    assert office.waiting() == ["job", "b"]
    office = office_of()
    put(office.engine, "j1")
    put(office.engine, "j2")
    assert office.post("a") == ["FULL"]


def test_a_job_for_a_full_queue_is_refused() -> None:
    office = office_of()
    office.post("a", "b")
    with pytest.raises(QueueFull):
        put(office.engine, "job")
    with pytest.raises(QueueFull):
        put(office.engine, "")
    drafts = [publish.draft("q", "n", b"", office.now)]
    with pytest.raises(QueueFull):
        publish.publish_all(office.engine, "q", drafts, office.now)
    assert office.waiting() == ["a", "b"]


# -- publishers that wait --------------------------------------------------------------------------


def test_who_has_to_wait_is_told_and_let_in_in_order() -> None:
    """S-112."""
    office = office_of(**BLOCK)
    assert office.post("a", "b", "c") == ["ACCEPTED", "ACCEPTED", "BLOCKED"]
    block(office, A, "c")
    block(office, B, "d")
    assert "q" in office.engine.blocked
    assert late(office) == []
    office.subscribe(C, window=1)
    assert late(office) == [(A, "c", "c")]
    office.ack(C, "a")
    clock.tick(office.engine, office.now)
    assert late(office) == [(B, "d", "d")]
    assert "q" not in office.engine.blocked
    assert office.waiting() == ["c", "d"]


def test_whoever_comes_while_others_wait_waits_behind_them() -> None:
    office = office_of(**BLOCK)
    office.post("a", "b")
    block(office, A, "c")
    block(office, B, "d")
    overflow.drop_oldest(office.engine, office.engine.queues["q"], office.now)
    block(office, C, "e")
    clock.tick(office.engine, office.now)
    assert late(office) == [(A, "c", "c")]


def test_room_that_an_operator_makes_is_room_too() -> None:
    office = office_of(**BLOCK)
    office.post("a", "b")
    block(office, A, "c")
    overflow.drop_oldest(office.engine, office.engine.queues["q"], office.now)
    clock.tick(office.engine, office.now)
    assert late(office) == [(A, "c", "c")]


def test_who_has_waited_long_enough_is_refused() -> None:
    office = office_of(**BLOCK)
    office.post("a", "b")
    block(office, A, "c", wait=8_000)
    office.now += 7_999
    clock.tick(office.engine, office.now)
    assert late(office) == []
    office.now += 1
    clock.tick(office.engine, office.now)
    ((conn, req, refused),) = late(office)
    assert (conn, req, type(refused)) == (A, "c", QueueFull)
    assert "q" not in office.engine.blocked


def test_who_leaves_waits_no_more() -> None:
    """S-114."""
    office = office_of(**BLOCK)
    office.post("a", "b")
    block(office, A, "c")
    block(office, B, "d")
    office.leave(A)
    office.subscribe(C)
    clock.tick(office.engine, office.now)
    assert late(office) == [(B, "d", "d")]


def test_a_refusal_while_being_let_in_is_told() -> None:
    office = office_of(**BLOCK)
    office.post("a", "b")

    def refuse(now: int) -> str:
        raise QueueFull("q")

    block(office, C, "c")
    b = Blocked("q", A, "r", refuse, office.now + 1)
    assert overflow.enter(office.engine, b, office.now) is None
    office.subscribe(B)
    clock.tick(office.engine, office.now)
    (_, told) = late(office)
    assert isinstance(told[2], QueueFull)


def test_when_a_queue_goes_those_who_wait_are_refused() -> None:
    office = office_of(**BLOCK)
    office.post("a", "b")
    block(office, A, "c")
    overflow.refuse_all(office.engine, "q")
    overflow.refuse_all(office.engine, "other")
    assert [type(reply) for *_, reply in late(office)] == [QueueFull]


def test_waits_keep_their_span_when_the_clock_is_set() -> None:
    office = office_of(**BLOCK)
    office.post("a", "b")
    block(office, A, "c", wait=8_000)
    clock.shift_spans(office.engine, 60_000)
    office.now += 60_000
    clock.tick(office.engine, office.now)
    assert late(office) == []


# -- room that comes about, and who may have it ----------------------------------------------------


def test_room_that_a_worker_makes_is_room_too() -> None:
    office = office_of(**BLOCK)
    office.post("a", "b")
    block(office, A, "c")
    hold(office.engine, span=None)
    clock.tick(office.engine, office.now)
    assert late(office) == [(A, "c", "c")]


def test_a_delayed_job_that_is_cancelled_makes_room() -> None:
    office = office_of(**BLOCK)
    office.post("a")
    job = put(office.engine, "later", delay=60_000)
    block(office, A, "c")
    manage.cancel(office.engine, job, office.now)
    clock.tick(office.engine, office.now)
    assert late(office) == [(A, "c", "c")]


def test_nobody_overtakes_those_who_wait() -> None:
    office = office_of(**BLOCK)
    office.post("a", "b")
    block(office, A, "c")
    hold(office.engine, span=None)
    assert overflow.crowded(office.engine, office.engine.queues["q"])
    assert office.post("d") == ["BLOCKED"]
    with pytest.raises(MustWait):
        put(office.engine, "e")


def test_a_queue_that_has_no_bound_any_more_takes_all_who_wait() -> None:
    office = office_of(**BLOCK)
    office.post("a", "b")
    block(office, A, "c")
    block(office, B, "d")
    control.configure(office.engine, office.engine.queues["q"], broker=None)
    clock.tick(office.engine, office.now)
    assert late(office) == [(A, "c", "c"), (B, "d", "d")]


def test_a_queue_is_not_forgotten_while_somebody_waits_for_room_in_it() -> None:
    office = office_of(**BLOCK)
    office.post("a", "b")
    block(office, A, "c")
    facts.restore(office.engine, "queue/q", None, office.now)
    recovery.roll_back(office.engine, list(office.engine.messages.values()), [], office.now)
    clock.tick(office.engine, office.now)
    assert late(office) == [(A, "c", "c")]


def test_who_waits_for_several_queues_waits_for_the_one_that_is_full() -> None:
    office = office_of(**BLOCK)
    office.make("p", max_size=1, **BLOCK)
    office.post("a", "b")
    office.post("p1", queue="p")

    def accept(now: int) -> str:
        publish.check_space(office.engine, {"q": 1, "p": 1})
        return "both"

    b = Blocked("q", A, "r", accept, office.now + 8_000)
    assert overflow.enter(office.engine, b, office.now) is None
    hold(office.engine, span=None)
    clock.tick(office.engine, office.now)
    assert list(office.engine.blocked) == ["p"]
    hold(office.engine, queue="p", span=None)
    clock.tick(office.engine, office.now)
    assert late(office) == [(A, "r", "both")]
