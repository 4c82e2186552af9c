"""``Client``: the same surface for programs without asyncio; each method waits for its answer."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from tandemq.client import client as aio
from tandemq.client.portal import Portal
from tandemq.client.spans import Span
from tandemq.client.url import Target

T = TypeVar("T")


class Client:
    """A client for threads; any number of them may use it. In a forked child it connects anew."""

    def __init__(self, url: str | Target | None = None, **options: Any) -> None:
        """``url`` is like ``tandemq://user:token@host:6789/?tls=1&pool=4``.

        Raises:
            WrongUrl, BadOption
        """
        self.inner = aio.AsyncClient(url, **options)
        self._portal: Portal | None = None
        self._pid = os.getpid()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something asynchronous in this client's loop and wait for it."""
        if self._portal is None or self._pid != os.getpid():
            self._portal, self._pid = Portal(), os.getpid()
        return self._portal.call(work)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; later calls raise ``Closed``."""
        if self._portal is not None and self._pid == os.getpid() and not self.inner.pool.closed:
            self._portal.call(self.inner.close())
            self._portal.close()
        self.inner.pool.closed = True

    def call(
        self, command: str, /, *, patience: Span | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Send any command of the wire and return the fields of its answer."""
        return self.run(self.inner.call(command, patience=patience, **fields))
