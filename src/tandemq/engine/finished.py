"""Completed messages are kept for a while, within bounds that need no configuration.

The newest ``keep_results`` keep their result, the newest ``keep_done`` are kept at all, and
together they hold at most ``keep_done_bytes``. With ``retention`` they also go by age.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from msgspec import Struct

from tandemq.engine import usual
from tandemq.model.message import Message

if TYPE_CHECKING:
    from tandemq.engine.core import Engine


class Rules(Struct, frozen=True):
    """Bounds and choices of the whole engine."""

    keep_results: int = 50_000
    keep_done: int = 100_000
    keep_done_bytes: int = 256 << 20
    keep_ids: int = 50_000  # of completed messages that are not kept, for those that depend on them
    retention: int = 0  # ms; 0: no limit of age
    max_memory: int = 0  # bytes of all messages; 0: no limit
    done_progress: float | None = None  # what a completed message reports; None: its last value
    keep_logs: int = 10_000  # messages whose logs are kept
    keep_log_bytes: int = 64 << 20  # of all logs together
    keep_events: int = 10_000  # newest events of each queue
    keep_all_events: int = 200_000  # of all queues
    keep_tallies: int = 10_000  # queues whose ends are counted by the minute
    most_webhooks: int = 1_000  # each event looks at all of them
    worker_timeout: int = 30_000  # ms of silence after which a worker is stale
    worker_bytes: int = 16 << 20  # that all registered workers may take


class Finished:
    """The completed messages, oldest first."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.gen = 0
        self.wound = False  # a sweep by age will come
        self.size_bytes = 0
        self._all: OrderedDict[int, Message] = OrderedDict()
        self._with_result: OrderedDict[int, Message] = OrderedDict()

    @property
    def count(self) -> int:
        return len(self._all)

    @property
    def results(self) -> int:
        """How many of them still have a result."""
        return len(self._with_result)

    def add(self, m: Message) -> None:
        self._all[m.seq] = m
        self.size_bytes += len(m.body)
        if m.run is not None and m.run.result is not None:
            self.size_bytes += len(m.run.result)
            self._with_result[m.seq] = m

    def remove(self, m: Message) -> None:
        self.size_bytes -= _size(m)
        del self._all[m.seq]
        self._with_result.pop(m.seq, None)

    def keep_bounds(self, engine: Engine) -> None:
        """Forget what is beyond the bounds; nearly always there is nothing to do."""
        rules, done = self.rules, self._all
        while len(self._with_result) > rules.keep_results:
            _, m = self._with_result.popitem(last=False)
            if m.links is not None:
                engine.dependents.leave_value(engine, m)
            self.size_bytes -= _size(m)
            m.run.result = None  # type: ignore[union-attr]  # where a result is, there is a run
            self.size_bytes += _size(m)
        while len(done) > rules.keep_done or self.size_bytes > rules.keep_done_bytes:
            oldest = self._oldest()
            if not usual.forget(engine, oldest):
                engine.forget(oldest)
        if rules.retention and done and not self.wound:
            self.wind(engine)

    def sweep(self, engine: Engine, now: int) -> None:
        """Forget what is older than the retention, and look again later."""
        self.wound = False
        limit = now - self.rules.retention
        while self._all:
            oldest = self._oldest()
            if oldest.run is not None and oldest.run.finished > limit:
                break
            engine.forget(oldest)
        self.wind(engine)

    def wind(self, engine: Engine) -> None:
        """Make sure that a sweep comes while there is something to sweep."""
        if self._all:
            run = self._oldest().run
            assert run is not None, "what is completed has run"
            self.wound = True
            engine.timers.set(self, run.finished + self.rules.retention)

    def sort(self) -> None:
        """Put what came from a store where it belongs; a sweep that was to come may be too late."""
        self._all = _sorted(self._all)
        self._with_result = _sorted(self._with_result)
        self.wound = False
        self.gen += 1

    def _oldest(self) -> Message:
        return next(iter(self._all.values()))


def _sorted(line: OrderedDict[int, Message]) -> OrderedDict[int, Message]:
    ended = {seq: m.run.finished if m.run is not None else 0 for seq, m in line.items()}
    return OrderedDict((seq, line[seq]) for seq in sorted(line, key=ended.__getitem__))


def _size(m: Message) -> int:
    result = m.run.result if m.run is not None else None
    return len(m.body) + (len(result) if result is not None else 0)
