"""Counts over all queues, taken in one pass, and in slices where others must not wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from heapq import nsmallest
from itertools import chain
from typing import Final

from tandemq.commands.fields import QUEUE_LENGTH
from tandemq.engine.core import Engine
from tandemq.engine.queue import Queue
from tandemq.model.broker import Mode
from tandemq.model.message import State

SLICE: Final = 200  # queues counted in one go: less than a millisecond


class Census:
    """The sums over those queues that were counted so far."""

    def __init__(self, most: int) -> None:
        """``most`` is of how many queues, the first by name, more is to be told."""
        self._most = most
        self._by_state = [0] * len(State)
        self.prioritized = 0  # of the ready ones
        self.queues = 0  # that hold or are set to something
        self.named = 0  # that ListQueues of a broker would name
        self.in_flight = 0  # messages that somebody holds, and each copy of one for many
        self.shown: list[Queue] = []

    def __getitem__(self, state: State) -> int:
        """Return how many messages are in a state."""
        return self._by_state[state]

    def add(self, queues: Iterable[Queue]) -> None:
        """Count some more."""
        there: list[Queue] = []
        for q in queues:
            if q.blank:
                continue
            there.append(q)
            counts, broker = q.counts, q.settings.broker
            self._by_state = [a + b for a, b in zip(self._by_state, counts, strict=True)]
            self.prioritized += q.prioritized
            self.named += broker is not None or bool(q.subscriptions) or any(counts)
            self.in_flight += counts[State.LEASED]
            if broker is not None and broker.mode is Mode.FAN_OUT_WITH_ACK:
                self.in_flight += sum(sub.held for sub in q.subscriptions)
        self.queues += len(there)
        short = (q for q in there if len(q.name) <= QUEUE_LENGTH)
        self.shown = nsmallest(self._most, chain(self.shown, short), key=lambda q: q.name)


def taken(engine: Engine, most: int = 0) -> Census:
    """Count all queues at once."""
    census = Census(most)
    census.add(engine.queues.values())
    return census


async def taken_in_slices(engine: Engine, most: int = 0) -> Census:
    """Count all queues, and let others have their turns in between.

    What changes meanwhile is counted or not.
    """
    census, queues = Census(most), list(engine.queues.values())
    for at in range(0, len(queues), SLICE):
        if at:
            await asyncio.sleep(0)
        census.add(queues[at : at + SLICE])
    return census
