"""What becomes of a message whose key is held: every option against every state of the owner."""

from __future__ import annotations

import pytest

from tandemq.model.message import Options, State
from tandemq.model.uniqueness import POLICIES, Verdict, held_until, keeps, verdict

WAITING = (State.PARKED, State.DELAYED, State.READY)


@pytest.mark.parametrize(
    ("options", "waits", "runs"),
    [
        (Options(), Verdict.DROP, Verdict.DROP),
        (Options(dedup_ttl=5), Verdict.DROP, Verdict.DROP),
        (Options(dedup_extend=True), Verdict.DROP, Verdict.DROP),  # there is nothing to extend
        (Options(dedup_extend=True, dedup_ttl=5), Verdict.EXTEND, Verdict.REFUSE),
        (Options(dedup_replace=True), Verdict.REPLACE, Verdict.SUCCEED),
        (
            Options(dedup_replace=True, dedup_extend=True, dedup_ttl=5),
            Verdict.REPLACE,
            Verdict.SUCCEED,
        ),
        (Options(dedup_policy="drop", dedup_replace=True), Verdict.DROP, Verdict.DROP),
        (Options(dedup_policy="replace"), Verdict.REPLACE, Verdict.SUCCEED),
        (Options(dedup_policy="coalesce"), Verdict.COALESCE, Verdict.SUCCEED),
        (Options(dedup_policy="queue-one"), Verdict.REPLACE, Verdict.FOLLOW),
    ],
)
def test_an_option_decides_for_waiting_and_for_running_owners(
    options: Options, waits: Verdict, runs: Verdict
) -> None:
    assert {verdict(options, state) for state in WAITING} == {waits}
    assert verdict(options, State.LEASED) is runs


def test_every_policy_has_a_verdict_of_its_own() -> None:
    found = {
        (verdict(Options(dedup_policy=policy), State.READY), verdict(o, State.LEASED))
        for policy in POLICIES
        for o in [Options(dedup_policy=policy)]
    }
    assert len(found) == len(POLICIES)


def test_a_key_is_kept_through_retries_where_somebody_asked_for_that() -> None:
    assert not keeps(Options())
    assert keeps(Options(dedup_keep=True))
    assert keeps(Options(dedup_policy="queue-one"))


def test_a_key_has_a_time_limit_only_with_a_ttl() -> None:
    assert held_until(Options(), 1000) is None
    assert held_until(Options(dedup_ttl=0), 1000) is None
    assert held_until(Options(dedup_ttl=50), 1000) == 1050
    assert held_until(Options(dedup_ttl=-5), 1000) == 995  # over before it begins
    assert held_until(Options(dedup_ttl=50, dedup_policy="queue-one"), 1000) is None
