"""Who may work here, and how much: tokens, request rates, connections."""

from __future__ import annotations

import hmac
import resource
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tandemq.commands.access import Auth
from tandemq.commands.table import Request
from tandemq.model.errors import Overloaded, RateLimited, Unauthenticated
from tandemq.wires.bunqueue.session import Refusal

if TYPE_CHECKING:
    from tandemq.server.connections import Connection


class Tokens:
    """The accepted tokens; none at all means that nobody has to prove anything."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self.replace(tokens)

    def replace(self, tokens: Iterable[str]) -> None:
        """Accept these tokens from now on; connections that are trusted stay so."""
        self._tokens = [token.encode() for token in tokens]

    @property
    def required(self) -> bool:
        return bool(self._tokens)

    def accepts(self, token: str) -> bool:
        """Compare with every token, in a time that tells nothing of which one came close."""
        given = token.encode("utf-8", "surrogatepass")
        accepted = False
        for known in self._tokens:
            accepted |= hmac.compare_digest(known, given)
        return accepted


class Window:
    """At most ``limit`` requests in any ``span`` ms."""

    __slots__ = ("_limit", "_moments", "_span")

    def __init__(self, limit: int, span: int) -> None:
        self._limit, self._span = limit, span
        self._moments: deque[int] = deque()

    def admit(self, now: int) -> bool:
        """Count a request; False when the window is full, which is not counted."""
        moments = self._moments
        while moments and moments[0] <= now - self._span:
            moments.popleft()
        if len(moments) >= self._limit:
            return False
        moments.append(now)
        return True


def affordable(wanted: int) -> int:
    """Return how many connections the descriptor limit leaves room for, at most ``wanted``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(wanted, max(1, hard * 8 // 10)) if hard != resource.RLIM_INFINITY else wanted


def gate(connection: Connection, item: Request | Refusal, now: int) -> None:
    """Raise what keeps a request from running, if anything does."""
    refusal = item if isinstance(item, Refusal) else None
    if refusal is not None and refusal.error.fatal:
        raise refusal.error
    if connection.limiter is not None and not connection.limiter.admit(now):
        raise RateLimited
    formed = refusal is None or refusal.formed
    if formed and not connection.trusted and type(item) is not Auth:
        raise Unauthenticated
    if refusal is not None:
        raise refusal.error


def failed_login(connection: Connection, limit: int) -> None:
    """Count a login that failed; with the last one that is allowed the connection ends.

    Raises:
        Overloaded: it was that one; ``limit`` 0 is none.
    """
    connection.failed_logins += 1
    if limit and connection.failed_logins >= limit:
        raise Overloaded(f"Too many failed logins ({limit}); connect again")
