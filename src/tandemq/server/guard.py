"""Who may work here, and how much: tokens, permissions, failed logins, request rates."""

from __future__ import annotations

import hmac
import resource
from collections import OrderedDict, deque
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any

from tandemq.commands.broker import Ack, Nack
from tandemq.commands.fields import identifier
from tandemq.commands.greeting import Disconnect, Ping
from tandemq.commands.table import BY_REQUEST, Command, Permission
from tandemq.model.errors import (
    AccessDenied,
    NotAuthorized,
    RateLimited,
    TandemqError,
    Unauthenticated,
)
from tandemq.wires.bunqueue.session import Refusal
from tandemq.wires.vibemq.requests import Refusal as VibeRefusal

if TYPE_CHECKING:
    from tandemq.engine.core import Engine
    from tandemq.server.connections import Connection

UNLIMITED = frozenset((Ack, Nack, Ping, Disconnect))  # of VibeMQ: they free what others need
SUPERUSERS_ONLY = "Superuser access required."

FAILURES = 20  # failed logins of an address within their span, from which on it is slowed down
FAILURES_SPAN = 60_000  # ms
ADDRESSES = 10_000  # whose failures and arrivals are remembered, those that came last
ARRIVALS_SPAN = 60_000  # ms


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


def gate(connection: Connection, item: Any, now: int) -> None:
    """Raise what keeps a request from running, if anything does.

    It is raised afresh: the frame that it passes through next holds the refusal, so that the two
    would hold each other, and with them all that came in the same read.
    """
    refusal = item if isinstance(item, (Refusal, VibeRefusal)) else None
    error = None if refusal is None else refusal.error
    if error is not None:
        if not isinstance(error, TandemqError):
            raise error  # a bug of ours
        if error.fatal:
            raise error.afresh()
    limiter = connection.limiter
    if limiter is not None and type(item) not in UNLIMITED and not limiter.admit(now):
        raise RateLimited
    if not connection.trusted and (refusal is None or refusal.formed):
        row = BY_REQUEST.get(type(item)) if refusal is None else None
        if row is None or row.permission is not Permission.ANYBODY:
            if connection.user is None:
                raise Unauthenticated
            if row is not None:
                permit(connection.runtime.engine, connection.user, row, item)
            elif isinstance(refusal, VibeRefusal) and refusal.row is not None:
                foresee(refusal.row)
    if error is not None:
        raise error.afresh()


def foresee(row: Command) -> None:
    """Raise what a user would be told whatever else was wrong with a request."""
    if row.permission is Permission.SUPERUSER:
        raise NotAuthorized(SUPERUSERS_ONLY)


def permit(engine: Engine, user: str, row: Command, request: Any) -> None:
    """Raise what keeps a user who may not do everything from a request, if anything does.

    Every queue that the request concerns has to be granted for the operation of its row. The
    commands that list queues leave out by themselves what may not be listed.

    Raises:
        NotAuthorized
    """
    permission = row.permission
    if permission in (Permission.OPEN, Permission.LIST):
        return
    operation = permission.operation
    queues = None if operation is None else request.concerns(engine)
    if operation is None or queues is None:
        raise NotAuthorized(SUPERUSERS_ONLY)
    for queue in queues:
        name = queue if isinstance(queue, str) else identifier(queue)  # as commands read it
        if name is not None and operation not in engine.users.allowed(user, name):
            raise AccessDenied(operation)


class Failures:
    """Failed logins by address: who fails often is answered slowly."""

    def __init__(self) -> None:
        self._moments: OrderedDict[str, deque[int]] = OrderedDict()

    def note(self, origin: str, now: int) -> None:
        """A login from this address has failed at ``now`` (ms)."""
        if origin not in self._moments and len(self._moments) >= ADDRESSES:
            self._moments.popitem(last=False)
        self._moments.setdefault(origin, deque(maxlen=FAILURES)).append(now)
        self._moments.move_to_end(origin)

    def too_many(self, origin: str, now: int) -> bool:
        """Whether the newest ``FAILURES`` of an address lie within the span."""
        moments = self._moments.get(origin)
        if moments is None or len(moments) < FAILURES:
            return False
        return moments[0] > now - FAILURES_SPAN


class Arrivals:
    """What comes from each address: at most ``limit`` in any ``span`` ms, 0 is no limit."""

    def __init__(self, limit: int, span: int = ARRIVALS_SPAN) -> None:
        self._limit, self._span = limit, span
        self._windows: OrderedDict[str, Window] = OrderedDict()

    def admit(self, origin: str, now: int) -> bool:
        """Count one at ``now`` (ms of any clock); False when it is one too many."""
        if not self._limit:
            return True
        window = self._windows.get(origin)
        if window is None:
            if len(self._windows) >= ADDRESSES:
                self._windows.popitem(last=False)
            window = self._windows[origin] = Window(self._limit, self._span)
        self._windows.move_to_end(origin)
        return window.admit(now)


def origin_of(peer: Any) -> str:
    """Return what stands for the address of a socket's peer, "" for one that has none.

    Whoever has an IPv6 address has all that begin with the same 64 bits.
    """
    try:
        address = ip_address(peer[0] if peer else "")
    except ValueError:
        return ""
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped is not None else address.packed[:8].hex()
    return str(address)
