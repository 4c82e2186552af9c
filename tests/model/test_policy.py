"""Pure decisions about one message: how long, until when, and what comes first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.model.message import Lease, Message, Options, Run, State
from tandemq.model.policy import (
    BACKOFF_CAP,
    ERROR_LENGTH,
    INTERRUPTIONS,
    LEASE_GRACE,
    NO_STALL,
    STALL_SWEEP,
    Stall,
    backoff,
    cut,
    deadline,
    expires,
    lease_ends_at,
    lease_of,
    log_lines,
    looks_again,
    most_interruptions,
    most_stalls,
    stalls_at,
    times_out_at,
)

NEW, PARKED, DELAYED, READY, LEASED, DONE, DEAD, GONE = State
NOW = 1_700_000_000_000
UNIFORM = st.floats(0, 1, exclude_max=True)


def message(state=READY, *, created=NOW, due=NOW, lease=None, run=None, **options) -> Message:
    return Message(
        "m", "q", "n", b"", 1, created, due, 0, Options(**options), state, lease=lease, run=run
    )


def leased(token: str | None = "t", until: int = NOW + 30_000, beat: int = 0, **options) -> Message:
    run = Run(started=NOW, heartbeat=NOW + beat)
    return message(LEASED, lease=Lease(token, until, 30_000, 1), run=run, **options)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, ERROR_LENGTH])
def test_an_error_is_kept_as_it_is(length: int) -> None:
    assert cut("x" * length) == "x" * length


def test_a_longer_one_is_cut_and_says_so() -> None:
    assert cut("abcdef", 4) == "abcd ... (cut)"
    long = cut("x" * (ERROR_LENGTH + 1))
    assert long == "x" * ERROR_LENGTH + " ... (cut)"
    assert cut(long) == long


# -- back-off (semantics 4) ------------------------------------------------------------------------


@given(st.floats(0, 86_400_000), st.integers(1, 1_000), UNIFORM)
def test_a_fixed_back_off_varies_by_a_fifth(delay, attempts, uniform) -> None:
    ms = backoff(Options(backoff=delay, backoff_type="fixed"), attempts, uniform)
    assert int(min(0.8 * delay, BACKOFF_CAP)) <= ms <= min(1.2 * delay, BACKOFF_CAP)


@given(
    st.floats(0, 86_400_000),
    st.sampled_from([None, "exponential"]),
    st.integers(1, 1_000),
    UNIFORM,
)
def test_an_exponential_one_doubles_and_varies_by_half(delay, kind, attempts, uniform) -> None:
    ms = backoff(Options(backoff=delay, backoff_type=kind), attempts, uniform)
    middle = delay * 2 ** min(attempts, 64)
    assert int(min(0.5 * middle, BACKOFF_CAP)) <= ms <= min(1.5 * middle, BACKOFF_CAP)


@pytest.mark.parametrize(
    ("kind", "attempts", "uniform", "ms"),
    [
        (None, 1, 0.0, 1_000),
        (None, 1, 0.5, 2_000),
        ("exponential", 3, 0.25, 6_000),
        ("fixed", 1, 0.0, 800),
        ("fixed", 900, 0.5, 1_000),
        (None, 64, 0.0, 3_600_000),
        (None, 1_000, 0.999, 3_600_000),
    ],
)
def test_the_wait_is_the_one_of_the_formula(kind, attempts, uniform, ms) -> None:
    assert backoff(Options(backoff_type=kind), attempts, uniform) == ms


@pytest.mark.parametrize("kind", [None, "fixed", "exponential"])
def test_no_back_off_is_none(kind) -> None:
    assert backoff(Options(backoff=0, backoff_type=kind), 50, 0.999) == 0


# -- moments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ttl", "ms"), [(None, None), (0, 1), (1_000, 1_001), (99.9, 100)])
def test_a_message_expires_after_its_time_to_live_not_at_it(ttl, ms) -> None:
    assert expires(message(ttl=ttl)) == (None if ms is None else NOW + ms)


@pytest.mark.parametrize(
    ("stall", "own", "beat", "ms"),
    [
        (Stall(), None, 0, 30_000),
        (Stall(), None, 12_000, 42_000),
        (Stall(), 8_000, 0, 8_000),
        (Stall(), 8_000.9, 1, 8_001),
        (Stall(), 0, 0, 5_000),  # not before the grace is over
        (Stall(), -7, 9_000, 9_000),
        (Stall(interval=100, grace=70), None, 0, 100),
        (Stall(interval=100, grace=200), None, 50, 200),
    ],
)
def test_a_stall_is_silence_after_the_grace_and_one_more_sweep(stall, own, beat, ms) -> None:
    m = leased(beat=beat, stall_timeout=own)
    assert stalls_at(m, stall) == NOW + ms + STALL_SWEEP


def test_there_is_no_stall_where_none_is_looked_for_or_nothing_has_run() -> None:
    assert stalls_at(leased(), NO_STALL) is None
    assert stalls_at(message(), Stall()) is None


@pytest.mark.parametrize(
    ("timeout", "ms"), [(None, None), (0, None), (0.5, 1), (1, 1), (700.9, 700)]
)
def test_a_run_times_out_from_its_start(timeout, ms) -> None:
    m = leased(beat=5_000, timeout=timeout)
    assert times_out_at(m) == (None if ms is None else NOW + ms)
    assert times_out_at(message(timeout=timeout)) is None


def test_a_lease_ends_after_a_grace_and_without_token_never() -> None:
    assert lease_ends_at(leased(until=NOW + 50)) == NOW + 50 + LEASE_GRACE
    assert lease_ends_at(leased(token=None, until=0)) is None
    assert lease_ends_at(message()) is None


def test_only_a_leased_message_has_run_and_lease() -> None:
    m = leased()
    assert lease_of(m) == (m.run, m.lease)
    with pytest.raises(AssertionError, match="has run"):
        lease_of(message())
    with pytest.raises(AssertionError, match="has a lease"):
        lease_of(message(run=Run()))


# -- deadlines -------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [READY, PARKED], ids=str)
def test_waiting_ends_with_the_time_to_live(state) -> None:
    assert deadline(message(state, ttl=50), Stall()) == NOW + 51
    assert deadline(message(state), Stall()) is None


@pytest.mark.parametrize(("ttl", "ms"), [(None, 100), (40, 41), (500, 100)])
def test_a_delay_ends_when_it_is_due_or_expired(ttl, ms) -> None:
    assert deadline(message(DELAYED, due=NOW + 100, ttl=ttl), Stall()) == NOW + ms


@pytest.mark.parametrize(
    ("options", "token", "until", "ms"),
    [
        ({}, "t", 30_000, 30_800),
        ({}, "t", 60_000, 35_000),
        ({}, None, 0, 35_000),
        ({"timeout": 9}, "t", 30_000, 9),
        ({"timeout": 90_000}, None, 0, 35_000),
        ({"stall_timeout": 0}, "t", 30_000, 10_000),
    ],
)
def test_a_lease_ends_with_whatever_comes_first(options, token, until, ms) -> None:
    m = leased(token, NOW + until, **options)
    assert deadline(m, Stall()) == NOW + ms


def test_without_stalls_a_lease_without_token_lasts() -> None:
    assert deadline(leased(None), NO_STALL) is None
    assert deadline(leased("t"), NO_STALL) == NOW + 30_800
    assert deadline(leased(None, timeout=7), NO_STALL) == NOW + 7


@pytest.mark.parametrize("state", [NEW, DONE, DEAD, GONE], ids=str)
def test_what_has_ended_or_not_begun_is_not_changed_by_time(state) -> None:
    m = message(state, ttl=5, timeout=5, run=Run(NOW, NOW))
    assert deadline(m, Stall()) is None
    assert looks_again(m) is None


TIMES = st.one_of(st.none(), st.integers(0, 90_000), st.floats(0, 90_000))
STALLS = st.builds(
    Stall,
    enabled=st.booleans(),
    interval=st.integers(0, 60_000),
    max_stalls=st.integers(0, 3),
    grace=st.integers(0, 60_000),
)


@given(
    state=st.sampled_from(State),
    stall=STALLS,
    options=st.fixed_dictionaries({"ttl": TIMES, "timeout": TIMES, "stall_timeout": TIMES}),
    due=st.integers(-5_000, 90_000),
    token=st.sampled_from([None, "t"]),
    until=st.integers(0, 90_000),
    beat=st.integers(0, 90_000),
)
def test_a_message_is_never_looked_at_too_late(
    state, stall, options, due, token, until, beat
) -> None:
    run = Run(started=NOW, heartbeat=NOW + beat) if state >= LEASED else None
    lease = Lease(token, NOW + until, until, 1) if state is LEASED else None
    m = message(state, due=NOW + due, lease=lease, run=run, **options)
    at, again = deadline(m, stall), looks_again(m)
    assert at is None or (again is not None and again <= at)


def test_a_job_may_set_the_limits_of_its_counters_and_0_is_none() -> None:
    stall = Stall(max_stalls=4)
    assert most_stalls(Options(), stall) == 4
    assert most_stalls(Options(max_stalls=0), stall) == 0
    assert most_stalls(Options(max_stalls=9), stall) == 9
    assert most_interruptions(Options()) == INTERRUPTIONS
    assert most_interruptions(Options(max_interruptions=0)) == 0


@pytest.mark.parametrize(
    ("asked", "kept"), [(None, 100), (-1, 100), (0, 0), (7.9, 7), (100, 100), (1e308, 100)]
)
def test_a_log_has_at_most_a_hundred_lines(asked, kept) -> None:
    assert log_lines(Options(keep_logs=asked)) == kept
