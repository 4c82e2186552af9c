"""What the clock does to a lease, in exact words, and what its holder may still say afterwards."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, answers, hold, make_engine, pass_time, put, token_of, wait

from tandemq.engine import clock, control, settle
from tandemq.engine.core import Engine
from tandemq.engine.settle import Claim
from tandemq.model.errors import NotLeased, TokenRequired, WrongToken
from tandemq.model.message import Message, State
from tandemq.model.policy import Stall

DELAYED, READY, LEASED, DONE, DEAD, GONE = (
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
    State.GONE,
)


def ended(m: Message) -> tuple[State, str | None, str | None]:
    assert m.run is not None
    return m.state, m.run.error, m.run.cause


def expire(engine: Engine, m: Message, renewals: int = 0, now: int = NOW) -> int:
    """Take a message under a lease of a second, renew it, and let it run out."""
    hold(engine, span=1_000, now=now)
    for _ in range(renewals):
        now += 500
        assert settle.extend(engine, m.id, token_of(m), now)
    pass_time(engine, now + 1_799)
    assert m.state is LEASED
    pass_time(engine, now + 1_800)
    return now + 1_800


# -- a lease that ran out --------------------------------------------------------------------------


def test_a_lease_that_ran_out_costs_an_attempt_and_a_stall_and_no_back_off() -> None:
    engine = make_engine()
    first, m = put(engine, "first", backoff=60_000), put(engine, "m")
    now = expire(engine, first)
    assert first.run is not None
    assert (first.state, first.attempts, first.run.stalls) == (READY, 1, 1)
    assert (first.due, first.run.started, first.run.error) == (NOW, 0, None)
    assert (engine.counters.stalled, engine.counters.retried) == (1, 0)
    assert hold(engine, now=now) is first  # in its old place
    assert m.state is READY


def test_whoever_waits_gets_it_at_once() -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine, span=1_000)
    wait(engine, "r")
    pass_time(engine, NOW + 1_800)
    assert answers(engine) == {"r": ["m"]}
    assert m.leases == 2


@pytest.mark.parametrize("budget", [1, 2])
def test_out_of_attempts_it_is_a_dead_letter(budget: int) -> None:
    engine = make_engine()
    m, now = put(engine, "m", max_attempts=budget), NOW
    for _ in range(budget):
        now = expire(engine, m, now=now)
    text = f"Lock expired at max attempts ({budget})"
    assert ended(m) == (DEAD, text, "max_attempts_exceeded")
    assert m.run is not None
    assert m.run.finished == now


@pytest.mark.parametrize("renewals", [0, 2])
def test_too_many_stalls_make_it_a_dead_letter_that_tells_of_its_renewals(renewals: int) -> None:
    engine = make_engine()
    m, now = put(engine, "m", max_attempts=9), NOW
    for n in range(3):
        now = expire(engine, m, renewals if n == 2 else 0, now)
    assert ended(m) == (DEAD, f"Lock expired after {renewals} renewals", "stalled")


def test_without_a_limit_of_stalls_only_attempts_count() -> None:
    engine = make_engine()
    m, now = put(engine, "m", max_attempts=6), NOW
    control.configure(engine, engine.queues["q"], stall=Stall(max_stalls=0))
    for _ in range(5):
        now = expire(engine, m, now=now)
    assert m.state is READY
    expire(engine, m, now=now)
    assert ended(m)[1] == "Lock expired at max attempts (6)"


def test_the_holder_of_a_lease_that_ran_out_comes_too_late() -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine, span=1_000)
    token = token_of(m)
    pass_time(engine, NOW + 1_800)
    for verb in (settle.ack, settle.fail):
        with pytest.raises(NotLeased):
            verb(engine, "m", token, NOW + 1_800)
    assert not settle.extend(engine, "m", token, NOW + 1_800)
    hold(engine)
    with pytest.raises(WrongToken):
        settle.ack(engine, "m", token, NOW + 1_900)


@pytest.mark.parametrize("removed", [True, False])
def test_the_dead_letter_of_the_clock_is_removed_if_its_publisher_wished_so(removed) -> None:
    engine = make_engine()
    m = put(engine, "m", max_attempts=1, remove_on_fail=removed)
    expire(engine, m)
    assert m.state is (GONE if removed else DEAD)
    assert engine.counters.failed == 1


# -- silence ---------------------------------------------------------------------------------------


def stall(engine: Engine, m: Message, now: int, span: int | None = None) -> int:
    """Take a message and be silent for as long as it takes: an interval and a sweep."""
    hold(engine, span=span, now=now)
    pass_time(engine, now + 34_999)
    assert m.state is LEASED
    pass_time(engine, now + 35_000)
    return now + 35_000


@pytest.mark.parametrize("span", [None, 3_600_000])
def test_a_silent_worker_costs_an_attempt_and_a_stall_and_a_back_off(span) -> None:
    engine = make_engine()
    m = put(engine, "m", backoff=1_000)
    now = stall(engine, m, NOW, span)
    assert m.run is not None
    assert (m.state, m.attempts, m.run.stalls) == (DELAYED, 1, 1)
    assert (m.due, m.run.error) == (now + 2_000, None)
    assert (engine.counters.stalled, engine.counters.retried) == (1, 1)


def test_a_heartbeat_is_enough() -> None:
    engine = make_engine()
    m = put(engine, "m")
    hold(engine, span=None)
    for n in range(1, 10):
        pass_time(engine, NOW + n * 20_000)
        assert settle.heartbeat(engine, "m", None, NOW + n * 20_000)
    assert m.state is LEASED
    pass_time(engine, NOW + 180_000 + 34_999)
    assert m.state is LEASED
    pass_time(engine, NOW + 180_000 + 35_000)
    assert m.state is DELAYED


@pytest.mark.parametrize(("own", "ms"), [(0, 10_000), (2_500, 10_000), (8_000.9, 13_000)])
def test_a_message_may_have_an_interval_of_its_own(own, ms) -> None:
    engine = make_engine()
    m = put(engine, "m", stall_timeout=own)
    hold(engine, span=None)
    pass_time(engine, NOW + ms - 1)
    assert m.state is LEASED
    pass_time(engine, NOW + ms)
    assert m.state is DELAYED


def test_where_stalls_are_switched_off_silence_means_nothing() -> None:
    engine = make_engine()
    control.configure(engine, engine.queue("q"), stall=Stall(enabled=False))
    m = put(engine, "m")
    hold(engine, span=None)
    pass_time(engine, NOW + 10**9)
    assert m.state is LEASED
    assert clock.next_wake(engine) is None


def test_out_of_attempts_a_stalled_message_is_a_dead_letter() -> None:
    engine = make_engine()
    m = put(engine, "m", max_attempts=1)
    stall(engine, m, NOW)
    assert ended(m) == (DEAD, "Job stalled at max attempts (1)", "max_attempts_exceeded")


def test_too_many_stalls_are_a_dead_letter_that_counts_them() -> None:
    engine = make_engine()
    m, now = put(engine, "m", max_attempts=9, backoff=0), NOW
    for _ in range(3):
        now = stall(engine, m, now)
    assert ended(m) == (DEAD, "Job stalled 3 times", "stalled")


# -- a run that lasts too long ---------------------------------------------------------------------


def test_a_run_that_lasts_too_long_is_a_failure() -> None:
    engine = make_engine()
    m = put(engine, "m", timeout=700.9, backoff=1_000)
    hold(engine)
    pass_time(engine, NOW + 699)
    assert m.state is LEASED
    pass_time(engine, NOW + 700)
    assert m.run is not None
    assert (m.state, m.attempts, m.run.stalls) == (DELAYED, 1, 0)
    assert (m.run.error, m.due) == ("Job timeout exceeded", NOW + 2_700)
    assert (engine.counters.stalled, engine.counters.retried) == (0, 1)


def test_out_of_attempts_it_is_a_dead_letter_of_its_own_cause() -> None:
    engine = make_engine()
    m = put(engine, "m", timeout=700, max_attempts=1)
    hold(engine)
    pass_time(engine, NOW + 700)
    assert ended(m) == (DEAD, "Job timeout exceeded", "timeout")


def test_neither_heartbeat_nor_renewal_lengthens_a_run() -> None:
    engine = make_engine()
    m = put(engine, "m", timeout=2_000)
    hold(engine, span=1_000)
    assert settle.extend(engine, "m", token_of(m), NOW + 900, 60_000)
    assert settle.heartbeat(engine, "m", None, NOW + 1_900)
    pass_time(engine, NOW + 2_000)
    assert m.state is DELAYED


def test_a_time_limit_of_nothing_is_none() -> None:
    engine = make_engine()
    m = put(engine, "m", timeout=0)
    hold(engine, span=None)
    pass_time(engine, NOW + 34_999)
    assert m.state is LEASED


def test_a_clock_that_comes_late_sees_the_time_limit_first_then_the_lease() -> None:
    engine = make_engine()
    both, lease = put(engine, "both", timeout=900), put(engine, "lease")
    for _ in range(2):
        hold(engine, span=1_000)
    clock.tick(engine, NOW + 10**9)
    assert ended(both)[1] == "Job timeout exceeded"
    assert (lease.state, lease.due) == (READY, NOW)


# -- late edges (ruling 18) ------------------------------------------------------------------------


def taken_back(engine: Engine, how: str, span: int | None, **options) -> tuple[Message, str | None]:
    """A message that a stall or its time limit has taken back."""
    m = put(engine, "m", timeout=700 if how == "timeout" else None, **options)
    hold(engine, span=span)
    token = token_of(m)
    pass_time(engine, NOW + (700 if how == "timeout" else 35_000))
    return m, token


HOWS = pytest.mark.parametrize("how", ["stall", "timeout"])
TOKENS = pytest.mark.parametrize("span", [None, 3_600_000], ids=["without token", "with token"])
BACKS = pytest.mark.parametrize("backoff", [0, 60_000], ids=["ready", "delayed"])


@HOWS
@TOKENS
@BACKS
def test_a_late_ack_completes_what_was_taken_back(how, span, backoff) -> None:
    engine = make_engine()
    m, token = taken_back(engine, how, span, backoff=backoff)
    assert m.state is (DELAYED if backoff else READY)
    assert settle.claim(engine, "m", token) == (m, Claim.LATE)
    assert settle.ack(engine, "m", token, NOW + 40_000, b"late")
    assert m.run is not None
    assert (m.state, m.run.result, m.run.finished) == (DONE, b"late", NOW + 40_000)
    assert m.run.started == NOW + 40_000  # it no longer runs, so nobody knows since when
    with pytest.raises(NotLeased):
        settle.ack(engine, "m", token, NOW + 40_000)


@HOWS
@BACKS
def test_a_late_ack_may_remove(how, backoff) -> None:
    engine = make_engine()
    m, token = taken_back(engine, how, 3_600_000, backoff=backoff)
    assert settle.ack(engine, "m", token, NOW + 40_000, remove=True)
    assert m.state is GONE
    assert engine.queues == {}


@HOWS
@TOKENS
@BACKS
def test_a_late_failure_changes_nothing(how, span, backoff) -> None:
    engine = make_engine()
    m, token = taken_back(engine, how, span, backoff=backoff)
    engine.take()
    assert settle.fail(engine, "m", token, NOW + 40_000, unrecoverable=True) is False
    assert (m.state, m.attempts) == (DELAYED if backoff else READY, 1)
    assert engine.quiet


@HOWS
@TOKENS
def test_after_the_last_attempt_a_late_word_changes_nothing(how, span) -> None:
    engine = make_engine()
    m, token = taken_back(engine, how, span, max_attempts=1)
    engine.take()
    assert settle.claim(engine, "m", token) == (m, Claim.OVER)
    assert settle.ack(engine, "m", token, NOW + 40_000) is False
    assert settle.fail(engine, "m", token, NOW + 40_000) is False
    assert m.state is DEAD
    assert engine.quiet


@HOWS
@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_a_late_word_needs_the_token_that_the_lease_had(how, token) -> None:
    engine = make_engine()
    m, _ = taken_back(engine, how, 3_600_000)
    with pytest.raises(NotLeased):
        settle.ack(engine, "m", token, NOW + 40_000)
    assert m.state is DELAYED


@HOWS
@pytest.mark.parametrize("token", [None, "", "any"])
def test_where_the_lease_had_none_any_late_word_will_do(how, token) -> None:
    engine = make_engine()
    m, _ = taken_back(engine, how, None)
    assert settle.ack(engine, "m", token, NOW + 40_000)
    assert m.state is DONE


@HOWS
def test_who_holds_it_next_is_not_disturbed_by_the_one_before(how) -> None:
    engine = make_engine()
    m, token = taken_back(engine, how, 3_600_000, backoff=0)
    hold(engine, now=NOW + 36_000)
    with pytest.raises(WrongToken):
        settle.ack(engine, "m", token, NOW + 36_000)
    with pytest.raises(TokenRequired):
        settle.ack(engine, "m", None, NOW + 36_000)
    assert settle.fail(engine, "m", token_of(m), NOW + 36_000)
    with pytest.raises(NotLeased):  # and a failure retires nothing
        settle.ack(engine, "m", token, NOW + 36_000)


def test_a_job_may_set_its_own_limit_of_stalls() -> None:
    engine = make_engine()
    m, now = put(engine, "m", max_attempts=9, max_stalls=1), NOW
    expire(engine, m, now=now)
    assert ended(m)[2] == "stalled"
    patient = put(engine, "p", max_attempts=6, max_stalls=0)
    for _ in range(5):
        now = expire(engine, patient, now=now)
    assert patient.state is READY
