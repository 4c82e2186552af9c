"""Spans and moments as people give them, and as the wire wants them: in milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tandemq.amounts import span_ms
from tandemq.client.errors import BadOption

Span = timedelta | float | str
"""A length of time: a ``timedelta``, a number of seconds, or a text like ``30s`` or ``P1D``."""


def seconds(span: Span, name: str = "the span") -> float:
    """Return a span in seconds.

    Raises:
        BadOption: it is no span, negative, or not finite.
    """
    if isinstance(span, timedelta):
        value = span.total_seconds()
    elif isinstance(span, str):
        value = seconds_of_text(span, name)
    elif isinstance(span, bool) or not isinstance(span, (int, float)):
        raise BadOption(f"{name} is {span!r}; give a timedelta, a number of seconds or 30s")
    else:
        value = float(span)
    if not 0 <= value < float("inf"):
        raise BadOption(f"{name} is {span!r}; it must be 0 or more, and finite")
    return value


def millis(span: Span, name: str = "the span") -> int:
    """Return a span in whole milliseconds."""
    return round(seconds(span, name) * 1000)


def seconds_of_text(text: str, name: str) -> float:
    """Read a span such as ``500ms``, ``30s``, ``5m``, ``2h``, ``P1D`` or ``1.5``, in seconds.

    Raises:
        BadOption: it is none.
    """
    ms = span_ms(text, "s")
    if ms is None:
        raise BadOption(f"{name} is {text!r}; write it like 500ms, 30s, 5m or 2h")
    return float(ms / 1000)


def moment_ms(moment: datetime, name: str = "the moment") -> int:
    """Return a moment in ms since the epoch.

    Raises:
        BadOption: it is none, or says no zone.
    """
    if not isinstance(moment, datetime):
        raise BadOption(f"{name} is {moment!r}; give a datetime with a zone")
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise BadOption(
            f"{name} has no zone, so it could be any of 24 moments: "
            "write datetime.now(UTC) or moment.astimezone()"
        )
    return round(moment.timestamp() * 1000)


def moment_of(ms: float | None) -> datetime | None:
    """Return a moment in UTC, None for none."""
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)
