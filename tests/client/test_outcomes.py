"""How handlers end jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tandemq.client.job_options import wire
from tandemq.client.outcomes import RateLimited, Retry


def test_a_retry_is_an_option_of_a_push() -> None:
    assert wire(Retry(5, delay="2s").options()) == {
        "maxAttempts": 5,
        "backoff": {"type": "exponential", "delay": 2000},
    }
    assert "attempts" not in Retry(backoff="fixed").options()


def test_a_retry_is_raised_with_its_own_wait() -> None:
    assert Retry(after=0.5).after_ms == 500
    assert Retry().after_ms is None


@pytest.mark.parametrize(
    "said", [{"attempts": 0}, {"attempts": 1001}, {"backoff": "none"}, {"jitter": False}]
)
def test_what_a_retry_cannot_be_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"attempts|backoff|jitter"):
        Retry(**said)


def test_a_limit_lasts_until_a_moment_or_for_a_span() -> None:
    assert RateLimited(after="2s").wait_ms == 2000
    until = datetime.now(UTC) + timedelta(minutes=1)
    assert 59_000 < RateLimited(until=until).wait_ms <= 60_001
    for said in ({}, {"until": until, "after": 1}):
        with pytest.raises(ValueError, match="either until"):
            RateLimited(**said)
