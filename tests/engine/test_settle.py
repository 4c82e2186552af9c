"""The end of a lease: who may end it, and what each end does to the message."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, answers, hold, make_engine, put, ready, token_of, wait, where

from tandemq.engine import deadletters, groups, settle
from tandemq.engine.core import Engine
from tandemq.engine.settle import Claim
from tandemq.model.errors import NotLeased, TokenRequired, WrongToken
from tandemq.model.message import Message, State, Step
from tandemq.model.policy import ERROR_LENGTH, HISTORY, TOLD_LENGTH, TRIES
from tandemq.stores.rows import encode_head

DELAYED, READY, LEASED, DONE, DEAD, GONE = (
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
    State.GONE,
)


def leased(engine, id="m", span: int | None = 30_000, **options) -> tuple[Message, str | None]:
    m = put(engine, id, **options)
    assert hold(engine, span=span) is m
    return m, token_of(m)


# -- who may ---------------------------------------------------------------------------------------


def test_the_holder_of_the_token_may_settle() -> None:
    engine = make_engine()
    m, token = leased(engine)
    assert settle.claim(engine, "m", token) == (m, Claim.HELD)


@pytest.mark.parametrize("verb", [settle.claim, settle.ack, settle.fail])
@pytest.mark.parametrize(
    ("token", "refusal"),
    [(None, TokenRequired), ("", TokenRequired), ("wrong", WrongToken), ("id-2", WrongToken)],
)
def test_nobody_else_may(verb, token, refusal) -> None:
    engine = make_engine()
    m, _ = leased(engine)
    engine.take()
    with pytest.raises(refusal) as caught:
        verb(engine, "m", token, *([] if verb is settle.claim else [NOW]))
    assert caught.value.id == "m"
    assert m.state is LEASED
    assert engine.quiet


@pytest.mark.parametrize("token", [None, "", "made up"])
def test_a_lease_without_token_may_be_settled_by_anybody(token) -> None:
    engine = make_engine()
    m, _ = leased(engine, span=None)
    assert settle.claim(engine, "m", token) == (m, Claim.HELD)
    assert settle.ack(engine, "m", token, NOW)
    assert m.state is DONE


@pytest.mark.parametrize("verb", [settle.ack, settle.fail])
def test_what_nobody_holds_cannot_be_settled(verb) -> None:
    engine = make_engine()
    put(engine, "waiting")
    put(engine, "later", delay=5)
    _, token = leased(engine, "done", priority=1)
    settle.ack(engine, "done", token, NOW)
    _, dead = leased(engine, "dead", priority=1)
    settle.fail(engine, "dead", dead, NOW, unrecoverable=True)
    engine.take()
    for id in ("unknown", "waiting", "later", "done", "dead"):
        for said in (None, token, dead):
            with pytest.raises(NotLeased):
                verb(engine, id, said, NOW)
    assert engine.quiet


def test_the_token_of_an_earlier_lease_is_worth_nothing() -> None:
    engine = make_engine()
    m, first = leased(engine, backoff=0)
    settle.fail(engine, "m", first, NOW)
    hold(engine)
    with pytest.raises(WrongToken):
        settle.ack(engine, "m", first, NOW)
    assert settle.ack(engine, "m", token_of(m), NOW)


# -- ending well -----------------------------------------------------------------------------------


def test_a_completed_message_is_kept_with_its_result() -> None:
    engine = make_engine()
    m, token = leased(engine)
    assert settle.ack(engine, "m", token, NOW + 7, b"42")
    assert m.run is not None
    assert (m.state, m.lease, m.run.result) == (DONE, None, b"42")
    assert (m.run.started, m.run.finished) == (NOW, NOW + 7)
    assert engine.counters.completed == 1


@pytest.mark.parametrize(("option", "said"), [(True, False), (False, True), (True, True)])
def test_a_message_is_removed_on_completion_if_anybody_wished_so(option, said) -> None:
    engine = make_engine()
    m, token = leased(engine, remove_on_complete=option)
    assert settle.ack(engine, "m", token, NOW, remove=said)
    assert m.state is GONE
    assert engine.messages == engine.queues == engine.leased_by == {}
    assert engine.counters.completed == 1


# -- ending badly ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "uniform", "attempts", "delay"),
    [
        ("fixed", 0.0, 1, 800),
        ("fixed", 0.5, 1, 1_000),
        ("fixed", 0.999, 4, 1_199),
        ("exponential", 0.0, 1, 1_000),
        ("exponential", 0.5, 1, 2_000),
        ("exponential", 0.5, 3, 8_000),
        (None, 0.5, 2, 4_000),
        (None, 0.999, 1, 2_998),
    ],
)
def test_a_failed_message_comes_again_after_its_back_off(kind, uniform, attempts, delay) -> None:
    engine = make_engine(uniform)
    m = put(engine, "m", max_attempts=9, backoff=1_000, backoff_type=kind)
    m.attempts = attempts - 1
    hold(engine)
    assert settle.fail(engine, "m", token_of(m), NOW, error="oh")
    assert (m.state, m.attempts, m.due) == (DELAYED, attempts, NOW + delay)
    assert m.run is not None
    assert (m.run.error, m.run.started, m.lease) == ("oh", 0, None)
    assert engine.counters.retried == 1


def test_without_a_back_off_it_comes_again_at_once() -> None:
    engine = make_engine()
    m, token = leased(engine, backoff=0)
    wait(engine, "r")
    assert settle.fail(engine, "m", token, NOW + 5)
    assert m.due == NOW + 5
    assert answers(engine) == {"r": ["m"]}


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_the_budget_is_the_number_of_runs(budget: int) -> None:
    engine = make_engine()
    m = put(engine, "m", max_attempts=budget, backoff=0)
    for n in range(1, budget + 1):
        assert m.state is READY
        hold(engine)
        settle.fail(engine, "m", token_of(m), NOW + n, error=f"no {n}")
    assert m.run is not None
    assert (m.state, m.attempts, m.leases) == (DEAD, budget, budget)
    assert (m.run.cause, m.run.error) == ("max_attempts_exceeded", f"no {budget}")
    assert m.run.finished == NOW + budget
    assert engine.counters.failed == 1


def test_an_unrecoverable_failure_is_the_last() -> None:
    engine = make_engine()
    m, token = leased(engine, max_attempts=100)
    assert settle.fail(engine, "m", token, NOW, error="no", unrecoverable=True)
    assert m.run is not None
    assert (m.state, m.attempts, m.run.cause) == (DEAD, 1, "max_attempts_exceeded")


@pytest.mark.parametrize(("option", "said"), [(True, False), (False, True)])
def test_a_dead_letter_is_removed_if_anybody_wished_so(option, said) -> None:
    engine = make_engine()
    m, token = leased(engine, max_attempts=1, remove_on_fail=option)
    assert settle.fail(engine, "m", token, NOW, remove=said)
    assert m.state is GONE
    assert engine.messages == engine.queues == {}
    assert engine.counters.failed == 1


def test_a_wish_to_be_removed_waits_for_the_end() -> None:
    engine = make_engine()
    m, token = leased(engine, remove_on_fail=True)
    settle.fail(engine, "m", token, NOW, remove=True)
    assert m.state is DELAYED


def test_a_stack_is_kept_in_lines_up_to_its_limit() -> None:
    engine = make_engine()
    m, token = leased(engine, stack_trace_limit=2, backoff=0)
    settle.fail(engine, "m", token, NOW, stack=["  at a ", "", 5, "   ", "at b", "at c"])
    assert m.run is not None
    assert m.run.stack == ("at a", "at b")
    hold(engine)
    settle.fail(engine, "m", token_of(m), NOW, stack=["", None])
    assert m.run.stack is None


@pytest.mark.parametrize(("limit", "lines"), [(-1, 0), (0, 0), (99, 99), (1_000, 100)])
def test_no_stack_is_longer_than_a_hundred_lines(limit: int, lines: int) -> None:
    engine = make_engine()
    m, token = leased(engine, stack_trace_limit=limit)
    settle.fail(engine, "m", token, NOW, stack=[f"at {n}" for n in range(500)])
    assert m.run is not None
    assert len(m.run.stack or ()) == lines


def end_badly(engine: Engine, m: Message, way: str, error: str) -> None:
    """Let a message end an attempt with an error, and be there again."""
    hold(engine)
    if way == "retryAfter":
        groups.hold_back(engine, m.id, token_of(m), 0, NOW, error)
        return
    settle.fail(engine, m.id, token_of(m), NOW, error=error, unrecoverable=way == "unrecoverable")
    if m.state is DEAD:
        deadletters.retry(engine, m, NOW)


@pytest.mark.parametrize("way", ["failure", "unrecoverable", "retryAfter"])
@pytest.mark.parametrize("times", [1, 200])
def test_long_errors_never_make_a_message_large(way: str, times: int) -> None:
    engine = make_engine()
    m = put(engine, "m", backoff=0, max_attempts=100)
    for _ in range(times):
        end_badly(engine, m, way, "x" * 1_000_000)
    assert m.run is not None
    assert m.run.error == "x" * ERROR_LENGTH + " ... (cut)"
    assert len(encode_head(m)) < ERROR_LENGTH + (HISTORY + TRIES) * (TOLD_LENGTH + 100) + 1_000


def test_the_timeline_tells_of_every_run_that_ended_without_success() -> None:
    engine = make_engine()
    m, token = leased(engine, backoff=0, max_attempts=2)
    settle.fail(engine, "m", token, NOW + 5, error="oh")
    hold(engine, now=NOW + 6)
    assert m.run is not None
    first = [(step.state, step.at, step.error, step.attempt) for step in m.run.history]
    assert first == [(LEASED, NOW, None, 0), (DEAD, NOW + 5, "oh", 1), (READY, NOW + 5, None, 2)]
    settle.fail(engine, "m", token_of(m), NOW + 9, error="no")
    last = [(step.state, step.at, step.error, step.attempt) for step in m.run.history[3:]]
    assert last == [(LEASED, NOW + 6, None, 0), (DEAD, NOW + 9, "no", 2)]


def test_the_timeline_keeps_its_newest_steps() -> None:
    engine = make_engine()
    m = put(engine, "m", backoff=0, max_attempts=50)
    for n in range(20):
        hold(engine)
        settle.fail(engine, "m", token_of(m), NOW + n)
    assert m.run is not None
    assert len(m.run.history) == HISTORY
    assert isinstance(m.run.history[-1], Step)
    assert m.run.history[-1].attempt == 21


# -- holding on ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("span", "until"), [(None, 1_400), (5_000, 5_400), (1, 401)])
def test_a_lease_is_renewed_from_now_on(span, until) -> None:
    engine = make_engine()
    m, token = leased(engine, span=1_000)
    engine.take()
    assert settle.extend(engine, "m", token, NOW + 400, span)
    assert m.lease is not None
    assert m.run is not None
    assert (m.lease.until, m.lease.renewals) == (NOW + until, 1)
    assert (m.lease.token, m.lease.span, m.run.heartbeat) == (token, 1_000, NOW + 400)
    assert engine.take().changed == {m.seq: m}


def test_a_renewal_takes_whatever_token_there_is_if_none_is_named() -> None:
    engine = make_engine()
    leased(engine)
    assert settle.extend(engine, "m", None, NOW)


@pytest.mark.parametrize(("ms", "renewed"), [(999, True), (1_000, False), (1_500, False)])
def test_a_lease_that_has_run_out_is_not_renewed(ms: int, renewed: bool) -> None:
    engine = make_engine()
    m, token = leased(engine, span=1_000)
    assert settle.extend(engine, "m", token, NOW + ms) is renewed
    assert settle.ack(engine, "m", token, NOW + ms)  # but until it is taken back it may be settled
    assert m.state is DONE


@pytest.mark.parametrize("verb", [settle.extend, settle.heartbeat])
def test_there_may_be_nothing_to_renew(verb) -> None:
    engine = make_engine()
    put(engine, "waiting", delay=5)
    leased(engine, "plain", span=None)
    leased(engine, "owned")
    engine.take()
    assert not verb(engine, "unknown", "token", NOW)
    assert not verb(engine, "waiting", "token", NOW)
    assert not verb(engine, "plain", "token", NOW)
    assert not verb(engine, "owned", "wrong", NOW)
    assert not settle.extend(engine, "plain", None, NOW)
    assert engine.quiet


def test_a_heartbeat_with_a_token_renews_the_lease() -> None:
    engine = make_engine()
    m, token = leased(engine, span=1_000)
    assert settle.heartbeat(engine, "m", token, NOW + 10, 9_000)
    assert m.lease is not None
    assert (m.lease.until, m.lease.renewals) == (NOW + 9_010, 1)


def test_a_heartbeat_without_one_is_a_sign_of_life_only() -> None:
    engine = make_engine()
    m, _ = leased(engine, span=1_000)
    engine.take()
    assert settle.heartbeat(engine, "m", None, NOW + 10)
    assert m.lease is not None
    assert m.run is not None
    assert (m.lease.until, m.lease.renewals, m.run.heartbeat) == (NOW + 1_000, 0, NOW + 10)
    assert engine.take().changed == {m.seq: m}
    put(engine, "waiting")
    assert not settle.heartbeat(engine, "waiting", None, NOW)
    assert not settle.heartbeat(engine, "unknown", None, NOW)


def test_settling_lets_go_of_the_connection() -> None:
    engine = make_engine()
    _, token = leased(engine, "a")
    leased(engine, "b")
    assert len(engine.leased_by[1]) == 2
    settle.ack(engine, "a", token, NOW)
    assert [m.id for m in engine.leased_by[1].values()] == ["b"]
    settle.fail(engine, "b", "id-2", NOW)
    assert engine.leased_by == {}
    assert ready(engine) == []
    assert where(engine) == {"DELAYED": 1, "DONE": 1}
