"""Group commit: what must not be said before it is kept waits here for its batch.

While one batch is being written by the writer thread the next one grows; no timer, no waiting
when idle. A message that changed several times in between is written once, one that came and went
not at all. If a batch fails, nothing of it and nothing that grew on it is announced: the owner is
told to undo it, and everybody concerned gets a refusal.

A lease promises nothing that a crash could break, so leases are written behind: only those that
have lasted for a while, and together.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from tandemq.model.message import Message, State
from tandemq.model.outcome import Outcome
from tandemq.stores.base import Batch, Row, Store, StoreFailed
from tandemq.stores.rows import encode_head

LEASED, GONE = State.LEASED, State.GONE
BEHIND = 0.05  # s that a lease may last before it is written: most end sooner and never are

Held = Any  # whatever the owner releases or refuses; never looked into


class Committer:
    """One writer, one batch at a time.

    ``release(held, written)`` is called with answers whose changes are kept, in order, and whether
    that took a write; ``undo(touched, keys, held, failure)`` when a batch failed, with everything
    that was built on it. While ``turning()`` is true no batch begins: messages are written as they
    are now, and a turn that is not over may have changed one half of what belongs together. The
    owner calls ``add`` at the end of every turn.
    """

    def __init__(
        self,
        store: Store,
        release: Callable[[list[Held], bool], None],
        undo: Callable[[dict[int, Message], set[str], list[Held], StoreFailed], None],
        *,
        turning: Callable[[], bool] = lambda: False,
        always_sync: bool = False,
    ) -> None:
        self._store = store
        self._release, self._undo, self._turning = release, undo, turning
        self._always_sync = always_sync
        self._changed: dict[int, Message] = {}
        self._facts: dict[str, bytes | None] = {}
        self._leases: dict[int, Message] = {}  # nobody waits until these are kept
        self._behind: asyncio.TimerHandle | None = None
        self._failing = False  # then no lease is told of before it is kept
        self._held: list[Held] = []
        self._flying: Flight | None = None
        self._jobs: SimpleQueue[Batch | None] = SimpleQueue()
        self._idle = asyncio.Event()
        self._idle.set()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, name="tandemq-writer", daemon=True)
        self._thread.start()

    @property
    def pending(self) -> bool:
        """Something is not kept yet."""
        return bool(self._flying or self._changed or self._facts)

    def add(self, outcome: Outcome, held: list[Held]) -> None:
        """Take what changed, and the answers that must wait until it is kept."""
        changed, leases = self._changed, self._leases
        for seq, m in outcome.changed.items():
            if not m.stored:
                # What came and went inside one group need not be written at all.
                if m.state is GONE:
                    changed.pop(seq, None)
                else:
                    changed[seq] = m
            elif m.state is LEASED and seq not in changed and not (m.rebodied or self._failing):
                leases[seq] = m
            else:
                changed[seq] = m
                leases.pop(seq, None)
        if leases and self._behind is None:
            self._behind = self._loop.call_later(BEHIND, self._catch_up)
        self._facts.update(outcome.facts)
        self._held += held
        self._fly_if_free()

    def _catch_up(self) -> None:
        """Write the leases that have lasted: a crash must know of them to charge an attempt."""
        self._behind = None
        # One that is leased no more was taken back, and another object stands for its row.
        self._changed.update((seq, m) for seq, m in self._leases.items() if m.state is LEASED)
        self._leases = {}
        self._fly_if_free()

    def _fly_if_free(self) -> None:
        if self._flying is None and not self._turning():
            self._fly()

    def _fly(self) -> None:
        if not (self._changed or self._facts):
            held, self._held = self._held, []
            self._idle.set()
            if held:
                self._release(held, False)
            return
        self._idle.clear()
        self._flying = Flight(self._changed, set(self._facts), self._held)
        try:
            batch = self._batch()
        except Exception as exc:  # it must not hold up all batches to come
            failure = StoreFailed(f"a message cannot be stored: {exc!r}")
            self._loop.call_soon(self._landed, failure)
        else:
            self._jobs.put(batch)
        self._changed, self._facts, self._held = {}, {}, []

    def _batch(self) -> Batch:
        batch = Batch(facts=self._facts, sync=self._always_sync)
        new, changed, gone = batch.new, batch.changed, batch.gone
        for seq, m in self._changed.items():
            if m.state is GONE:
                gone.append(seq)
            elif m.stored:
                changed.append((seq, encode_head(m)))
                if m.rebodied:
                    m.rebodied = False
                    batch.rebodied.append((seq, m.body))
            else:
                m.stored, m.rebodied = True, False
                new.append(Row(seq, encode_head(m), m.body))
                batch.sync = batch.sync or m.options.durable
        return batch

    def _write(self) -> None:
        """Run in the writer thread until told to stop."""
        while (batch := self._jobs.get()) is not None:
            failure: StoreFailed | None = None
            try:
                self._store.commit(batch)
            except StoreFailed as exc:
                failure = exc
            except Exception as exc:
                failure = StoreFailed(f"the store has a bug: {exc!r}")
            self._loop.call_soon_threadsafe(self._landed, failure)

    def _landed(self, failure: StoreFailed | None) -> None:
        flight, self._flying = self._flying, None
        assert flight is not None, "only what flies can land"
        self._failing = failure is not None
        try:
            if failure is None:
                self._release(flight.held, True)
            else:
                self._take_back(flight, failure)
        finally:  # whatever went wrong with one answer, the next batch must not wait
            self._fly_if_free()

    def _take_back(self, flight: Flight, failure: StoreFailed) -> None:
        """Have a batch that failed undone, and everything that grew on it."""
        touched = {**flight.changed, **self._changed}
        keys = flight.keys | set(self._facts)
        held = flight.held + self._held
        self._changed, self._facts, self._held = {}, {}, []
        self._undo(touched, keys, held, failure)

    async def drained(self) -> None:
        """Wait until everything added so far is kept, or undone."""
        while self.pending:
            self._idle.clear()
            await self._idle.wait()

    async def close(self) -> None:
        """Write what is pending and end the writer thread."""
        await self.drained()
        if self._behind is not None:
            self._behind.cancel()
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)


class Flight:
    """A batch that the writer thread is writing, and the answers that wait for it."""

    __slots__ = ("changed", "held", "keys")

    def __init__(self, changed: dict[int, Message], keys: set[str], held: list[Held]) -> None:
        self.changed, self.keys, self.held = changed, keys, held
