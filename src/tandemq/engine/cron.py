"""Cron expressions: which moments they name, in which time zone.

An expression has five fields (minute, hour, day of month, month, day of week), or six with seconds
before them, or it is an alias such as ``@daily``. What a field may hold is cronsim's business:
names, lists, ranges, steps, 0 and 7 for Sunday, ``L`` for the last day of a month, ``MON#1`` for
its first Monday. If both day fields are restricted, either may match, as in every cron.

cronsim is asked for *readings* of a clock that is never set: local times without a zone. Which
moment belongs to a reading is decided here, because clocks are set forward and back.

* A pattern whose hour field leaves out an hour means the clock on the wall. A reading that occurs
  twice stands for the first time it occurs; one that is skipped stands for the moment at which the
  clock goes on. So each reading fires once, and several skipped ones fire together, once.
* A pattern that names every hour means time that passes: it fires whenever the clock shows one of
  its readings, also in an hour that comes twice, and nothing is made up for an hour that is left
  out. Where the clock is set forward by a part of an hour, a skipped reading fires at the moment at
  which the clock goes on: the rest of its hour is there.

This is the only module of the engine that computes with calendar types, and it reads zones from
the system's files; it never asks for the present.
"""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

LENGTH = 256  # characters of an expression; longer ones are nobody's
PATTERNS_KEPT = 4096  # parsed expressions
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

HOUR = 3_600  # s
DAY = 24 * HOUR
_EPOCH = datetime(1970, 1, 1)
_SECOND = timedelta(seconds=1)
_NO_TIME = (OverflowError, ValueError, OSError)  # outside of what a calendar can name


class BadPattern(ValueError):
    """The expression or its time zone is none, or the expression never matches; the text says."""


@lru_cache(maxsize=PATTERNS_KEPT)
def parse(expression: str, zone: str | None = None) -> Pattern:
    """Return what an expression means in an IANA time zone, by default UTC.

    Raises:
        BadPattern
    """
    if len(expression) > LENGTH:
        raise BadPattern(f"it is longer than {LENGTH} characters")
    fields = ALIASES.get(expression.strip().lower(), expression)
    try:
        readings = CronSim(fields, _EPOCH)
    except CronSimError as exc:
        raise BadPattern(_reason(fields, exc)) from None
    pattern = Pattern(readings, time_zone(zone))
    if pattern.next(0) is None:
        raise BadPattern("it never matches")
    return pattern


def _reason(fields: str, exc: CronSimError) -> str:
    count = len(fields.split())
    if count not in (5, 6):
        return f"it has {count} fields; 5 are needed, or 6 with seconds"
    return str(exc)[:1].lower() + str(exc)[1:]


def time_zone(name: str | None) -> tzinfo:
    """Return a time zone by its IANA name, in whatever case; UTC for none.

    Raises:
        BadPattern: the system knows no such zone.
    """
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, not a name, a folder of zones
        known = _zones().get(name.lower())
        if known is None:
            raise BadPattern(f"unknown time zone {name[:LENGTH]!r}") from None
        return ZoneInfo(known)


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def shown(at: int, zone: str | None = None) -> str | None:
    """Return what calendar and clock of a zone show at a moment, as ISO 8601.

    None if no calendar reaches so far; UTC where there is no such zone.
    """
    try:
        return datetime.fromtimestamp(at // 1000, time_zone(zone)).isoformat()
    except BadPattern:
        return shown(at)
    except _NO_TIME:
        return None


class Pattern:
    """A parsed expression in its zone."""

    __slots__ = ("_known", "_readings", "_zone", "every_hour")

    def __init__(self, readings: CronSim, zone: tzinfo) -> None:
        self._readings = readings
        self._zone = zone
        self.every_hour = len(readings.hours) == 24
        self._known: tuple[int, int | None] | None = None  # many schedules ask the same at once

    def next(self, after: int) -> int | None:
        """Return the first moment later than ``after``, in ms; None if there is none to come."""
        after //= 1000
        if self._known is None or self._known[0] != after:
            try:
                found = (self._passing if self.every_hour else self._on_the_wall)(after)
            except _NO_TIME:
                found = None
            self._known = after, None if found is None else found * 1000
        return self._known[1]

    # Below, moments are s since the epoch, and readings too: what a clock shows, as if it were UTC.

    def _on_the_wall(self, after: int) -> int | None:
        reading = self._next_reading(after + self._offset(after))
        while reading is not None:
            at = self._first_shown(reading)
            if at > after:  # else it comes for the second time
                return at
            reading = self._next_reading(reading)
        return None

    def _first_shown(self, reading: int) -> int:
        """Return the first moment at which the clock shows this, or has gone past it."""
        local = (_EPOCH + reading * _SECOND).replace(tzinfo=self._zone)
        before = _seconds(local.utcoffset())
        after = _seconds(local.replace(fold=1).utcoffset())
        if before >= after:  # shown once, or twice
            return reading - before
        change = self._change(reading - after, reading - before, before)
        return reading - before if change is None else change

    def _passing(self, after: int) -> int | None:
        offset = self._offset(after)
        while (reading := self._next_reading(after + offset)) is not None:
            at = reading - offset
            change = self._change(after, min(at, after + DAY), offset)
            if change is not None:
                new = self._offset(change)
                if new > offset and (new - offset) % HOUR and reading < change + new:
                    return change
                after, offset = change - 1, new  # as if it had always been so
            elif at <= after + DAY:
                return at
            else:  # far away: look again from nearby, with the offset there
                after = at - DAY
                offset = self._offset(after)
        return None

    def _next_reading(self, after: int) -> int | None:
        readings = copy(self._readings)
        readings.dt = _EPOCH + after * _SECOND
        found = next(readings, None)
        return None if found is None else (found - _EPOCH) // _SECOND

    def _offset(self, at: int) -> int:
        return _seconds(datetime.fromtimestamp(at, self._zone).utcoffset())

    def _change(self, low: int, high: int, offset: int) -> int | None:
        """Return the first moment up to ``high`` with another offset; at ``low`` it is this one."""
        if self._offset(high) == offset:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(middle) == offset:
                low = middle
            else:
                high = middle
        return high


def _seconds(offset: timedelta | None) -> int:
    assert offset is not None, "a zone has an offset at any time"
    return offset // _SECOND
