"""The program that a server is embedded in, as one of its callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tandemq.commands.table import BY_REQUEST
from tandemq.server.guests import Guest

if TYPE_CHECKING:
    from tandemq.server.runtime import Runtime


class Inside(Guest):
    """May do everything, and look at what changes nothing without waiting."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime, "this program", trusted=True)

    def look(self, request: Any) -> Any:
        """Run a request that changes nothing, at once."""
        self.call.now = self.runtime.begin()
        return BY_REQUEST[type(request)].run(request, self.call)
