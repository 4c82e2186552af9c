"""A store that cannot be written: since when, why, and whether it works again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from tandemq.stores.base import StoreFailed

log = logging.getLogger("tandemq.server")

PROBE = 1.0  # s between tries to write while writing does not work


class Outage:
    """Begins with a batch that failed and ends with one that did not; false while all is well.

    ``probe`` is called now and then in between: an idle server has nothing else to write.
    """

    def __init__(self, probe: Callable[[], None]) -> None:
        self._probe = probe
        self._failure: StoreFailed | None = None
        self._since = 0  # ms since the epoch
        self._next: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        return self._failure is not None

    def began(self, failure: StoreFailed, now: int) -> None:
        """A batch has failed, perhaps not the first."""
        if self._failure is None:
            log.error("the store cannot be written: %s", failure)
            self._since = now
        self._failure = failure
        if self._next is None:
            self._next = asyncio.get_running_loop().call_later(PROBE, self._try)

    def ended(self) -> None:
        """A batch was written."""
        if self._failure is not None:
            log.warning("the store can be written again")
            self._failure = None

    def cancel(self) -> None:
        """Try no more."""
        if self._next is not None:
            self._next.cancel()

    def status(self) -> dict[str, Any]:
        """Return what the command StorageStatus shows."""
        failure = self._failure
        return {
            "diskFull": failure is not None,
            "error": str(failure) if failure is not None else None,
            "since": float(self._since) if failure is not None else None,
        }

    def _try(self) -> None:
        self._next = None
        if self:
            self._probe()
