"""Completed messages: the newest are kept, within bounds, and nothing else holds memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.making import NOW, hold, make_engine, pass_time, put, token_of

from tandemq.engine import clock, recovery, settle
from tandemq.engine.core import Engine
from tandemq.engine.finished import Rules
from tandemq.model.message import State


def finish(engine: Engine, id: str, result: bytes | None = b"r", now: int = NOW, size: int = 1):
    m = put(engine, id, body=b"x" * size, now=now)
    settle.ack(engine, id, token_of(hold(engine, now=now)), now, result)
    engine.take()
    return m


def kept(engine: Engine) -> list[str]:
    return [m.id for m in engine.messages.values() if m.state is State.DONE]


def results(engine: Engine) -> list[str]:
    return [m.id for m in engine.messages.values() if m.run and m.run.result is not None]


def test_the_newest_are_kept_and_the_newest_of_them_with_their_result() -> None:
    engine = make_engine(keep_done=4, keep_results=2)
    for id in "abcdef":
        finish(engine, id)
    assert (kept(engine), results(engine)) == (["c", "d", "e", "f"], ["e", "f"])
    assert engine.finished.count == 4


def test_bounds_hold_after_every_turn_not_after_every_message() -> None:
    engine = make_engine(keep_done=1)
    for id in "abc":
        put(engine, id)
        settle.ack(engine, id, token_of(hold(engine)), NOW)
    assert kept(engine) == ["a", "b", "c"]
    outcome = engine.take()
    assert kept(engine) == ["c"]
    assert [m.state.name for m in outcome.changed.values()] == ["GONE", "GONE", "DONE"]


def test_they_hold_at_most_so_many_bytes_of_bodies_and_results() -> None:
    engine = make_engine(keep_done_bytes=100)
    for id in "abcd":
        finish(engine, id, b"r" * 10, size=20)
    assert (kept(engine), engine.finished.size_bytes) == (["b", "c", "d"], 90)
    finish(engine, "huge", None, size=101)
    assert (kept(engine), engine.finished.size_bytes) == ([], 0)


def test_a_dropped_result_no_longer_counts() -> None:
    engine = make_engine(keep_results=1)
    finish(engine, "a", b"r" * 10)
    assert engine.finished.size_bytes == 11
    finish(engine, "b", b"")
    assert engine.finished.size_bytes == 2
    assert results(engine) == ["b"]


def test_no_bound_is_met_by_dropping_what_has_no_result() -> None:
    engine = make_engine(keep_results=1)
    finish(engine, "a")
    finish(engine, "b", None)
    finish(engine, "c", None)
    assert results(engine) == ["a"]


@given(
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(0, 40), st.integers(-1, 40))),
    st.integers(0, 3),
    st.integers(0, 5),
)
def test_count_and_size_are_those_of_what_is_kept(finishes, keep_results, keep_done) -> None:
    engine = make_engine(keep_results=keep_results, keep_done=keep_done, keep_done_bytes=90)
    for id, size, result in finishes:
        finish(engine, id, None if result < 0 else b"r" * result, size=size)
    done = [m for m in engine.messages.values() if m.state is State.DONE]
    assert engine.finished.count == len(done) <= keep_done
    with_result = [m.run.result for m in done if m.run and m.run.result is not None]
    assert len(with_result) <= keep_results
    assert engine.finished.size_bytes == sum(len(m.body) for m in done) + sum(map(len, with_result))
    assert engine.finished.size_bytes <= 90


def test_an_id_that_is_used_again_and_again_fills_no_memory() -> None:
    engine = make_engine()
    finished = engine.finished
    for _ in range(500):
        finish(engine, "again")
    assert (finished.count, len(finished._all), len(finished._with_result)) == (1, 1, 1)


# -- by age ----------------------------------------------------------------------------------------


def test_with_a_retention_they_go_when_they_are_old_enough() -> None:
    engine = make_engine(retention=5_000)
    finish(engine, "a", now=NOW)
    finish(engine, "b", now=NOW + 700)
    pass_time(engine, NOW + 4_999)
    assert kept(engine) == ["a", "b"]
    pass_time(engine, NOW + 5_000)
    assert kept(engine) == ["b"]
    pass_time(engine, NOW + 5_699)
    assert kept(engine) == ["b"]
    pass_time(engine, NOW + 5_700)
    assert kept(engine) == []
    assert engine.queues == {}


def test_the_sweep_sleeps_while_there_is_nothing_to_sweep() -> None:
    engine = make_engine(retention=5_000)
    finish(engine, "a")
    pass_time(engine, NOW + 50_000)
    assert clock.next_wake(engine) is None
    finish(engine, "b", now=NOW + 60_000)
    assert clock.next_wake(engine) is not None
    pass_time(engine, NOW + 65_000)
    assert kept(engine) == []


def test_without_a_retention_age_does_not_matter() -> None:
    engine = make_engine()
    finish(engine, "a")
    pass_time(engine, NOW + 10**12)
    assert kept(engine) == ["a"]


def test_what_was_there_at_start_goes_by_age_too() -> None:
    engine, again = make_engine(), make_engine(retention=5_000)
    # The first to be published was the last to end.
    late, early = put(engine, "late"), put(engine, "early")
    tokens = {m.id: token_of(m) for m in (hold(engine), hold(engine))}
    settle.ack(engine, "early", tokens["early"], NOW + 10)
    settle.ack(engine, "late", tokens["late"], NOW + 900)
    for m in (late, early):
        again.admit(m)
    recovery.resume(again, NOW + 1_000)
    again.take()
    pass_time(again, NOW + 5_010)
    assert kept(again) == ["late"]
    pass_time(again, NOW + 5_900)
    assert kept(again) == []


def test_after_a_start_the_oldest_go_first_whatever_their_place_in_the_store() -> None:
    engine, again = make_engine(), make_engine(keep_done=1, keep_results=1)
    late, early = put(engine, "late"), put(engine, "early")
    tokens = {m.id: token_of(m) for m in (hold(engine), hold(engine))}
    settle.ack(engine, "early", tokens["early"], NOW + 10, b"r")
    settle.ack(engine, "late", tokens["late"], NOW + 900, b"r")
    for m in (late, early):
        again.admit(m)
    recovery.resume(again, NOW + 1_000)
    again.take()
    assert (kept(again), results(again)) == (["late"], ["late"])


@pytest.mark.parametrize(("rule", "progress"), [(None, 40), (100.0, 100.0)])
def test_a_completed_message_reports_the_progress_that_the_rules_say(rule, progress) -> None:
    engine = make_engine(done_progress=rule)
    m = put(engine)
    hold(engine)
    assert m.run is not None
    m.run.progress = 40
    settle.ack(engine, m.id, token_of(m), NOW)
    assert m.run.progress == progress


def test_the_bounds_are_generous_by_default() -> None:
    rules = Rules()
    assert (rules.keep_results, rules.keep_done) == (50_000, 100_000)
    assert rules.keep_done_bytes == 256 * 1024 * 1024
    assert rules.retention == 0
