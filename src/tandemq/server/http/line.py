"""One HTTP connection: uvicorn's protocol, and what it leaves to others.

It tells callers that their client has hung up, so that no job is handed to nobody.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from tandemq.server.http.face import Caller

log = logging.getLogger("tandemq.http")
log_quiet = logging.getLogger("tandemq.http.line")


class Line(HttpToolsProtocol):
    """Knows who is being answered on it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.logger = log_quiet
        self.access_log = False
        self.app_state = {"line": self}
        self._caller: Caller | None = None

    def answers(self, caller: Caller) -> None:
        """A caller's request came on this connection; the one before has been answered."""
        self._caller = caller

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody will read an answer any more."""
        if self._caller is not None:
            self._caller.gone()
            self._caller = None
        super().connection_lost(exc)
