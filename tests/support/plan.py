"""A mixed load whose outcome is known in advance: what each job does and where it must end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

STARTS = {"good": 1, "late": 1, "flaky": 2, "doomed": 2, "hopeless": 1}
"""How often a job of each kind is executed."""

ENDS = {
    "good": "completed",
    "late": "completed",
    "flaky": "completed",
    "doomed": "failed",
    "hopeless": "failed",
}
"""The state in which a job of each kind stays."""

OPTIONS: dict[str, dict[str, Any]] = {
    "good": {},
    "late": {"delay": 300},
    "flaky": {"attempts": 3, "backoff": 20},
    "doomed": {"attempts": 2, "backoff": {"type": "fixed", "delay": 20}},
    "hopeless": {"attempts": 5},
}
"""What is asked for when a job of each kind is added, in the words of the official clients."""


def kind(n: int) -> str:
    """The kind of job number `n`: most are good."""
    return {3: "flaky", 7: "doomed", 9: "hopeless", 11: "late"}.get(n % 25, "good")


@dataclass
class Load:
    """`size` jobs and what was seen of them."""

    size: int
    started: Counter[int] = field(default_factory=Counter)

    def data(self, n: int) -> dict[str, Any]:
        return {"n": n, "kind": kind(n)}

    def expected_starts(self) -> dict[int, int]:
        return {n: STARTS[kind(n)] for n in range(self.size)}

    def expected_counts(self) -> dict[str, int]:
        return dict(Counter(ENDS[kind(n)] for n in range(self.size)))

    def in_state(self, state: str) -> set[int]:
        return {n for n in range(self.size) if ENDS[kind(n)] == state}

    def wrong_starts(self) -> dict[int, tuple[int, int]]:
        """Job number -> (times started, times expected), where they differ."""
        return {
            n: (self.started[n], times)
            for n, times in self.expected_starts().items()
            if self.started[n] != times
        }
