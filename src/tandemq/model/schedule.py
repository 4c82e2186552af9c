"""A schedule: a message that is published again and again, at named moments or in intervals.

Moments and spans are integer milliseconds. What is decided here needs neither an engine nor a
calendar. Source: bunqueue semantics 12; what is ours says so.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from tandemq.model.message import DEFAULTS, ENDED, Message, Options, State

KEY: Final = "cron:"  # + name: the unique key of the runs of a schedule that may not overlap

SKIP: Final = "skip"  # what becomes of a run whose moment has passed
ONCE: Final = "once"
ALL: Final = "all"
MISSED: Final = (SKIP, ONCE, ALL)

LATE = 1_000  # ms; a run that may not be made up for is still made so late: the loop was busy
RESTART = 60_000  # ms; so late a run is made where nobody said what becomes of a missed one
LONG_AGO = 86_400_000  # ms; older runs are not made up for one by one unless somebody says so


class Schedule(Struct, omit_defaults=True, kw_only=True):
    """One schedule as it is stored: append fields with a default, never rename one."""

    name: str
    queue: str
    job_name: str
    body: bytes
    pattern: str | None = None  # a cron expression; None: every so many ms
    every: int | None = None
    tz: str | None = None
    priority: int = 0
    delay: int = 0  # ms from a run's moment to when its message is due
    job: dict[str, Any] = {}  # fields of the messages' options that are not default
    max_runs: int | None = None
    skip_if_no_worker: bool = False
    prevent_overlap: bool = True
    missed: str | None = None  # ours: SKIP, ONCE, ALL; None: within RESTART
    max_lateness: int | None = None  # ours: a run that is later than this never takes place
    executions: int = 0
    next: int = 0
    last_job: str | None = None  # the message of the last run
    gen: int = 0  # counts changes; timers made for an older one are stale

    @property
    def key(self) -> str | None:
        """The unique key of its messages."""
        own: str | None = self.job.get("unique_key")
        return own or (KEY + self.name if self.prevent_overlap else None)

    @property
    def exclusive(self) -> bool:
        """Whether a run waits for nothing but that the last one has ended."""
        return self.prevent_overlap and not self.job.get("unique_key")

    @property
    def spent(self) -> bool:
        """Whether it has run as often as it may."""
        return self.max_runs is not None and self.executions >= self.max_runs

    @property
    def tolerance(self) -> int | None:
        """How late a run may be, in ms; None: however late."""
        if self.missed == SKIP:
            return LATE if self.max_lateness is None else min(LATE, self.max_lateness)
        if self.max_lateness is not None:
            return self.max_lateness
        return {ONCE: None, ALL: LONG_AGO}.get(self.missed or "", RESTART)

    def same_moments(self, other: Schedule) -> bool:
        """Whether both name the same moments, so that a run planned by one is the other's too."""
        mine = (self.pattern, self.every, self.tz)
        return mine == (other.pattern, other.every, other.tz)


def options_of(s: Schedule) -> Options:
    """Return the options of a schedule's messages; what a later version stored is left out."""
    known = {name: value for name, value in s.job.items() if name in Options.__struct_fields__}
    known["unique_key"] = s.key
    if known == {"unique_key": None}:
        return DEFAULTS
    if s.exclusive:  # a run that is tried again is still the one that runs
        known["dedup_keep"] = True
    return Options(**known)


def alive(m: Message | None) -> bool:
    """Whether a message is still to be worked on, or worked on."""
    return m is not None and m.state not in (*ENDED, State.GONE)
