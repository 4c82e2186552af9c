"""The ``repeat`` option of a job: when it comes again after it was completed (wire-commands 2)."""

from __future__ import annotations

import math
from typing import Any

from msgspec import UNSET

from tandemq.commands import fields as check
from tandemq.engine.cron import BadPattern, parse
from tandemq.model.errors import BadRequest
from tandemq.model.message import Repeat

# As a typed request reads it; whatever else a client sends is read on the tolerant path.
Fields = dict[str, int | float | str | bool | None]

EITHER = "repeat requires exactly one of every or pattern"
NO_ID = "repeat jobs cannot use JobOptions.jobId; use repeat.jobId instead"
NO_TIES = "repeat jobs cannot participate in parent or dependency relationships"


def read(value: Any, *, named: bool, tied: bool) -> Repeat | None:
    """Check the option; None and undefined ask for nothing.

    ``named`` says that the publisher chose the job's id, ``tied`` that it has relatives.

    Raises:
        BadRequest
    """
    if value is None or value is UNSET:
        return None
    given = value if isinstance(value, dict) else {}
    given = {name: field for name, field in given.items() if field is not UNSET}
    every, pattern = given.get("every"), check.text(given.get("pattern"))
    if (every is None) == (pattern is None or not pattern.strip()):
        raise BadRequest(EITHER)
    repeat = Repeat(
        every=_every(every),
        pattern=_pattern(pattern, check.text(given.get("tz"))) if every is None else None,
        tz=check.text(given.get("tz")),
        limit=check.loose_number(given.get("limit")),
        count=max(0, check.whole(given.get("count")) or 0),
        start=_moment(given, "startDate"),
        end=_moment(given, "endDate"),
        immediately=check.flag(given.get("immediately")),
        previous=check.loose_number(given.get("prevMillis")),
        offset=check.loose_number(given.get("offset")),
        job_id=check.text(given.get("jobId")),
    )
    if named:
        raise BadRequest(NO_ID)
    if tied:
        raise BadRequest(NO_TIES)
    return repeat


def _every(value: Any) -> float | None:
    if value is None:
        return None
    found = check.loose_number(value)
    if found is None or found <= 0:
        raise BadRequest("repeat.every must be a positive finite number")
    return found


def _pattern(pattern: str | None, zone: str | None) -> str | None:
    try:
        parse(pattern or "", zone)
    except BadPattern as exc:
        raise BadRequest(f"Invalid repeat pattern: {exc}") from None
    return pattern


def _moment(given: dict[str, Any], name: str) -> float | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadRequest(f"repeat.{name} must be a finite timestamp")
    return check.loose_number(value)
