"""The way out of this machine for webhooks: names are resolved and judged at each connection.

Only the address that was judged is connected to, so a name that changes its mind between the look
and the connection gains nothing (bunqueue quirk 87).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from typing import Any

from httpcore2 import AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream, ConnectError

from tandemq.model.webhook_url import Network, inward


class Outward(AsyncNetworkBackend):
    """Connects to addresses of the open internet and of the allowed networks only."""

    def __init__(self, allowed: tuple[Network, ...]) -> None:
        self._allowed = allowed
        self._plain = AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        problem: Exception = ConnectError(f"{host} has no address")
        for address in await self._addresses(host.strip("[]"), port):
            if inward(address, self._allowed):
                problem = ConnectError(
                    f"{host} leads to {address}, which webhook_allow does not open"
                )
                continue
            try:
                return await self._plain.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except ConnectError as failed:
                problem = failed
        raise problem

    async def sleep(self, seconds: float) -> None:
        await self._plain.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            # Not the loop's own: uvloop's never ends if a look-up is cancelled, and closing hangs.
            found = await asyncio.to_thread(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        except OSError as failed:
            raise ConnectError(f"{host} cannot be resolved: {failed.strerror}") from None
        return list(dict.fromkeys(str(address[0]) for *_, address in found))
