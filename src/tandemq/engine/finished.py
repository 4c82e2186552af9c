"""Completed messages are kept for a while, within bounds that need no configuration.

The newest ``keep_results`` keep their result, the newest ``keep_done`` are kept at all, and
together they hold at most ``keep_done_bytes``. With ``retention`` they also go by age.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec import Struct

from tandemq.model.message import Message, State

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

SWEEP = 1_000  # ms between looks at the age of completed messages


class Rules(Struct, frozen=True):
    """Bounds and choices of the whole engine."""

    keep_results: int = 50_000
    keep_done: int = 100_000
    keep_done_bytes: int = 256 << 20
    retention: int = 0  # ms; 0: no limit of age
    done_progress: float | None = None  # what a completed message reports; None: its last value


Entry = tuple[int, Message]  # generation and message; stale when the message has moved on


class Finished:
    """The completed messages, oldest first."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.gen = 0
        self.wound = False  # a sweep by age will come
        self.count = 0
        self.size_bytes = 0
        self._line: deque[Entry] = deque()
        self._with_result: deque[Entry] = deque()

    def add(self, m: Message) -> None:
        entry = (m.gen, m)
        self.count += 1
        self.size_bytes += len(m.body)
        self._line.append(entry)
        if m.run is not None and m.run.result is not None:
            self.size_bytes += len(m.run.result)
            self._with_result.append(entry)

    def remove(self, m: Message) -> None:
        self.count -= 1
        self.size_bytes -= _size(m)

    def keep_bounds(self, engine: Engine, now: int) -> None:
        """Look after the bounds; nearly always there is nothing to do."""
        rules = self.rules
        if (
            len(self._with_result) > rules.keep_results
            or self.count > rules.keep_done
            or self.size_bytes > rules.keep_done_bytes
        ):
            self.trim(engine)
        if rules.retention:
            self.wind(engine, now)

    def trim(self, engine: Engine) -> None:
        """Forget what is beyond the bounds."""
        rules = self.rules
        while len(self._with_result) > rules.keep_results:
            gen, m = self._with_result.popleft()
            if m.gen == gen and m.run is not None:
                before = _size(m)
                m.run.result = None
                self.size_bytes += _size(m) - before
        while self.count > rules.keep_done or self.size_bytes > rules.keep_done_bytes:
            self._forget_oldest(engine)

    def sweep(self, engine: Engine, now: int) -> None:
        """Forget what is older than the retention, and look again later."""
        self.wound = False
        limit = now - self.rules.retention
        while self._line:
            gen, m = self._line[0]
            if m.gen == gen and m.run is not None and m.run.finished > limit:
                break
            self._forget_oldest(engine)
        self.wind(engine, now)

    def wind(self, engine: Engine, now: int) -> None:
        """Make sure that a sweep comes while there is something to sweep."""
        if self.count and not self.wound:
            self.wound = True
            engine.timers.set(self, now + min(SWEEP, self.rules.retention))

    def _forget_oldest(self, engine: Engine) -> None:
        gen, m = self._line.popleft()
        if m.gen == gen and m.state is State.DONE:
            engine.forget(m)


def _size(m: Message) -> int:
    result = m.run.result if m.run is not None else None
    return len(m.body) + (len(result) if result is not None else 0)
