"""How many messages of a queue ended in each minute, well or badly, for two weeks.

Counting happens at every end, so it only adds to plain integers; what was counted is written as
facts a little later, an hour of a queue in each, so that a busy queue costs one small row a
second and an idle one nothing. Source: bunqueue semantics 14.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

FACT = "metric/"  # + hour since the epoch + "/" + queue: the key of what was counted then
MINUTE = 60_000  # ms
HOUR = 60  # minutes
KEPT = 20_160  # minutes that are kept
LATER = 1_000  # ms until what was counted is written


class Series:
    """Ends of one kind: how many in all, when the last was, how many in which minute."""

    __slots__ = ("last", "minute", "minutes", "total", "until")

    def __init__(self) -> None:
        self.total = 0
        self.last = 0  # moment of the last end
        self.minutes: dict[int, int] = {}  # minute since the epoch -> count, in order
        self.minute = 0
        self.until = 0  # moment at which the present minute is over

    @property
    def newest(self) -> int:
        """How many ended in the last minute in which any did."""
        return next(reversed(self.minutes.values()), 0)

    def __len__(self) -> int:
        """Return over how many minutes the series stretches, empty ones between included."""
        if not self.minutes:
            return 0
        return next(reversed(self.minutes)) - next(iter(self.minutes)) + 1

    def page(self, start: int, stop: int | None) -> list[int]:
        """Return the counts of minutes ``start`` to ``stop`` (exclusive), the newest first."""
        if not self.minutes:
            return []
        newest, size = next(reversed(self.minutes)), len(self)
        stop = size if stop is None else min(stop, size)
        return [self.minutes.get(newest - i, 0) for i in range(start, stop)]

    def turn(self, now: int) -> set[int]:
        """Begin the minute of ``now``; return the hours that lost or gain one.

        A clock that was set back does not begin an earlier minute: the order of minutes stays.
        """
        self.minute = max(now // MINUTE, next(reversed(self.minutes), 0))
        self.until = (self.minute + 1) * MINUTE
        self.minutes.setdefault(self.minute, 0)
        changed = {self.minute // HOUR}
        while (oldest := next(iter(self.minutes))) <= self.minute - KEPT:
            del self.minutes[oldest]
            changed.add(oldest // HOUR)
        return changed

    def within(self, hour: int) -> dict[int, int]:
        """Return the minutes of one hour."""
        first = hour * HOUR
        if len(self.minutes) > HOUR:
            candidates = range(first, first + HOUR)
            return {m: self.minutes[m] for m in candidates if m in self.minutes}
        return {m: n for m, n in self.minutes.items() if m // HOUR == hour}

    def replace(self, hour: int, stored: _Stored | None) -> None:
        """Take one hour as it was stored; None: nothing was."""
        gone = self.within(hour)
        kept = {m: n for m, n in self.minutes.items() if m not in gone}
        self.total -= sum(gone.values())
        if stored is not None:
            kept |= stored.minutes
        self.minutes = dict(sorted(kept.items()))
        self.until = 0
        if stored is not None and max(self.minutes, default=0) // HOUR <= hour:
            self.total, self.last = stored.total, stored.last


class Tally:
    """What was counted for one queue."""

    __slots__ = ("completed", "dirty", "failed")

    def __init__(self) -> None:
        self.completed, self.failed = Series(), Series()
        self.dirty: set[int] = set()  # hours that changed since they were written

    def hours(self) -> set[int]:
        """Return the hours of which something is kept."""
        return {m // HOUR for series in (self.completed, self.failed) for m in series.minutes}


class _Stored(Struct, array_like=True):
    """One hour of one series, as facts keep it: append with a default, never reorder."""

    total: int  # at the end of this hour
    last: int
    minutes: dict[int, int]


_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(tuple[_Stored, _Stored]).decode
NOTHING = Tally()


class Tallies:
    """What was counted for each queue; the one that changed last comes last."""

    def __init__(self, most: int) -> None:
        """Keep the figures of ``most`` queues; of more, the longest unchanged go."""
        self._most = most
        self.gen = 0
        self._of: dict[str, Tally] = {}
        self._dirty: dict[str, Tally] = {}

    def __len__(self) -> int:
        return len(self._of)

    def of(self, queue: str) -> Tally:
        """Return what was counted for a queue, to be read only."""
        return self._of.get(queue, NOTHING)

    def count(self, engine: Engine, queue: str, now: int, *, well: bool, ends: int = 1) -> None:
        """Count so many ends."""
        tally = self._of.get(queue)
        if tally is None:
            tally = self._of[queue] = Tally()
        series = tally.completed if well else tally.failed
        if now >= series.until:
            tally.dirty |= series.turn(now)
        series.minutes[series.minute] += ends
        series.total += ends
        series.last = now
        if queue not in self._dirty:
            self._touch(engine, queue, tally, series.minute // HOUR, now)

    def _touch(self, engine: Engine, queue: str, tally: Tally, hour: int, now: int) -> None:
        if not self._dirty:
            engine.timers.set(self, now + LATER)
        self._dirty[queue] = tally
        tally.dirty.add(hour)
        del self._of[queue]
        self._of[queue] = tally
        if len(self._of) > self._most:
            self.drop(engine, next(iter(self._of)))

    def flush(self, engine: Engine) -> None:
        """Write what was counted since the last time."""
        dirty, self._dirty = self._dirty, {}
        self.gen += 1
        for queue, tally in dirty.items():
            for hour in tally.dirty:
                engine.record(f"{FACT}{hour}/{queue}", _fact(tally, hour))
            tally.dirty = set()

    def drop(self, engine: Engine, queue: str) -> None:
        """Forget what was counted for a queue."""
        tally = self._of.pop(queue, None)
        if self._dirty.pop(queue, None) is not None and not self._dirty:
            self.gen += 1
        if tally is not None:
            for hour in tally.hours() | tally.dirty:
                engine.record(f"{FACT}{hour}/{queue}", None)

    def restore(self, name: str, fact: bytes | None) -> None:
        """Take one hour of a queue as it was stored; None is an hour in which nothing ended."""
        hour, _, queue = name.partition("/")
        tally = self._of.setdefault(queue, Tally())
        completed, failed = _decode(fact) if fact is not None else (None, None)
        tally.completed.replace(int(hour), completed)
        tally.failed.replace(int(hour), failed)
        if not tally.hours():
            del self._of[queue]
            self._dirty.pop(queue, None)


def _fact(tally: Tally, hour: int) -> bytes | None:
    both = [
        _Stored(series.total, series.last, series.within(hour))
        for series in (tally.completed, tally.failed)
    ]
    return _encode(both) if any(stored.minutes for stored in both) else None
