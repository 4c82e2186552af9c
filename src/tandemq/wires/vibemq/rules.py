"""What every frame has to keep to, whatever its type: the validator of the reference."""

from __future__ import annotations

import unicodedata
from typing import Final

from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import SHOWN

LONGEST_QUEUE_NAME: Final = 256  # lengths of text are in UTF-16 units
LONGEST_HEADER_VALUE: Final = 4096
MOST_HEADERS: Final = 50

NO_ID: Final = "Message ID is required."
LONG_QUEUE: Final = f"Queue name exceeds maximum length ({LONGEST_QUEUE_NAME})."
BAD_QUEUE: Final = (
    "Queue name contains invalid characters. Allowed: alphanumeric, hyphens, underscores, dots."
)
NO_KEY: Final = "Header key cannot be empty."

GOOD: Final[set[str]] = set()  # names with which nothing is wrong, as far as they are remembered
_LETTERS_AND_DIGITS = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nd"))


def broken(frame: Frame) -> str | None:
    """Return the words for the first rule that a frame breaks, None if it keeps to all."""
    if not frame.id:
        return NO_ID
    queue = frame.queue
    if queue is not None and (problem := broken_name(queue)):
        return problem
    return broken_headers(frame.headers) if frame.headers else None


def broken_name(queue: str) -> str | None:
    """Return what is wrong with the name of a queue."""
    if queue in GOOD:
        return None
    if len(queue) > LONGEST_QUEUE_NAME or _units(queue) > LONGEST_QUEUE_NAME:
        return LONG_QUEUE
    if not queue or not all(map(in_names, queue)):
        return BAD_QUEUE
    if len(GOOD) >= 4096:
        GOOD.clear()
    GOOD.add(queue)
    return None


def in_names(char: str) -> bool:
    """Whether a name may have this character."""
    if char in "-_.":
        return True
    # The reference looks at halves of what needs two UTF-16 units, and those are no letters.
    return char < "\U00010000" and unicodedata.category(char) in _LETTERS_AND_DIGITS


def broken_headers(headers: dict[str, str]) -> str | None:
    """Return what is wrong with the headers of a frame."""
    if len(headers) > MOST_HEADERS:
        return f"Too many headers ({len(headers)}). Maximum: {MOST_HEADERS}."
    if "" in headers:
        return NO_KEY
    if 2 * max(map(len, headers.values())) <= LONGEST_HEADER_VALUE:  # as with nearly all
        return None
    for key, value in headers.items():
        if _units(value) > LONGEST_HEADER_VALUE:
            return (
                f"Header value for '{key[:SHOWN]}' exceeds maximum length ({LONGEST_HEADER_VALUE})."
            )
    return None


def _units(text: str) -> int:
    """Return the length of a text as the reference counts it."""
    return len(text.encode("utf-16-le")) // 2
