"""How urgent a message is: what the header ``priority`` may say."""

from __future__ import annotations

from typing import Final

LOW, NORMAL, HIGH, CRITICAL = range(4)
PRIORITIES: Final = {
    spelling: level
    for level, name in enumerate(("Low", "Normal", "High", "Critical"))
    for spelling in (str(level), name, name.lower())
}


def priority(headers: dict[str, str]) -> int:
    """Return the level that a message asks for; what is none is normal."""
    said = headers.get("priority")
    if said is None:
        return NORMAL
    level = PRIORITIES.get(said)
    return PRIORITIES.get(said.strip().lower(), NORMAL) if level is None else level
