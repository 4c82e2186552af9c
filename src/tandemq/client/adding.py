"""Jobs that are added at the same time go to the server together, in one PUSHB for each queue.

"At the same time" means in one turn of the event loop, so a job waits for nothing and a single one
goes by itself. What concerns one job of a batch is told to its sender alone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from tandemq.client.errors import (
    NotAuthorized,
    Refused,
    TandemqError,
    Unavailable,
    Unencodable,
    WrongServer,
    refusal,
)
from tandemq.wires.bunqueue import caller

if TYPE_CHECKING:
    from tandemq.client.pool import Pool

MOST_JOBS = 200  # of one batch
MOST_BYTES = 1 << 20

_about_one = re.compile(r"jobs\[(\d+)\]: ")


class Added(NamedTuple):
    """A job on its way, and the place of its id."""

    job: bytes
    id: asyncio.Future[str]


class Adding:
    """Collects what is added in one turn."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._turn: dict[str, list[Added]] = {}

    def add(self, queue: str, job: Mapping[str, Any]) -> asyncio.Future[str]:
        """Add a job, under its names on the wire; the future resolves with its id.

        Raises:
            Unencodable, Closed, WrongLoop
        """
        loop = self._pool.checked_loop()
        try:
            encoded = caller.encode(job)
        except caller.Unwritable as error:
            raise Unencodable(str(error)) from None
        added = Added(encoded, loop.create_future())
        if "groupMaxSize" in job:  # what a full group refuses would not be told apart in a batch
            self._send(queue, [added])
            return added.id
        if not self._turn:
            loop.call_soon(self._flush)
        self._turn.setdefault(queue, []).append(added)
        return added.id

    def forget(self) -> None:
        """Drop what belongs to another process or loop."""
        self._turn = {}

    def _flush(self) -> None:
        turn, self._turn = self._turn, {}
        for queue, jobs in turn.items():
            batch: list[Added] = []
            size = 0
            for added in jobs:
                if batch and (len(batch) == MOST_JOBS or size + len(added.job) > MOST_BYTES):
                    self._send(queue, batch)
                    batch, size = [], 0
                batch.append(added)
                size += len(added.job)
            self._send(queue, batch)

    def _send(self, queue: str, batch: list[Added]) -> None:
        batch = [added for added in batch if not added.id.done()]
        if not batch:
            return
        id = self._pool.new_id()
        if len(batch) == 1:
            command, frame = "PUSH", caller.push(queue, batch[0].job, id)
        else:
            command, frame = "PUSHB", caller.push_many(queue, [a.job for a in batch], id)
        try:
            answer = self._pool.dispatch(command, id, frame)
        except TandemqError as error:  # it was closed in the same turn
            self._fail(batch, error)
            return
        answer.add_done_callback(lambda done: self._answered(queue, batch, done))

    def _answered(
        self, queue: str, batch: list[Added], done: asyncio.Future[dict[str, Any]]
    ) -> None:
        error = done.exception()
        if error is not None:
            self._refused(queue, batch, error)
            return
        fields = done.result()
        ids = [fields.get("id")] if len(batch) == 1 else fields.get("ids")
        if not isinstance(ids, list) or list(map(type, ids)) != [str] * len(batch):
            self._fail(batch, WrongServer(f"{self._pool.target} added jobs without naming them"))
            return
        for added, id in zip(batch, ids, strict=True):
            if not added.id.done():
                added.id.set_result(id)

    def _refused(self, queue: str, batch: list[Added], error: BaseException) -> None:
        """Tell one sender what concerns one job, and send the others again: nothing was added."""
        own = isinstance(error, Refused) and not isinstance(error, (Unavailable, NotAuthorized))
        if not own or len(batch) == 1:
            self._fail(batch, error)
            return
        assert isinstance(error, Refused)
        found = _about_one.match(error.text)
        if found is None or int(found[1]) >= len(batch):
            for added in batch:
                self._send(queue, [added])
            return
        guilty = batch.pop(int(found[1]))
        self._fail([guilty], refusal("PUSH", error.text[found.end() :]))
        self._send(queue, batch)

    @staticmethod
    def _fail(batch: list[Added], error: BaseException) -> None:
        for added in batch:
            if not added.id.done():
                added.id.set_exception(copy(error))
