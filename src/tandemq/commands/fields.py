"""Checks of single fields, in the words that clients match (bunqueue wire-commands 2).

They run only when a frame did not fit its typed request at once, so they may take their time.
"""

from __future__ import annotations

import math
import re
from typing import Any

from tandemq.model.body import number_text
from tandemq.model.errors import BadRequest
from tandemq.model.values import WideInteger

QUEUE_LENGTH = 256
NAME_LENGTH = 256
BAD_NAME = f"Job name must be a non-empty string of at most {NAME_LENGTH} characters"
DAY = 86_400_000
YEAR = 365 * DAY
EXACT = 2.0**53  # the largest whole number below which a float holds each one exactly
SAFE = int(EXACT) - 1  # the largest whole number that JavaScript calls safe
PRIORITIES = (-1_000_000, 1_000_000)  # of jobs without a group
GROUP_LENGTH = 256
GROUP_PRIORITY = 2_097_151
QUEUES_KNOWN = 10_000  # names of queues that need not be checked again

_queue = re.compile(r"[A-Za-z0-9_\-.:]+\Z")


def queue_name(value: Any) -> str:
    """Check the name of a queue that may be created; a number is taken as its digits.

    Raises:
        BadRequest
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = identifier(value) if value and value == value else ""
    if not isinstance(value, str) or not value:
        raise BadRequest("Queue name is required")
    if len(value) > QUEUE_LENGTH:
        raise BadRequest(f"Queue name too long (max {QUEUE_LENGTH} characters)")
    if not _queue.match(value):
        raise BadRequest("Queue name contains invalid characters")
    return value


_good: set[str] = set()


def good_queue(name: str) -> None:
    """Check the name of a queue that may be created, cheaply for one that was checked before.

    That a queue exists proves nothing: Pause makes one of any name.

    Raises:
        BadRequest
    """
    if name not in _good:
        queue_name(name)
        if len(_good) < QUEUES_KNOWN:
            _good.add(name)


def any_queue(value: Any) -> str:
    """Take a queue name of a command that does not check it; only its type matters."""
    if not isinstance(value, str):
        raise BadRequest("Queue name is required")
    return value


def number(
    fields: dict[str, Any],
    name: str,
    low: float,
    high: float,
    default: Any,
    *,
    whole: bool = False,
    label: str | None = None,
) -> Any:
    """Check a number; absent and null are the default.

    Raises:
        BadRequest: in the order not a number, not finite, not whole, too small, too large.
    """
    value = fields.get(name)
    if value is None:
        return default
    label = label or name
    if isinstance(value, (bool, WideInteger)) or not isinstance(value, (int, float)):
        raise BadRequest(f"{label} must be a number")
    if not math.isfinite(value):
        raise BadRequest(f"{label} must be a finite number")
    if whole and value != int(value):
        raise BadRequest(f"{label} must be an integer")
    if value < low:
        raise BadRequest(f"{label} must be at least {low}")
    if value > high:
        raise BadRequest(f"{label} must be at most {high}")
    return int(value) if whole else value


def job_name(value: Any) -> str:
    """Check a job's name."""
    if not isinstance(value, str) or not 0 < len(value) <= NAME_LENGTH:
        raise BadRequest(BAD_NAME)
    return value


def group_id(value: Any) -> str:
    """Check the name of a group.

    Raises:
        BadRequest
    """
    if not isinstance(value, str):
        raise BadRequest("groupId must be a string")
    if not value:
        raise BadRequest("groupId must be a non-empty string")
    if len(value) > GROUP_LENGTH:
        raise BadRequest(f"groupId must be at most {GROUP_LENGTH} characters")
    if "\0" in value:
        raise BadRequest("groupId must not contain NUL characters")
    return value


def group_priority(value: Any) -> int:
    """Check the priority of a job in a group, where the smallest goes first.

    Raises:
        BadRequest
    """
    if not _is_number(value) or not math.isfinite(value):
        raise BadRequest("group.priority must be a finite number")
    if value != int(value):
        raise BadRequest("group.priority must be an integer")
    if not 0 <= value <= GROUP_PRIORITY:
        raise BadRequest(f"group.priority must be between 0 and {GROUP_PRIORITY}")
    return int(value)


def positive(value: Any, label: str) -> int:
    """Check a whole number from 1 on that a float holds exactly.

    Raises:
        BadRequest
    """
    if not _is_number(value) or not 1 <= value <= SAFE or value != int(value):
        raise BadRequest(f"{label} must be a positive safe integer")
    return int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, (bool, WideInteger))


def loose_number(value: Any) -> float | None:
    """Take a number that nobody checks: anything else counts as absent."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def whole(value: Any) -> int | None:
    """Take a whole number that nobody checks, as far as a float holds whole numbers exactly."""
    found = loose_number(value)
    return None if found is None else int(max(-EXACT, min(EXACT, found)))


def text(value: Any) -> str | None:
    """Take a text that nobody checks: anything else counts as absent."""
    return value if isinstance(value, str) else None


def flag(value: Any) -> bool | None:
    """Take a truth value that nobody checks: anything else counts as absent."""
    return value if isinstance(value, bool) else None


def listed(fields: dict[str, Any], name: str) -> list[Any]:
    """Check that a list is there."""
    value = fields.get(name)
    if not isinstance(value, list):
        raise BadRequest(f"{name} must be a list")
    return value


def natural(value: Any, name: str) -> int:
    """Check a whole number from 0 on that a float holds exactly.

    Raises:
        BadRequest
    """
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if number is None or not 0 <= number <= SAFE or number != int(number):
        raise BadRequest(f"{name} must be a non-negative safe integer")
    return int(number)


def texts(value: Any) -> tuple[str, ...]:
    """Take a list of texts that nobody checks: anything else counts as absent."""
    found = value if isinstance(value, list) else ()
    return tuple(item for item in found if isinstance(item, str))


def identifier(value: Any) -> str | None:
    """Take an id; a number is taken as its digits, anything else counts as absent."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(int(value))
    return number_text(value) if isinstance(value, float) else text(value)


def shown(value: Any) -> str:
    """Return what an error calls something that should be an id or a name."""
    found = identifier(value)
    return "undefined" if found is None else found


def job_id(value: Any) -> str:
    """Take the id of a job that is to exist; what cannot be one finds nothing."""
    return value if isinstance(value, str) else ""


def snake(name: str) -> str:
    """Return a wire name as the attribute it is read into: maxAttempts, max_attempts."""
    return re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name)
