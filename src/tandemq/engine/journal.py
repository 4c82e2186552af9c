"""The newest events of each queue, without what they carried.

Events are built only while somebody listens, so the journal knows no others.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import NamedTuple

from tandemq.model.outcome import Event


class Entry(NamedTuple):
    """One event that was told of."""

    type: str
    id: str  # of the message; "" for what concerned the whole queue
    at: int  # ms


class Journal:
    """The events of every queue; the one that was heard of last comes last."""

    def __init__(self, per_queue: int, in_all: int) -> None:
        """Keep so many of each queue and of all; of more, the longest silent queue's go first."""
        self._per_queue, self._in_all = per_queue, in_all
        self._of: OrderedDict[str, deque[Entry]] = OrderedDict()
        self.size = 0

    def of(self, queue: str) -> list[Entry]:
        """Return the events of a queue, the oldest first."""
        return list(self._of.get(queue, ()))

    def note(self, event: Event) -> None:
        """Remember an event; beyond the bounds the oldest go."""
        entries = self._of.get(event.queue)
        if entries is None:
            entries = self._of[event.queue] = deque()
        self._of.move_to_end(event.queue)
        entries.append(Entry(event.type, event.id, event.at))
        self.size += 1
        if len(entries) > self._per_queue:
            entries.popleft()
            self.size -= 1
        while self.size > self._in_all and len(self._of) > 1:
            self.trim(next(iter(self._of)), 0)

    def trim(self, queue: str, keep: int) -> int:
        """Keep the newest ``keep`` events of a queue; return how many were forgotten."""
        entries = self._of.get(queue)
        if entries is None:
            return 0
        removed = max(0, len(entries) - keep)
        for _ in range(removed):
            entries.popleft()
        self.size -= removed
        if not entries:
            del self._of[queue]
        return removed
