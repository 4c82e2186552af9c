"""What a handler raises when a job ends otherwise than well or by mistake.

``Retry`` is also what a task says of its attempts beforehand: ``retry=Retry(5, jitter=True)``.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any, Literal

from tandemq.client.spans import Span, millis, moment_ms

Backoff = Literal["fixed", "exponential"]


class Ending(Exception):
    """How a handler ends its job; it leaves the handler like any exception."""


class Retry(Ending):
    """Another try.

    As an option: at most ``attempts`` runs, with ``delay`` between them, which doubles each time
    if ``backoff`` is exponential. The server spreads it, so that failures of one moment do not
    come back in one moment: ``jitter`` says that this is understood, and cannot be False.

    Raised: the job is tried again ``after`` a span, or after its back-off; this one is charged.

    Raises:
        ValueError, TypeError: what is given cannot be used.
    """

    def __init__(
        self,
        attempts: int | None = None,
        *,
        backoff: Backoff = "exponential",
        delay: Span = 1.0,
        jitter: bool = True,
        after: Span | None = None,
        reason: str | None = None,
    ) -> None:
        if attempts is not None and not 1 <= attempts <= 1000:
            raise ValueError(f"attempts must be 1 to 1000, 1 being no retry at all: {attempts}")
        if backoff not in ("fixed", "exponential"):
            raise ValueError(f"backoff must be 'fixed' or 'exponential': {backoff!r}")
        if not jitter:
            raise ValueError("jitter is always on: the server spreads every back-off a little")
        super().__init__(reason or "the handler asked for another try")
        self.attempts, self.backoff = attempts, backoff
        self.delay_ms = millis(delay, "delay")
        self.after_ms = None if after is None else millis(after, "after")

    def options(self) -> dict[str, Any]:
        """Return what it says as options of a job."""
        said: dict[str, Any] = {
            "backoff": timedelta(milliseconds=self.delay_ms),
            "backoff_kind": self.backoff,
        }
        return said if self.attempts is None else {**said, "attempts": self.attempts}


class Fail(Ending):
    """It cannot succeed, and is a dead letter at once, whatever attempts are left."""


class Skip(Ending):
    """There is nothing to do: the job is completed, without a result."""


class RateLimited(Ending):
    """Somebody whom the handler needs said "not now".

    The job takes its old place, no attempt is charged, and its group waits ``until`` a moment or
    for a span: all jobs of the queue without a group, if it has none.

    Raises:
        ValueError, TypeError: neither or both are given, or the moment has no time zone.
    """

    def __init__(
        self, *, until: datetime | None = None, after: Span | None = None, reason: str | None = None
    ) -> None:
        if (until is None) == (after is None):
            raise ValueError("RateLimited wants either until=<moment> or after=<span>")
        super().__init__(reason or "limited by somebody else")
        if after is not None:
            self.wait_ms = millis(after, "after")
        elif until is not None:
            self.wait_ms = max(0, moment_ms(until, "until") - round(time.time() * 1000))
