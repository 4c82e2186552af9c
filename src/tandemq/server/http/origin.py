"""Where an HTTP request comes from: its peer, or whom a proxy we trust names (quirk 72)."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any

from tandemq.server.guard import Arrivals, origin_of

if TYPE_CHECKING:
    from tandemq.config import Settings


class Origins:
    """Tells origins, and counts their requests."""

    def __init__(self, settings: Settings) -> None:
        self._proxies = settings.proxy_networks
        self._arrivals = Arrivals(settings.requests_per_minute, settings.request_window_ms)

    def admit(self, origin: str, now: int) -> bool:
        """Count a request at ``now`` (ms); False when it is one too many."""
        return self._arrivals.admit(origin, now)

    def of(self, scope: Any) -> str:
        """Return what stands for the address of who sent a request.

        The header X-Forwarded-For is read from its end: each trusted proxy has added whom it heard,
        and what a stranger has put in front of that is worth nothing.
        """
        peer = scope.get("client")
        if not self._proxies or not (peer and self._trusted(peer[0])):
            return origin_of(peer)
        for address in reversed(list(_forwarded(scope["headers"]))):
            if not self._trusted(address):
                return origin_of((address,)) or origin_of(peer)
        return origin_of(peer)

    def _trusted(self, address: str) -> bool:
        try:
            known = ip_address(address)
        except ValueError:
            return False
        return any(_within(known, network) for network in self._proxies)


def _within(address: Any, network: IPv4Network | IPv6Network) -> bool:
    return bool(address.version == network.version and address in network)


def _forwarded(headers: Iterable[tuple[bytes, bytes]]) -> Iterable[str]:
    for name, value in headers:
        if name == b"x-forwarded-for":
            yield from (part.strip() for part in value.decode("latin-1").split(","))
